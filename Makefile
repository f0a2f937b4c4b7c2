# `make demo` and `make test` do all the set-up: a virtual environment in .venv, then the package.
# uv is used when it is on PATH, else venv and pip.

.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
INSTALLED := $(VENV)/.installed
SHELL := /bin/sh

.PHONY: help demo test slow reseed mutants notebooks lint wheel types clean

help:
	@echo "make demo     the main job: RFVM on digits, exact posterior beside four other methods"
	@echo "make test     set up from nothing and run the tests"
	@echo "make slow     the full forms of the tests that have a fast one (long)"
	@echo "make reseed   the statistical tests under other seeds, ROUNDS=20 times"
	@echo "make mutants  which of 150 small defects the tests see (hours; goes on where it was stopped)"
	@echo "make notebooks  execute the notebooks and store them with their outputs (minutes)"
	@echo "make lint     ruff, import-linter;   make types   mypy"
	@echo "make wheel    build an sdist, of it a wheel; install and try that"
	@echo "make clean    remove the virtual environment"

# The first Python >= 3.12 that really runs: a pyenv shim may exist and refuse.
$(BIN)/python:
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --seed --python "$(or $(PYTHON),>=3.12)" $(VENV) && exit 0; \
	  echo "uv found no Python >= 3.12; trying the ones on PATH" >&2; \
	fi; \
	for p in $(PYTHON) python3.13 python3.12 python3.14 python3 python; do \
	  if $$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then \
	    echo "virtual environment: $$($$p --version)"; \
	    rm -rf $(VENV); $$p -m venv $(VENV) && exit 0; \
	  fi; \
	done; \
	echo "ardvark needs Python 3.12 or newer, and none was found on PATH (python3 is: $$(python3 --version 2>&1))." >&2; \
	echo "Install one (python.org, 'uv python install 3.13' or 'pyenv install 3.13'), or name it: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; \
	exit 1

$(INSTALLED): $(BIN)/python pyproject.toml constraints.txt
	@echo "installing ardvark and what it needs into $(VENV) (some minutes the first time)"
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python -c constraints.txt -e ".[dev]"; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"; \
	fi
	@touch $@

demo: $(INSTALLED)
	$(BIN)/ardvark compare rfvm digits38 --test-size 0.3 --out results/demo

# one worker a core; tests of one file stay together, for they share compiled models; the order of
# the files is that of tests/conftest.py
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: $(INSTALLED)
	$(PYTEST)

slow: $(INSTALLED)
	$(PYTEST) -m slow

# Draws differ from machine to machine: what asserts something about them must hold under any seed.
ROUNDS ?= 20
FIRST ?= 1
reseed: $(INSTALLED)
	@for i in $$(seq $(FIRST) $$(($(FIRST) + $(ROUNDS) - 1))); do \
	  echo "=== seeds moved by $$i"; \
	  ARDVARK_RESEED=$$i $(PYTEST) -q -m "statistical and not slow" || exit 1; \
	done

SAMPLE ?= 150
SEED ?= 1
mutants: $(INSTALLED)
	$(BIN)/python -m benchmarks.mutation --sample $(SAMPLE) --seed $(SEED)

notebooks: $(INSTALLED)
	$(BIN)/python notebooks/store.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo

# The package as a user gets it: the wheel of an sdist, in a clean environment, from another folder.
# Missing modules show here and not in an editable install.
CLEAN := build/clean
wheel: $(INSTALLED)
	rm -rf build dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m venv $(CLEAN)
	$(CLEAN)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	elsewhere=$$(mktemp -d) && cd "$$elsewhere" && \
	  "$(CURDIR)/$(CLEAN)/bin/ardvark" compare rfvm digits38 --test-size 0.3 --out demo && \
	  test -s demo/report.html && rm -rf "$$elsewhere"

types: $(INSTALLED)
	$(BIN)/mypy -p ardvark

clean:
	rm -rf $(VENV) build dist *.egg-info
