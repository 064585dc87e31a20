# Targets of gVisor, a second runtime for sandboxes. The Makefile includes this file.

.PHONY: gvisor
gvisor: $(BUILD)/bin/runsc ## Build gVisor's runsc and its containerd shim, once: a second runtime

$(BUILD)/bin/runsc: config/tools/gvisor/go.mod config/tools/gvisor.sh
	config/tools/gvisor.sh $(BUILD)/bin
