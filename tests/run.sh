#!/bin/bash
# Runs every test, with all that they need: `make test`. Each step says how long
# it took; the first that fails ends the run. STEPS names some of them, as in
# STEPS="unit e2e", or STEPS=walkthrough, which has a cluster of its own. SLOW=3
# leaves the tests a third of each processor: other loops take the rest.
set -euo pipefail

cd "$(dirname "$0")/.."
steps=${STEPS:-"deps build lint generated unit page e2e clients attacks load browser bench cluster walkthrough"}
logs=build/logs
mkdir -p "$logs"
started=$SECONDS

# The cluster's programs take minutes to build where no cache has them. They are
# built beside everything else, which goes first.
background=
if [[ " $steps " =~ " cluster "|" walkthrough " ]]; then
  rm -f "$logs/cluster-build.ended"
  { nice -n 15 make cluster-build CLUSTER_TOOLS=all >"$logs/cluster-build.log" 2>&1 && result=ok || result=failed; echo $result >"$logs/cluster-build.ended"; } &
  background=$!
fi

loops=
for _ in $(seq $(((${SLOW:-1} - 1) * $(nproc)))); do
  (while :; do :; done) &
  loops="$loops $!"
done
# shellcheck disable=SC2086 # many numbers, or none
trap 'kill $background $loops 2>/dev/null || true' EXIT

deps() { config/tools/prepare.sh test; }

build() {
  make build build/bin/preheat-race
  (cd tests/browser && npm ci --no-audit --no-fund)
}

lint() { make lint; }
generated() { make generate-check; }
unit() { go test -race $(go list ./... | grep -v /tests/); }

page() {
  cd ui
  npm run check
  npm test
}

e2e() { go test -count=1 -p 1 -timeout 20m $(go list ./tests/... | grep -E '/tests/(e2e|openapi|attacks/report)'); }
attacks() { make attacks; }

clients() { make clients; }

# Once more, some of it with a server that has the race detector: a race in it
# fails the test that stops it.
load() {
  go test -count=1 -p 1 -timeout 20m -v ./tests/load
  PREHEAT_BINARY=$PWD/build/bin/preheat-race go test -count=1 -p 1 -timeout 20m ./tests/e2e/lifecycle ./tests/e2e/ending ./tests/e2e/output
}

browser() {
  local log=$PWD/$logs/browser-server.log state
  state=$(mktemp -d)
  PREHEAT_LISTEN=127.0.0.1:0 PREHEAT_STATE_DIR=$state PREHEAT_LLM_DISCOVER=false build/bin/preheat 2>"$log" &
  local server=$! url= status=0
  for _ in $(seq 300); do
    url=$(sed -n 's/.*msg=listening url=\(.*\)/\1/p' "$log")
    if [ -n "$url" ] && curl -sf -o /dev/null "$url/readyz"; then break; fi
    kill -0 "$server" || { cat "$log"; return 1; }
    sleep 0.1
  done
  (cd tests/browser && PREHEAT_URL=$url npm test) || status=$?
  kill "$server"
  wait "$server" || status=$?
  rm -rf "$state"
  return "$status"
}

bench() { go run ./tests/bench -n 40 -sustained 4s -out build/bench/smoke.json; }

# cluster_built waits for what is built in the background.
cluster_built() {
  local shown=
  while [ ! -e "$logs/cluster-build.ended" ]; do
    if [ "$shown" != "$(tail -n 1 "$logs/cluster-build.log")" ]; then
      shown=$(tail -n 1 "$logs/cluster-build.log")
      echo "building the cluster's programs: $shown"
    fi
    sleep 5
  done
  [ "$(cat "$logs/cluster-build.ended")" = ok ] || { tail -n 40 "$logs/cluster-build.log"; return 1; }
}

cluster() {
  cluster_built
  go test -count=1 -p 1 -timeout 30m $(go list ./tests/... | grep -E '/tests/(apiserver|cluster)')
}

# A cluster of its own, beside one that may be in use, which goes in any case.
walkthrough() {
  export CLUSTER_NAME=walkthrough PREHEAT_CLUSTER=walkthrough CLUSTER_FLAGS="-api-port 7443 -http-port 8188"
  export KUBECONFIG=/var/lib/preheat-cluster/$CLUSTER_NAME/kubeconfig OVERLAY=config/overlays/local REGISTRY=
  cluster_built
  trap walkthrough_ends EXIT
  make gvisor
  make cluster
  make deploy
  go test -count=1 -timeout 20m ./tests/walkthrough
}

walkthrough_ends() {
  local status=$? log=$PWD/$logs/walkthrough.log
  {
    build/bin/cluster kubectl get all,ksvc,sandboxwarmpools,sandboxclaims -A -o wide
    build/bin/cluster kubectl get events -A --sort-by=.lastTimestamp
    build/bin/cluster logs
  } >"$log" 2>&1 || true
  [ $status = 0 ] || echo "what the cluster said is in $log"
  make cluster-down || status=$?
  exit $status
}

for step in $steps; do
  echo "=== $step"
  began=$SECONDS
  # In a shell of its own, so that set -e holds inside.
  (set -e; "$step") &
  if ! wait $!; then
    echo "=== $step failed after $((SECONDS - began)) s"
    exit 1
  fi
  echo "=== $step took $((SECONDS - began)) s"
done
echo "=== all of it took $((SECONDS - started)) s"
