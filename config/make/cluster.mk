# Targets of images and clusters. The Makefile includes this file.
#
# CLUSTER_NAME tells clusters on this machine apart, and CLUSTER_FLAGS gives them
# ports of their own. OVERLAY is what is deployed, REGISTRY where its images are;
# without it they are loaded into the cluster that `make cluster` brought up.
# IMAGES names what `make images` builds, where not all: sandbox-data.
# BURST is how many events `make events` sends at once.

CLUSTER_NAME ?= main
CLUSTER_FLAGS ?=
OVERLAY      ?= config/overlays/local
REGISTRY     ?=
IMAGES       ?=
BURST        ?= 500
PROGRAMS      = $(BUILD)/programs/chat $(BUILD)/programs/execute $(BUILD)/programs/controller

# The current context is what kubectl says. Where nothing says so, it is the
# cluster of `make cluster`.
ifeq ($(KUBECONFIG)$(wildcard $(HOME)/.kube/config),)
export KUBECONFIG := /var/lib/preheat-cluster/$(CLUSTER_NAME)/kubeconfig
endif
export REGISTRY OVERLAY

.PHONY: cluster
cluster: deps-cluster $(BUILD)/bin/cluster $(BUILD)/bin/runc ## Bring up a Kubernetes with Knative on this machine
	$(BUILD)/bin/cluster build all
	@ln -sfn "$$($(BUILD)/bin/cluster which kubectl)" $(BUILD)/bin/kubectl
	$(BUILD)/bin/cluster -name $(CLUSTER_NAME) $(CLUSTER_FLAGS) up

.PHONY: cluster-down
cluster-down: $(BUILD)/bin/cluster ## Take that cluster down and remove what it left
	$(BUILD)/bin/cluster -name $(CLUSTER_NAME) down

.PHONY: deps-cluster
deps-cluster:
	@config/tools/prepare.sh cluster

.PHONY: $(BUILD)/bin/cluster
$(BUILD)/bin/cluster:
	@$(GO) build -trimpath -o $@ ./tests/cluster/cmd/cluster

$(BUILD)/programs/chat: $(GO_SOURCES) ui/dist/index.html
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ ./functions/chat/cmd

$(BUILD)/programs/execute: $(GO_SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ ./functions/execute/cmd

$(BUILD)/programs/controller: $(GO_SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ ./controller/cmd

.PHONY: images
images: $(PROGRAMS) $(BUILD)/runner/runner ## Build the images: build/images/*.tar
	config/images/images.sh build $(IMAGES)

.PHONY: push
push: images ## Push the images to REGISTRY
	@test -n "$(REGISTRY)" || { echo "Say where to: make push REGISTRY=registry.example.com/preheat" >&2; exit 1; }
	config/images/images.sh push $(REGISTRY)

.PHONY: deploy
deploy: images $(BUILD)/bin/cluster ## Install Preheat on the current context's cluster
	config/deploy.sh

.PHONY: undeploy
undeploy: ## Remove Preheat from the current context's cluster
	config/deploy.sh remove

.PHONY: walkthrough
walkthrough: ## Do what the README's walkthrough does on the current context's cluster, and check it
	$(GO) test -count=1 -v -run TestWalkthrough ./tests/walkthrough

.PHONY: events
events: ## Send programs through a Knative Broker on the current context's cluster, and check their results
	BURST=$(BURST) $(GO) test -count=1 -timeout 30m -v -run TestEvents ./tests/walkthrough

.PHONY: bench-cluster
bench-cluster: $(BUILD)/bin/cluster ## Measure the local cluster: build/bench/cluster.json
	$(BUILD)/bin/cluster -name $(CLUSTER_NAME) exec $(GO) run ./tests/bench/cluster -out $(BUILD)/bench/cluster.json
