# The attack suite. The Makefile includes this file. RUNTIME is runc or runsc.

RUNTIME ?= runc

# The attacks that fail as they do with runc; docs/security.md lists the others.
HELD_BY_GVISOR = S13|S14SystemCalls|S14SetuidPrograms|S14KernelMemory|S14NoSecrets|S14ProcessesOfOthers|S14NoWayToSucceed|S14AProgramMayLowerItself|SocketMemory|MemoryOfAll|RareProtocols

attacks_runc   = .
attacks_runsc  = $(HELD_BY_GVISOR)

.PHONY: attacks
attacks: build $(if $(filter runsc,$(RUNTIME)),gvisor) ## Attack the sandboxes of RUNTIME (runc, runsc) from within, and print what held
	@test -n "$(attacks_$(RUNTIME))" || { echo "RUNTIME is runc or runsc, not $(RUNTIME)" >&2; exit 1; }
	@set -o pipefail; PREHEAT_RUNTIME=$(RUNTIME) $(GO) test -json -count=1 -timeout 20m -run '$(attacks_$(RUNTIME))' ./tests/attacks | $(GO) run ./tests/attacks/report
