# Preheat. `make run` and `make test` need nothing but a Debian-like machine.

SHELL      := /bin/bash
GO         ?= go
BUILD      := build
CACHE      := $(shell if [ "$$(id -u)" = 0 ]; then echo /var/cache/preheat; else echo "$${XDG_CACHE_HOME:-$$HOME/.cache}/preheat"; fi)
GO_SOURCES  = $(shell git ls-files -co --exclude-standard '*.go' go.mod go.sum 'api/execution/*.yaml' 'api/execution/*.json')
UI_SOURCES  = $(shell git ls-files -co --exclude-standard ui ':!ui/dist' ':!ui/*.go')
# The image of sandboxes on this machine: data, or python, which is smaller.
SANDBOX    ?= data
HARNESS     = $(shell git ls-files -co --exclude-standard functions/runner/harness)

export CACHE

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort | column -t -s "$$(printf '\t')"

.PHONY: run
run: deps build ## Install what is missing, build, and serve on 127.0.0.1:8080
	exec $(BUILD)/bin/preheat

.PHONY: deps
deps: ## Install what building and running needs
	@config/tools/prepare.sh run

# The linker writes a program page by page, and so the kernel keeps it: on pages
# that lie anywhere. Written at once it is kept in large folios, where the file
# system has them, and is found faster after an idle moment.
define in_one_piece
@dd if=$(1) of=$(1).new bs=256M status=none && chmod 755 $(1).new && mv $(1).new $(1)
endef

.PHONY: build
build: $(BUILD)/bin/preheat $(BUILD)/bin/runc $(BUILD)/runner/runner $(BUILD)/sandbox ## Build everything that runs

$(BUILD)/bin/preheat: $(GO_SOURCES) ui/dist/index.html
	$(GO) build -trimpath -o $@ ./functions/standalone
	$(call in_one_piece,$@)

# The same with the race detector, for the tests.
$(BUILD)/bin/preheat-race: $(GO_SOURCES) ui/dist/index.html
	$(GO) build -race -trimpath -o $@ ./functions/standalone

# The runner is PID 1 of sandboxes that have no C library of this machine's.
$(BUILD)/runner/runner: $(GO_SOURCES) $(HARNESS)
	@mkdir -p $(@D)
	cp -r functions/runner/harness/. $(@D)/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ ./functions/runner/cmd
	$(call in_one_piece,$@)
	chmod -R a+rX $(@D)

$(BUILD)/bin/runc: config/tools/runc/go.mod config/tools/runc.sh
	@mkdir -p $(@D)
	config/tools/runc.sh $@

.PHONY: $(BUILD)/sandbox
$(BUILD)/sandbox:
	@mkdir -p $(@D)
	@ln -sfn "$$(PREHEAT_CACHE=$(CACHE) config/images/sandbox.sh $(SANDBOX))" $@

.PHONY: sbom
sbom: $(BUILD)/sandbox ## List what the sandbox image has, with licences: build/sandbox.cdx.json
	$(GO) run ./config/tools/sbom $(BUILD)/sandbox/rootfs >$(BUILD)/sandbox.cdx.json

ui/dist/index.html: $(UI_SOURCES)
	cd ui && npm ci --no-audit --no-fund && npm run build
	@touch $@

.PHONY: test
test: ## Set everything up and run every test
	tests/run.sh

.PHONY: test-fast
test-fast: ui/dist/index.html ## Run the tests that need neither sandboxes nor a cluster
	$(GO) test $$($(GO) list ./... | grep -v /tests/)

.PHONY: clients
clients: deps build ## Call a server with the clients that people have, generated ones among them
	cd tests/clients && npm ci --no-audit --no-fund
	$(GO) test -count=1 ./tests/clients

.PHONY: lint
lint: ## Check format and common mistakes
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck $$($(GO) list ./... | grep -v /api/client/)

.PHONY: bench
bench: deps build ## Measure this machine's sandboxes: build/bench/local.json
	$(GO) run ./tests/bench -out $(BUILD)/bench/local.json

.PHONY: soak
soak: deps build ## Run 10,000 good and hostile programs and look for what they leave
	SOAK=10000 $(GO) test -count=1 -timeout 90m -v -run TestSoak ./tests/load

# HOSTILE is how many programs `make hostile` runs.
HOSTILE ?= 2000

.PHONY: hostile
hostile: deps build ## Run 2,000 hostile programs beside a neighbour, and look for what they leave
	HOSTILE=$(HOSTILE) $(GO) test -count=1 -timeout 90m -v -run TestHostile ./tests/load

.PHONY: orders
orders: deps build ## Run 10,000 programs that write at random, and compare the order
	ORDERS=10000 $(GO) test -count=1 -timeout 120m -v -run TestO7RandomWrites ./tests/e2e/output

.PHONY: clean
clean: ## Remove what was built here; caches stay in $(CACHE)
	rm -rf $(BUILD) ui/node_modules tests/browser/node_modules tests/clients/node_modules
	find ui/dist -mindepth 1 ! -name .gitkeep -delete

include config/make/*.mk
