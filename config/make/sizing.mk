# Targets of the pool's size. The Makefile includes this file.

.PHONY: sizing
sizing: ## Replay recorded arrivals against policies of the pool's size, and print what each is worth
	$(GO) run ./tests/sizing
