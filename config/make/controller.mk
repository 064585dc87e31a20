# Targets of the controller and its API. The Makefile includes this file.

CLUSTER = go run ./tests/cluster/cmd/cluster

.PHONY: generate generate-check cluster-build race bench-claims

generate: ## Generate clients, deepcopy functions and CRDs
	config/generate.sh

generate-check:
	config/generate.sh --check

# CLUSTER_TOOLS are etcd and Kubernetes unless it names others, or all.
cluster-build: ## Build etcd and Kubernetes for the tests, once
	$(CLUSTER) build $(CLUSTER_TOOLS)

RACE_CLAIMS ?= 100000

race: cluster-build ## Let 100,000 claims race for sandboxes on a real API server
	go test -v -count=1 -timeout 120m ./tests/apiserver/race -args -claims=$(RACE_CLAIMS)

bench-claims: cluster-build ## Measure claims on a real API server: build/bench/claims.json
	go test -v -count=1 -timeout 20m -run TestClaimLatency ./tests/apiserver/bench -args -n=300 -out=$(CURDIR)/build/bench/claims.json
