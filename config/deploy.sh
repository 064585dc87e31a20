#!/bin/bash
# Installs Preheat on the cluster of kubectl's current context, or removes it:
# `make deploy`, `make undeploy`. It says what is missing before it changes
# anything, and what does not come up after.
#
#   OVERLAY   the kustomization to apply (config/overlays/local)
#   REGISTRY  where the images were pushed to; without it they are loaded into
#             the cluster that `make cluster` brought up
set -euo pipefail

cd "$(dirname "$0")/.."
overlay=${OVERLAY:-config/overlays/local}
registry=${REGISTRY:-}
out=build/deploy
namespaces="llm-sandbox-demo runc-warmpool preheat-system web-ui"

say() { echo "deploy: $*"; }
fail() {
  echo "deploy: $1" >&2
  shift
  for line in "$@"; do echo "        $line" >&2; done
  exit 1
}

kubectl=$(command -v kubectl || command -v oc || true)
[ -n "$kubectl" ] || kubectl=build/bin/kubectl
[ -x "$kubectl" ] || fail "there is no kubectl" "Install it, or run \`make cluster\`, which builds one."
k() { "$kubectl" "$@"; }

context=$(k config current-context 2>/dev/null) ||
  fail "kubectl has no current context" \
    "Choose one with \`kubectl config use-context NAME\`, set KUBECONFIG, or run \`make cluster\`."
server=$(k config view --minify -o 'jsonpath={.clusters[0].cluster.server}')
answer=$(k get --raw=/readyz --request-timeout=10s 2>&1 >/dev/null) ||
  fail "the cluster of context $context at $server does not answer" "$(tail -n 1 <<<"$answer")" \
    "If it is the wrong one: \`kubectl config get-contexts\` lists them. \`make cluster\` starts the local one."
say "context $context at $server"

