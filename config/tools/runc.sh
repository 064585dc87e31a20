#!/bin/bash
# runc.sh PATH: puts a runc at PATH, the system's if it is new enough, else one
# built from its Go module, once.
set -euo pipefail

target=$1
here=$(cd "$(dirname "$0")" && pwd)

# 1.2.8, 1.3.3 and 1.4.0 ended the container escapes of November 2025.
new_enough() {
  local major minor patch
  IFS=. read -r major minor patch < <("$1" --version 2>/dev/null | sed -n 's/^runc version \([0-9]*\.[0-9]*\.[0-9]*\).*/\1/p') || return 1
  [ -n "${patch:-}" ] || return 1
  [ "$major" -gt 1 ] || [ "$minor" -gt 3 ] || { [ "$minor" = 3 ] && [ "$patch" -ge 3 ]; } || { [ "$minor" = 2 ] && [ "$patch" -ge 8 ]; }
}

system=$(command -v runc || true)
if [ -n "$system" ] && new_enough "$system"; then
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
