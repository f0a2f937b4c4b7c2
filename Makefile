# `make demo` and `make test` set up everything: a virtual environment in .venv, then the package.
# They use uv if it is on PATH, otherwise venv and pip.

.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
INSTALLED := $(VENV)/.installed
SHELL := /bin/sh

BUILT := build/site
.PHONY: help demo test data-test lab-test course docs docs-test slow reseed mutants notebooks lint wheel release-check types clean

help:
	@echo "make demo       fit RFVM to digits: the exact posterior and three approximations"
	@echo "make test       set up everything and run the tests"
	@echo "make data-test  run the tests that need the data sets of the folder ARDVARK_DATA"
	@echo "make lab-test   run the tests of the laboratory"
	@echo "make course     run every notebook with small settings, and the Python of the pages"
	@echo "make docs       build the site, $(BUILT)/index.html, and the slides of the talk"
	@echo "make docs-test  look at the site: links, search, and twelve pages in a browser"
	@echo "make slow       run the long forms of tests that also have a fast form"
	@echo "make reseed     run the statistical tests with other seeds, ROUNDS=20 times"
	@echo "make mutants    change a FILE in COUNT places, one at a time, and run TESTS on each"
	@echo "make notebooks  execute the notebooks and store their outputs (minutes)"
	@echo "make lint       run ruff and import-linter"
	@echo "make types      run mypy"
	@echo "make wheel      build an sdist and a wheel, install the wheel and try it"
	@echo "make release-check  check sdist and wheel as they would be published, on each Python"
	@echo "make clean      remove the virtual environment and build products"

# Take the first Python >= 3.12 that really runs. A pyenv shim may exist and still refuse to.
$(BIN)/python:
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --seed --python "$(or $(PYTHON),>=3.12)" $(VENV) && exit 0; \
	  echo "uv found no Python >= 3.12; trying those on PATH" >&2; \
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

# Install something, $(2), for the Python $(1). Neither tool compiles what it installs to bytecode:
# Python does so for the modules that are imported, a small part of a gigabyte, when they are.
define install
if command -v uv >/dev/null 2>&1; then \
  uv pip install --quiet --python $(1) -c constraints.txt $(2); \
else \
  $(BIN)/python -m pip --python $(1) install --quiet --disable-pip-version-check --no-compile \
    -c constraints.txt $(2); \
fi
endef

$(INSTALLED): $(BIN)/python pyproject.toml constraints.txt
	@echo "installing ardvark and its dependencies into $(VENV) (takes minutes the first time)"
	@$(call install,$(BIN)/python,-e ".[dev]")
	@touch $@

demo: $(INSTALLED)
	$(BIN)/ardvark compare rfvm digits38 --test-size 0.3 --out results/demo

# One worker per core. The tests of a file stay together, because they share compiled models. The
# order of the files is set in conftest.py.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: $(INSTALLED)
	$(PYTEST)

data-test: $(INSTALLED)
	$(PYTEST) -m data tests lab/tests

lab-test: $(INSTALLED)
	$(PYTEST) lab/tests

course: $(INSTALLED)
	$(PYTEST) -m course tests/notebooks tests/test_readme.py tests/test_examples.py

# The builder has its own extra, installed when it is first asked for.
WITH_DOCS := $(VENV)/.installed-docs
$(WITH_DOCS): $(INSTALLED)
	@$(call install,$(BIN)/python,-e ".[docs]")
	@touch $@

SPHINX := $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env
docs: $(WITH_DOCS)
	rm -rf $(BUILT)
	$(SPHINX) --builder html docs $(BUILT)
	$(SPHINX) --builder revealjs --conf-dir docs/slides docs $(BUILT)/slides
	@echo "the site: $(BUILT)/index.html"

docs-test: docs
	$(BIN)/python -m pytest -m docs tests/docs

slow: $(INSTALLED)
	$(PYTEST) -m slow tests lab/tests

# Draws differ between machines, so an assertion about them must hold with any seed. Without data sets.
ROUNDS ?= 20
FIRST ?= 1
reseed: $(INSTALLED)
	@for i in $$(seq $(FIRST) $$(($(FIRST) + $(ROUNDS) - 1))); do \
	  echo "=== seeds moved by $$i"; \
	  ARDVARK_RESEED=$$i $(PYTEST) -q -m "statistical and not slow and not data" tests lab/tests || exit 1; \
	done

# Changes of operators and constants, COUNT of those in a file drawn by SEED, each under TESTS. In a
# copy of what is committed, for the tool changes files where they lie.
mutants: $(INSTALLED)
	@$(call install,$(BIN)/python,cosmic-ray)
	git worktree add --quiet --detach build/mutants
	cd build/mutants && printf '[cosmic-ray]\nmodule-path = "%s"\ntimeout = 300.0\nexcluded-modules = []\ntest-command = "$(CURDIR)/$(BIN)/python -m pytest -n 0 -xq %s"\n[cosmic-ray.distributor]\nname = "local"\n' \
	  "$(FILE)" "$(TESTS)" > made.toml && $(CURDIR)/$(BIN)/cosmic-ray init made.toml made.sqlite && \
	  $(CURDIR)/$(BIN)/python -c "import random, sqlite3; c = sqlite3.connect('made.sqlite'); ids = sorted(c.execute('select job_id from work_items')); random.Random($(or $(SEED),1)).shuffle(ids); [c.execute(f'delete from {t} where job_id = ?', i) for t in ('mutation_specs', 'work_items') for i in ids[$(or $(COUNT),20):]]; c.commit()" && \
	  $(CURDIR)/$(BIN)/cosmic-ray exec made.toml made.sqlite && $(CURDIR)/$(BIN)/cr-report --show-diff --surviving-only made.sqlite
	git worktree remove --force build/mutants

notebooks: $(INSTALLED)
	$(BIN)/python notebooks/store.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo

# Test the package as a user gets it: a wheel built from the sdist, in a clean environment and from
# another folder. This finds missing modules, which an editable install hides.
CLEAN := build/clean
wheel: $(INSTALLED)
	rm -rf $(CLEAN) dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m venv --without-pip $(CLEAN)
	@$(call install,$(CLEAN)/bin/python,dist/*.whl)
	elsewhere=$$(mktemp -d) && cd "$$elsewhere" && \
	  "$(CURDIR)/$(CLEAN)/bin/ardvark" compare rfvm digits38 --test-size 0.3 --out demo && \
	  test -s demo/report.html && rm -rf "$$elsewhere"

# On each Python of RELEASED, in an empty folder: `make release-check RELEASED="3.12 3.13"`.
RELEASED ?= 3.12 3.13 3.14
release-check: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check twine
	rm -rf dist && $(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m pytest -q tests/test_package.py -k "citation or changelog"
	.ci/release $(RELEASED)

types: $(INSTALLED)
	$(BIN)/mypy -p ardvark -p lab.findings -p lab.matrix -p lab.papers -p lab.yardsticks -p lab.references

clean:
	rm -rf $(VENV) build dist *.egg-info $(addprefix docs/,api jupyter_execute methods models parts project results tutorials)
