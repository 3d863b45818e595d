# The words of everyday work; `make` alone lists them. All but bench are parts of .ci/run, which CI runs as a whole.
.PHONY: help all test nits docs bench fuzz release
help:
	@awk -F ':.*## ' '/^[a-z]*:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

all: ## everything that a change must pass, as CI runs it: about 45 minutes on two cores, from nothing
	.ci/run
test: ## the tests of Rust and Python, on real checkpoints where they can be fetched
	.ci/run test
nits: ## format, lints, and what may be depended on
	.ci/run nits
docs: ## the documents of every crate, and the site
	.ci/run docs
bench: ## the exact engine and training against their naive forms; CONTRIBUTING.md lists all measurements
	cargo bench --bench finite_prompt --bench regression
fuzz: ## specifications and checkpoints, a minute each; make fuzz SECONDS=600 for longer
	fuzz/run $(or $(SECONDS),60)
release: ## the wheel, the source distribution, the archive and the crates, made and tried out without Rust
	.ci/run release
