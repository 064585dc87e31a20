#!/bin/bash
# gvisor.sh FOLDER: puts runsc and containerd's shim for it into FOLDER, built from
# their Go module, once.
set -euo pipefail

target=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's#.*gvisor.dev/gvisor \(v[^ ]*\).*#\1#p' "$here/gvisor/go.mod")
built=$CACHE/gvisor-$version

build() { # NAME PACKAGE
  echo "Building $1 $version" >&2
  CGO_ENABLED=0 go build -mod=vendor -trimpath -ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=$version" -o "$built.new/$1" "$2"
}

if [ ! -d "$built" ]; then
  rm -rf "$built.new"
  mkdir -p "$built.new/source"
  cd "$built.new/source"
  cp "$here/gvisor/go.mod" "$here/gvisor/go.sum" .
  go mod vendor
  # The shim lowers its own OOM score, which not every machine lets root do.
  sed -i 's/oomScoreMax = -999$/oomScoreMax = 0/' vendor/gvisor.dev/gvisor/pkg/shim/v1/manager.go
  grep -q 'oomScoreMax = 0$' vendor/gvisor.dev/gvisor/pkg/shim/v1/manager.go
  build runsc gvisor.dev/gvisor/runsc
  build containerd-shim-runsc-v1 gvisor.dev/gvisor/shim
  cd ..
  rm -rf source
  mv "$built.new" "$built"
fi
mkdir -p "$target"
for program in runsc containerd-shim-runsc-v1; do
  ln -sfn "$built/$program" "$target/$program"
done
