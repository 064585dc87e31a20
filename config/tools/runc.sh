#!/bin/bash
# runc.sh PATH: puts a runc at PATH, the system's if the server can use it, else one
# built from its Go module, once.
set -euo pipefail

target=$1
here=$(cd "$(dirname "$0")" && pwd)

system=$(command -v runc || true)
# The server uses no other runc than one that passes the same check at its start.
if [ -n "$system" ] && (cd "$here" && go run ./checkrunc "$system"); then
  ln -sfn "$system" "$target"
  exit
fi
version=$(sed -n 's#^require github.com/opencontainers/runc ##p' "$here/runc/go.mod")
built=$CACHE/runc-$version
if [ ! -x "$built" ]; then
  echo "Building runc $version" >&2
  mkdir -p "$CACHE"
  (cd "$here/runc" && CGO_ENABLED=1 go build -trimpath -tags seccomp -ldflags "-s -w -X main.version=${version#v}" -o "$built.new" github.com/opencontainers/runc)
  mv "$built.new" "$built"
fi
ln -sfn "$built" "$target"
