#!/usr/bin/env bash
# Generates deepcopy functions, clients and CRDs of api/sandbox. With --check
# it changes nothing, and fails when what is there is not what it would make.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check=${1:-}
mod=github.com/preheat-dev/preheat
api=$mod/api/sandbox/v1alpha1
client=$mod/api/client

mkdir "$work/bin"
(cd "$root/config/tools/generate" && go build -o "$work/bin/" tool && go build -o "$work/bin/" ./trimcrd)
export PATH=$work/bin:$PATH

# The generators read a whole module, so they work on a copy of the API in it.
src=$root
if [[ $check == --check ]]; then
	src=$work/src
	mkdir "$src"
	cp -r "$root"/{go.mod,go.sum,api} "$src/"
	mkdir "$src/internal"
	cp -r "$root/internal/language" "$src/internal/" # of which api/execution is made
	mkdir -p "$src/config/crds"
fi
cd "$src"
: >"$work/header"
header=(--go-header-file "$work/header")

rm -rf api/client api/sandbox/v1alpha1/zz_generated.deepcopy.go config/crds/sandbox*.yaml
deepcopy-gen "${header[@]}" --output-file zz_generated.deepcopy.go ./api/sandbox/v1alpha1
client-gen "${header[@]}" --clientset-name versioned --input-base "" --input "$api" \
	--output-pkg "$client/clientset" --output-dir api/client/clientset
lister-gen "${header[@]}" --output-pkg "$client/listers" --output-dir api/client/listers "$api"
informer-gen "${header[@]}" --versioned-clientset-package "$client/clientset/versioned" \
	--listers-package "$client/listers" --output-pkg "$client/informers" \
	--output-dir api/client/informers "$api"
injection-gen "${header[@]}" --input-dirs "$api" \
	--versioned-clientset-package "$client/clientset/versioned" \
	--external-versions-informers-package "$client/informers/externalversions" \
	--listers-package "$client/listers" --output-package "$client/injection" \
	--output-dir api/client/injection
gofmt -w api/client

controller-gen crd paths=./api/sandbox/... output:crd:dir="$work/crds"
for crd in "$work"/crds/*.yaml; do
	name=${crd##*/sandbox.preheat.dev_}
	trimcrd <"$crd" >"config/crds/${name%.yaml}.yaml"
done

if [[ $check == --check ]]; then
	for path in api config/crds; do
		if ! diff -r -x kustomization.yaml "$root/$path" "$src/$path"; then
			echo "generated files are not up to date: run make generate" >&2
			exit 1
		fi
	done
fi
