#!/bin/bash
# Installs the packages that Preheat needs on a Debian-like machine, if any is
# missing. `prepare.sh run` is for running it, `prepare.sh test` for its tests,
# `prepare.sh cluster` for a Kubernetes on this machine.
set -euo pipefail

commands="git:git curl:curl jq:jq gcc:gcc pkg-config:pkg-config mmdebstrap:mmdebstrap ip:iproute2 newuidmap:uidmap column:bsdextrautils"
if [ "${1:-run}" = test ]; then
  commands="$commands chromium:chromium"
fi
if [ "${1:-run}" = cluster ]; then
  commands="$commands iptables:iptables nft:nftables ipset:ipset"
fi

missing=()
need() { missing+=("$@"); }
for pair in $commands; do
  command -v "${pair%%:*}" >/dev/null || need "${pair##*:}"
done
command -v buildah >/dev/null || command -v podman >/dev/null || docker info >/dev/null 2>&1 || need buildah
pkg-config --exists libseccomp 2>/dev/null || need libseccomp-dev
command -v npm >/dev/null || need nodejs npm
command -v go >/dev/null || need golang-go

if [ ${#missing[@]} -gt 0 ]; then
  echo "Installing: ${missing[*]}" >&2
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "These packages are missing, and there is no sudo to install them: ${missing[*]}" >&2; exit 1; }
    as_root=sudo
  fi
  command -v apt-get >/dev/null || { echo "Install these packages, by the names they have here: ${missing[*]}" >&2; exit 1; }
  $as_root apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
fi

# Go 1.21 and later fetch the version that go.mod names.
go_version=$(go env GOVERSION)
minor=$(sed -n 's/^go1\.\([0-9]*\).*/\1/p' <<<"$go_version")
[ "${minor:-0}" -ge 21 ] || { echo "Go 1.21 or later is needed; this is $go_version" >&2; exit 1; }
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22 ? 0 : 1)' ||
  { echo "Node.js 20.19, 22.12 or later is needed to build the page; this is $(node --version)" >&2; exit 1; }
