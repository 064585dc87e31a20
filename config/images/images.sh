#!/bin/bash
# Builds the images of the platform with buildah, podman or docker, without a
# registry, and keeps each as an OCI archive.
#
#   images.sh build [NAME...]         build/images/NAME.tar of chat, execute, controller, sandbox;
#                                     sandbox-data has more libraries, and is built when named
#   images.sh push REGISTRY [NAME...] push what was built as REGISTRY/NAME:TAG
#   images.sh list                    print NAME and TAG of what was built
#
# The tag is a digest of what the image is built from, so that a changed image
# has another name and is rolled out. CACHE holds what is slow to make.
set -euo pipefail

cd "$(dirname "$0")/../.."
out=build/images
CACHE=${CACHE:-/var/cache/preheat}
cache=$CACHE/images
names="chat execute controller sandbox"
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)

say() { echo "images: $*" >&2; }

# shellcheck source=common.sh
. config/images/common.sh
tool=$(find_engine)
engine() {
  if [ $tool = docker ]; then docker "$@"; else $tool --root "$cache/store" --runroot "$cache/run" "$@"; fi
}
build() {
  if [ $tool = buildah ]; then engine build --isolation chroot --layers=false -q "$@" >/dev/null; else engine build -q "$@" >/dev/null; fi
}
save() { # NAME REFERENCE
  rm -f "$out/$1.tar.new"
  case $tool in
  buildah) engine push -q --disable-compression "$2" "oci-archive:$out/$1.tar.new:$2" ;;
  podman) engine save -q --uncompressed --format oci-archive -o "$out/$1.tar.new" "$2" ;;
  docker) engine save -o "$out/$1.tar.new" "$2" ;; # in OCI layout, as of version 25
  esac
  mv "$out/$1.tar.new" "$out/$1.tar"
}
digest() { find "$@" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-12; }

# base builds an image of a sandbox's file system, once, and prints its name.
base() { # NAME
  local dir reference work
  dir=$(PREHEAT_CACHE=$CACHE config/images/sandbox.sh "$1")
  reference=localhost/preheat-$(basename "$dir")
  if ! engine inspect --type image "$reference" >/dev/null 2>&1; then
    say "packing the file system of sandbox image $1"
    work=$(mktemp -d "$cache/base.XXXXXX")
    pack "$dir" "$work"
    build -t "$reference" "$work"
    rm -rf "$work"
  fi
  echo "$reference"
}

# describe prints what an image's labels say.
describe() {
  case $1 in
  chat) echo "The page and the OpenAI-compatible API in front of a language model" ;;
  execute) echo "Runs programs in warm sandboxes" ;;
  controller) echo "Keeps pools of sandboxes warm" ;;
  esac
}

# context fills the folder that an image is built from, and yields its arguments,
# one per line.
context() {
  local dir=$out/$1 base
  rm -rf "$dir"
  mkdir -p "$dir"
  case $1 in
  sandbox | sandbox-data)
    cp -r build/runner "$dir/runner"
    find "$dir" -name __pycache__ -prune -exec rm -rf {} +
    cp config/images/sandbox/Containerfile "$dir/"
    case $1 in
    sandbox) base=$(base python) ;;
    sandbox-data) base=$(base data) ;;
    esac
    echo "--build-arg=BASE=$base"
    ;;
  *)
    cp "build/programs/$1" "$dir/preheat"
    cp /etc/ssl/certs/ca-certificates.crt config/images/program/Containerfile "$dir/"
    printf '%s\n' "--build-arg=TITLE=Preheat $1" "--build-arg=DESCRIPTION=$(describe "$1")"
    ;;
  esac
}

build_image() {
  local args lines tag reference
  lines=$(context "$1")
  mapfile -t args <<<"$lines"
  tag=$({ digest "$out/$1"; echo "$lines"; } | sha256sum | cut -c1-12)
  reference=dev.local/preheat/$1:$tag
  if [ -e "$out/$1.tar" ] && [ "$(cat "$out/$1.tag" 2>/dev/null)" = "$tag" ]; then return; fi
  say "building $reference"
  build "${args[@]}" --build-arg VERSION="$version" --build-arg REVISION="$revision" -t "$reference" "$out/$1"
  save "$1" "$reference"
  echo "$tag" >"$out/$1.tag"
}

built() { for name in $names sandbox-data; do [ ! -e "$out/$name.tag" ] || echo "$name"; done; }

mkdir -p "$out" "$cache"
command=${1:-}
shift || true
case $command in
build)
  for name in ${*:-$names}; do build_image "$name"; done
  ;;
push)
  registry=${1:?images.sh push REGISTRY}
  shift
  for name in ${*:-$(built)}; do
    tag=$(cat "$out/$name.tag")
    say "pushing $registry/$name:$tag"
    engine tag "dev.local/preheat/$name:$tag" "$registry/$name:$tag"
    engine push "$registry/$name:$tag"
  done
  ;;
list)
  for name in $(built); do echo "$name $(cat "$out/$name.tag")"; done
  ;;
*)
  sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
