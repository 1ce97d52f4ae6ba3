# On a fresh machine with git, make and Python 3.11 or newer:
#
#   make demo       lint and fix a released vLLM, then prove a fix on real tensors
#   make test       the whole test suite
#   make accuracy   precision and recall on released trees, from labelled findings
#   make mutation   how many injected hazards are found in clean hooks of released trees
#
# All build their own environment in $(VENV) the first time.

VENV ?= .venv
# The first Python that is new enough, unless PYTHON says which.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
# On Linux the default index has CUDA builds of torch, which are large. For the CPU build:
#   PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make test
TORCH ?= torch==2.13.0

BIN := $(VENV)/bin
# -qq drops pip's progress and its warnings about index locations; errors are still shown.
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help demo test engine accuracy mutation lint format docs dev clean
.DELETE_ON_ERROR:

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile
	@echo "Also: make engine (builds what the engine tests run in), make lint, make format, make docs, make clean (removes $(VENV) and caches)"

demo: $(VENV)/.installed-runtime
	@$(BIN)/python examples/demo.py $(DEMO_ARGUMENTS)

test: $(VENV)/.installed-dev engine
	$(BIN)/python -m pytest $(PYTEST_ARGUMENTS)

# The real vLLM on a CPU, 1.5 GB in the user's cache (or in $$REBINDLINT_ENGINE_ENV), shared by all checkouts.
engine: $(BIN)/python
	@$(BIN)/python tests/engine/environment.py

accuracy: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.accuracy $(ACCURACY_ARGUMENTS)

mutation: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.mutation $(MUTATION_ARGUMENTS)

# What .ci/run asks of the sources.
lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m rebindlint.docs --check

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.installed-dev
	$(BIN)/python -m rebindlint.docs

dev: $(VENV)/.installed-dev

clean:
	rm -rf $(VENV) .ci/venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .rebindlint_cache

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "error: Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python" >&2; exit 2; fi
	@"$(PYTHON)" -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and f"error: $(PYTHON) is {v}; Python 3.11 or newer is needed")'
	@echo "Building an environment in $(VENV) with $$($(PYTHON) --version) ..."
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
		echo "error: $(PYTHON) cannot build an environment; on Debian and Ubuntu install python3-venv" >&2; exit 2; }

# The development environment serves the demo as well.
$(VENV)/.installed-runtime: pyproject.toml | $(BIN)/python
	@if [ $(VENV)/.installed-dev -nt pyproject.toml ]; then touch $@; else \
		echo "Installing rebindlint and $(TORCH) ..." && $(PIP) -e ".[runtime]" "$(TORCH)" && touch $@; fi

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "Installing rebindlint with its development tools and $(TORCH) ..."
	@$(PIP) -e ".[dev,runtime]" "$(TORCH)"
	@touch $@ $(VENV)/.installed-runtime