# The context of a cluster that `make cluster` brought up is preheat-NAME.
local_name=
case $context in
preheat-*) if build/bin/cluster -name "${context#preheat-}" http-port >/dev/null 2>&1; then local_name=${context#preheat-}; fi ;;
esac

if [ "${1:-}" = remove ]; then
  k delete -k "$overlay" --ignore-not-found
  exit
fi

may() { [ "$(k auth can-i create "$@" 2>/dev/null)" = yes ]; }

check_permissions() {
  local missing=() resource name
  for resource in customresourcedefinitions clusterroles validatingadmissionpolicies validatingadmissionpolicybindings; do
    may $resource || missing+=("$resource")
  done
  for resource in roles rolebindings serviceaccounts networkpolicies services.serving.knative.dev; do
    may "$resource" -n llm-sandbox-demo || missing+=("$resource")
  done
  [ ${#missing[@]} -eq 0 ] ||
    fail "$(k auth whoami -o 'jsonpath={.status.userInfo.username}' 2>/dev/null || echo "this user") may not create: ${missing[*]}" \
      "Use a context of an administrator, or ask one to apply: kubectl apply -k $overlay"
  for name in $namespaces; do
    may namespaces || k get namespace "$name" >/dev/null 2>&1 ||
      fail "the namespace $name is missing, and you may not create it" \
        "Ask an administrator for: kubectl create namespace $name"
  done
}

check_knative() {
  k get --raw=/apis/serving.knative.dev/v1 >/dev/null 2>&1 ||
    fail "Knative Serving is not installed on this cluster" \
      "On OpenShift: install the OpenShift Serverless operator and a KnativeServing." \
      "Elsewhere: see https://knative.dev/docs/install/. On this machine: \`make cluster\`."
}

# images makes sure that the cluster has the images, or can get them.
images() {
  local prefix
  if [ -n "$registry" ]; then
    prefix=$registry
  elif [ -n "$local_name" ]; then
    prefix=dev.local/preheat
    load
  else
    fail "the cluster of context $context cannot get images named dev.local/…: it is not the one of \`make cluster\`" \
      "Push them where it can: make push REGISTRY=registry.example.com/preheat" \
      "and deploy from there:  make deploy REGISTRY=registry.example.com/preheat"
  fi
  [ -n "$(config/images/images.sh list)" ] || fail "no images have been built" "Build them with: make images"
  mkdir -p "$out"
  {
    printf 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- ../../%s\nimages:\n' "$overlay"
    config/images/images.sh list | while read -r name tag; do
      for known in preheat dev.local/preheat; do
        printf -- '- {name: %s/%s, newName: %s/%s, newTag: "%s"}\n' "$known" "$name" "$prefix" "$name" "$tag"
      done
    done
  } >"$out/kustomization.yaml"
}

load() {
  local have name tag
  have=$(build/bin/cluster -name "$local_name" images)
  config/images/images.sh list | while read -r name tag; do
    grep -qx "dev.local/preheat/$name:$tag" <<<"$have" && continue
    say "loading the image of $name"
    build/bin/cluster -name "$local_name" load "build/images/$name.tar"
  done
}

# explain shows why something does not come up, and gives up.
explain() { # NAMESPACE WHAT
  echo "deploy: $2 did not become ready. What the cluster says:" >&2
  k get pods -n "$1" >&2 || true
  k get events -n "$1" --field-selector type=Warning --sort-by=.lastTimestamp 2>/dev/null | tail -n 5 >&2 || true
  if no_image "$1"; then
    echo "deploy: the cluster cannot get an image: push it (make push REGISTRY=…), or correct REGISTRY" >&2
  fi
  exit 1
}

no_image() { # NAMESPACE
  k get pods -n "$1" -o jsonpath='{.items[*].status.containerStatuses[*].state.waiting.reason}' 2>/dev/null | grep -qE 'ImagePull|ErrImage|InvalidImageName'
}

# await runs a command that waits for something to be ready, until it ends or an
# image turns out to be missing, which no waiting mends.
await() { # NAMESPACE COMMAND...
  local namespace=$1 waiting status=0 missing=0
  shift
  "$@" >/dev/null &
  waiting=$!
  while kill -0 $waiting 2>/dev/null; do
    if no_image "$namespace"; then missing=$((missing + 1)); else missing=0; fi
    if [ $missing -ge 10 ]; then
      kill $waiting 2>/dev/null || true
      break
    fi
    sleep 1
  done
  wait $waiting || status=$?
  return $status
}

check_knative
check_permissions
images

k apply --server-side --force-conflicts -k config/crds >/dev/null
for crd in sandboxtemplates sandboxwarmpools sandboxclaims; do
  # A definition that has no conditions at all yet is an error to kubectl.
  for try in $(seq 20); do
    k wait --for=condition=Established --timeout=60s "crd/$crd.sandbox.preheat.dev" >/dev/null 2>&1 && break
    [ "$try" -lt 20 ] || fail "the resource $crd is not served by the cluster"
    sleep 0.3
  done
done
k apply --server-side --force-conflicts -k "$out" | sed 's/ serverside-applied//' | sort | uniq | sed 's/^/  /'
say "waiting until everything is ready"
await preheat-system "$kubectl" rollout status deployment/preheat-controller -n preheat-system --timeout=180s || explain preheat-system "the controller"
await runc-warmpool "$kubectl" wait --for=condition=Ready sandboxwarmpool/code-sandbox-pool -n runc-warmpool --timeout=180s ||
  { k get sandboxwarmpool code-sandbox-pool -n runc-warmpool -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason} {.message}{"\n"}{end}' >&2; explain runc-warmpool "the pool of sandboxes"; }
for name in execute chat; do
  await llm-sandbox-demo "$kubectl" wait --for=condition=Ready "ksvc/$name" -n llm-sandbox-demo --timeout=180s ||
    { k get ksvc "$name" -n llm-sandbox-demo -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason} {.message}{"\n"}{end}' >&2; explain llm-sandbox-demo "the Knative Service $name"; }
done
await web-ui "$kubectl" rollout status deployment/chat-ui -n web-ui --timeout=180s || explain web-ui "chat-ui"

k get ksvc -n llm-sandbox-demo
k get sandboxwarmpool -n runc-warmpool
url=$(k get ksvc chat -n llm-sandbox-demo -o 'jsonpath={.status.url}')
if [ -n "$local_name" ]; then
  host=${url#http://}
  port=$(build/bin/cluster -name "$local_name" http-port)
  url=$url:$port
fi
echo
echo "The page: $url"
echo "A run:    curl -s $url/v1/sandbox/execute -H 'Content-Type: application/json' -d '{\"language\":\"python\",\"code\":\"print(\\\"Hello from a sandbox!\\\")\"}'"
[ -z "$local_name" ] ||
  echo "Clients that do not resolve names below localhost, as in Python, Go, Java or Node.js: http://127.0.0.1:$port with the header Host: $host"
