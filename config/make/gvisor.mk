# Targets of gVisor, a second runtime for sandboxes. The Makefile includes this file.

.PHONY: gvisor
gvisor: $(BUILD)/bin/runsc ## Build gVisor's runsc and its containerd shim, once: a second runtime

$(BUILD)/bin/runsc: config/tools/gvisor/go.mod config/tools/gvisor.sh
	config/tools/gvisor.sh $(BUILD)/bin

.PHONY: test-gvisor
test-gvisor: build gvisor ## Test sandboxes of gVisor
	$(GO) test -count=1 ./tests/gvisor
	PREHEAT_RUNTIME=runsc $(GO) test -count=1 -p 1 ./tests/e2e/inside ./tests/e2e/rich ./tests/e2e/differential ./tests/e2e/lifecycle
	$(MAKE) attacks RUNTIME=runsc
