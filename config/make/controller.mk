# Targets of the controller and its API. The Makefile includes this file.

CLUSTER = go run ./tests/cluster/cmd/cluster

.PHONY: generate generate-check cluster-build race bench-claims

generate: ## Generate clients, deepcopy functions and CRDs
	config/generate.sh

generate-check:
	config/generate.sh --check

cluster-build: ## Build etcd and Kubernetes for the tests, once
	$(CLUSTER) build
