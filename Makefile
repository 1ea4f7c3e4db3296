# The commands of this house. `make` alone lists them; everything runs inside .venv, which `setup` makes.
# Works with GNU make 3.81 (macOS) and later.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup up test check format soak bench clean
.SUFFIXES:

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(INSTALLED) ## make .venv and install raddle with its tools (again only when the requirements change)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'raddle needs Python 3.11 or newer as $(PYTHON).' >&2; \
	  echo 'Install it, or name another: make setup PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo '$(PYTHON) has no venv module. On Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@echo 'Installing raddle into .venv …'
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input \
	  --constraint constraints.txt --editable '.[server,mcp,dev]'
	@touch $(INSTALLED)

up: setup ## start: bring in what this machine's agents have (DEMO=1: made-up sessions instead)
	@$(BIN)/raddle up $(if $(DEMO),--demo) $(ARGS)

test: setup ## run the tests, without the long ones (ARGS=… goes to pytest)
	@$(BIN)/python -m pytest -n 3 --dist worksteal -m 'not soak' $(ARGS)

check: setup ## the whole gate: format, lint, types, import contracts, tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(MAKE) --no-print-directory test

format: setup ## lay the code out and mend what a tool can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

soak: setup ## run the long tests, with many more examples
	@RADDLE_HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -m soak --timeout 0 $(ARGS)

bench: setup ## measure (ARGS=… goes to the benchmark)
	@$(BIN)/python -m bench $(ARGS)

clean: ## remove .venv and every cache; never a thread
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
