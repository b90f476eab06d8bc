# `make demo` and `make test` set up what they need. The other targets are for development.
SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
# Tests spend half of their time waiting for other processes: two workers per processor, at most eight.
WORKERS ?= $(shell workers=$$((2 * $$(nproc))); echo $$((workers < 8 ? workers : 8)))
# Hundreds of processes of a test run import Shoal; without .pyc files each of them would compile it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test check unit disturb fuzz bench docs control-plane helm deploy audit clean

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: $(VENV)/.ready ## create the Python environment in .venv

$(VENV)/.ready: pyproject.toml tools/setup
	@tools/setup $(VENV)
	@touch $@

demo: setup ## train with 4 workers, then 2, then 3, and plot the training
	@$(BIN)/python examples/pytorch-elastic/demo.py

test: setup check unit ## style, types, import layers and all tests

check: setup ## style, types and import layers
	$(BIN)/ruff check --no-cache
	$(BIN)/ruff format --check --no-cache
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: setup control-plane helm ## run the tests only
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

disturb: setup ## run every job scenario with all injected faults and many random seeds (long)
	SHOAL_SEEDS=$${SHOAL_SEEDS:-200} $(BIN)/pytest -n $(WORKERS) --dist worksteal -m disturbed tests/scenarios

fuzz: setup ## send random invalid requests and manifests (minutes; prints its seed, SHOAL_FUZZ_SEED repeats it)
	SHOAL_FUZZ_SEED=$${SHOAL_FUZZ_SEED:-$$RANDOM} SHOAL_FUZZ_ROUNDS=$${SHOAL_FUZZ_ROUNDS:-100000} \
		$(BIN)/pytest -s --timeout 0 tests/attacks/test_requests_and_manifests_that_are_wrong_end_in_words.py

control-plane: ## build the Kubernetes control plane for the tests (once)
	@tools/control-plane >/dev/null

helm: ## build helm for the tests of the chart (once); without it they are skipped
	@tools/helm >/dev/null || true

deploy: setup ## regenerate the kustomize base and the CRDs of the chart
	@$(BIN)/python tools/render-deploy

audit: setup ## check dependencies for known vulnerabilities (fails without network)
	@$(BIN)/python tools/audit $(VENV)

bench: setup control-plane ## run the benchmarks; prints a table, writes JSON to out/bench
	$(BIN)/python bench/run.py

docs: setup ## build the documentation site in site/
	$(BIN)/mkdocs build --strict

clean: ## remove build output (the control plane's cache stays)
	rm -rf $(VENV) site out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
