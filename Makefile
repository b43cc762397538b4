# Each recipe is the plain command one could type; CONTRIBUTING.md says more.

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench docs dist versions clean

PYTHON ?= python3
BIN := .venv/bin
APT := apt-get install -y python3 python3-venv make

help: ## Show the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

setup: .venv/.ok ## Create .venv with pinned versions (minutes once, then instant)

.venv/.ok: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tune_guard needs Python 3.11 or newer as $(PYTHON). On Debian: $(APT)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	  { echo "$(PYTHON) cannot create environments. On Debian: $(APT)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -c constraints.txt -e '.[all,dev,docs]'
	@touch $@

demo: setup ## Run a Ray sweep and an Optuna study on real data, compare the reasons
	$(BIN)/python -m examples.demo

test: setup ## Run every test
	$(BIN)/pytest -q --doctest-modules tune_guard
	$(BIN)/pytest -n 2 --ignore=tests/integration
	$(BIN)/pytest -n 2 tests/integration

check: setup ## Lint, formatting, types, direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: setup ## Measure the guard's cost (minutes)
	$(BIN)/python -m tests.benchmarks

docs: setup ## Build guides and API reference into docs/_build, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build

dist: setup ## Build wheel and sdist into dist, try them in empty environments
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/pytest tests/integration/packaging

versions: setup ## Run the oldest and newest engines and Pythons (an hour, nightly)
	$(BIN)/python -m tests.versions

clean: ## Remove the environment and every cache
	rm -rf .venv .*_cache .hypothesis dist docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
