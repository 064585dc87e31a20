#!/bin/bash
# Builds a sandbox's root file system from config/images/NAME/Containerfile, once
# for each content of that folder, with buildah, podman or docker.
#
#   sandbox.sh NAME         build if needed, print the folder
#   sandbox.sh NAME path    print the folder
#
# NAME is python, or data, which is built on python. The folder holds rootfs/,
# config.json (the image's configuration) and versions (a language and its
# version on each line). PREHEAT_CACHE names the cache, BASE an image to build
# python on; without BASE, a Debian trixie is bootstrapped, so that no registry
# is needed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
name=${1:-}
context=$here/$name
case $name in
python) below= ;;
data) below=python ;;
*)
  sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
if [ "$(id -u)" = 0 ]; then default=/var/cache/preheat; else default=${XDG_CACHE_HOME:-$HOME/.cache}/preheat; fi
cache=${PREHEAT_CACHE:-$default}
contexts=("$context" ${below:+"$here/$below"})
key=$({ cat "$0" "$here/common.sh"; find "${contexts[@]}" -type f -print0 | sort -z | xargs -0 cat; echo "${BASE:-}"; } | sha256sum | cut -c1-16)
out=$cache/sandbox-$key

if [ "${2:-}" = path ] || [ -e "$out/versions" ]; then
  echo "$out"
  exit
fi

say() { echo "sandbox image $name: $*" >&2; }
# shellcheck source=common.sh
. "$here/common.sh"
mkdir -p "$cache"
[ -z "$below" ] || below=$(PREHEAT_CACHE=$cache "$0" "$below")
exec 9>"$cache/sandbox.lock"
flock 9
if [ -e "$out/versions" ]; then
  echo "$out"
  exit
fi

tool=$(find_engine)

work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
# A store of its own, which goes with the folder; vfs works on every file system.
export STORAGE_DRIVER=vfs
store=(--root "$work/store" --runroot "$work/run")
tag=localhost/preheat-sandbox:$key
base=localhost/preheat-base:$key

# What it is built on: the image below, the one that BASE names, or a new Debian.
mkdir "$work/base"
if [ -n "$below" ]; then
  pack "$below" "$work/base"
elif [ -n "${BASE:-}" ]; then
  base=$BASE
else
  command -v mmdebstrap >/dev/null || { say "mmdebstrap is needed, or BASE, the name of a Debian trixie image"; exit 1; }
  say "bootstrapping Debian trixie"
  mmdebstrap --quiet --variant=minbase trixie "$work/base/rootfs.tar" >&2
  printf 'FROM scratch\nADD rootfs.tar /\n' >"$work/base/Containerfile"
fi

say "building with $tool (a minute or two)"
case $tool in
buildah)
  if [ -e "$work/base/Containerfile" ]; then buildah "${store[@]}" build -q --isolation chroot -t "$base" "$work/base" >/dev/null; fi
  buildah "${store[@]}" build --isolation chroot --build-arg BASE="$base" -t "$tag" "$context" >&2
  buildah "${store[@]}" inspect --type image "$tag" | jq .OCIv1.config >"$work/config.json"
  c=$(buildah "${store[@]}" from "$tag")
  m=$(buildah "${store[@]}" mount "$c")
  mkdir "$work/rootfs"
  cp -a --no-preserve=xattr "$m/." "$work/rootfs/" # xattrs hold capabilities of files
  buildah "${store[@]}" rm "$c" >/dev/null
  ;;
*)
  if [ -e "$work/base/Containerfile" ]; then $tool build -q -t "$base" "$work/base" >/dev/null; fi
  $tool build --build-arg BASE="$base" -t "$tag" "$context" >&2
  $tool inspect --type image --format '{{json .Config}}' "$tag" >"$work/config.json"
  c=$($tool create "$tag")
  mkdir "$work/rootfs"
  $tool export "$c" | tar -C "$work/rootfs" -x
  $tool rm "$c" >/dev/null
  ;;
esac

# While it builds, the builder has a file of its own in this place.
printf '127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n' >"$work/rootfs/etc/hosts"

# Nothing in a sandbox gains rights by a program, and the folder is open to the
# users of the machine that builds it.
find "$work/rootfs" -xdev -perm /6000 ! -type l -exec chmod ug-s {} +

# version PACKAGE: the upstream version of a package in the image.
version() {
  awk -v RS= -v name="$1" '$0 ~ "(^|\n)Package: " name "\n" { match($0, /\nVersion: [^\n]*/); v = substr($0, RSTART + 10, RLENGTH - 10); sub(/^[0-9]+:/, "", v); sub(/[-+][^-]*$/, "", v); sub(/\+.*/, "", v); print v }' "$work/rootfs/var/lib/dpkg/status"
}
printf 'python %s\njavascript %s\nbash %s\n' "$(version "$(readlink "$work/rootfs/usr/bin/python3")")" "$(version nodejs)" "$(version bash)" >"$work/versions"

mkdir -p "$out"
mv "$work/rootfs" "$work/config.json" "$out/"
mv "$work/versions" "$out/"
chmod 755 "$cache" "$out/rootfs"
chmod 711 "$out" # without root, sandboxes pass through it with ids of their own
say "ready: $out"
echo "$out"
