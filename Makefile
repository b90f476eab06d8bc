# `make demo` and `make test` set up all they need. The rest is for people who work on Shoal.
SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
# Half of the time tests wait for other processes, so there are two workers for every processor, up to eight.
WORKERS ?= $(shell workers=$$((2 * $$(nproc))); echo $$((workers < 8 ? workers : 8)))
# Hundreds of processes of a run import Shoal: each would compile it anew where nothing compiled may be kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test check unit disturb fuzz bench docs control-plane helm deploy audit clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: $(VENV)/.ready ## make the Python environment in .venv

$(VENV)/.ready: pyproject.toml tools/setup
	@tools/setup $(VENV)
	@touch $@

demo: setup ## train with 4 workers, then 2, then 3, and draw a picture of it
	@$(BIN)/python examples/pytorch-elastic/demo.py

test: setup check unit ## everything: style, types, layers and all tests

check: setup ## style, types and the layers between rooms
	$(BIN)/ruff check --no-cache
	$(BIN)/ruff format --check --no-cache
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: setup control-plane helm ## the tests alone
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

disturb: setup ## every job scenario with everything that may go wrong, and with many seeds of chance (long)
	SHOAL_SEEDS=$${SHOAL_SEEDS:-200} $(BIN)/pytest -n $(WORKERS) --dist worksteal -m disturbed tests/scenarios

fuzz: setup ## wrong requests and manifests by chance, with a seed that is printed (minutes; SHOAL_FUZZ_SEED repeats one)
	SHOAL_FUZZ_SEED=$${SHOAL_FUZZ_SEED:-$$RANDOM} SHOAL_FUZZ_ROUNDS=$${SHOAL_FUZZ_ROUNDS:-100000} \
		$(BIN)/pytest -s --timeout 0 tests/attacks/test_requests_and_manifests_that_are_wrong_end_in_words.py

control-plane: ## build the real control plane that tests compare with (once)
	@tools/control-plane >/dev/null

helm: ## build the program that renders the chart in tests (once); without it those tests are skipped
	@tools/helm >/dev/null || true

deploy: setup ## write the kustomize base and the CRDs of the chart anew
	@$(BIN)/python tools/render-deploy

audit: setup ## look for known weaknesses in the packages Shoal uses (needs the network, and fails without it)
	@$(BIN)/python tools/audit $(VENV)

bench: setup control-plane ## measure; a table here, JSON under out/bench
	$(BIN)/python bench/run.py

docs: setup ## the documentation as a site, under site/
	$(BIN)/mkdocs build --strict

clean: ## remove what was built here (the control plane's cache stays)
	rm -rf $(VENV) site out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
