# Everything a developer types. `make` alone lists the targets.
#
# The environment .venv is built from the lock in requirements/ by plain venv and pip, and again only when the
# lock or pyproject.toml changes. Two levels share it: the server's requirements, enough for the demo, and the
# developer's, which hold the server's at the same versions.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check
NAME   ?=
EXAMPLES ?= 1200
MINUTES ?= 60

SERVER_READY := $(VENV)/server.stamp
DEV_READY    := $(VENV)/dev.stamp

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(SERVER_READY) ## a Kafka node, a broker, a year of flights, over fourteen thousand standing queries
	$(VENV)/bin/tureen demo $(ARGS)

.PHONY: demo-spark
demo-spark: $(DEV_READY) ## flights from files through Spark to the broker, its answers to an archive, and back
	$(VENV)/bin/tureen demo-spark $(ARGS)

SHARED_OUT = --dist loadscope --no-loadscope-reorder

.PHONY: test
test: $(DEV_READY) ## the tests, with every service they need; random examples are the same ones each time
	$(PY) -m pytest --numprocesses 3 $(SHARED_OUT) -r fER --durations=50 --durations-min=2 $(ARGS)

.PHONY: test-spark
test-spark: $(DEV_READY) ## the tests of the Spark jobs alone, which share one session
	$(PY) -m pytest tests/spark $(ARGS)

.PHONY: test-slow
test-slow: $(DEV_READY) ## fault and load runs, minutes long, then test-random
	$(PY) -m pytest -m slow --timeout 1800 $(ARGS)
	@$(MAKE) test-random

# The tests come in an order by chance and are left out once the time is over; what fails is printed with its blob.
.PHONY: test-random
test-random: $(DEV_READY) ## new random examples, EXAMPLES=1200 a test, for as many tests as MINUTES=60 have time for
	@now=$$(date +%s); echo "HYPOTHESIS_EXAMPLES=$(EXAMPLES) --hypothesis-seed=$$now"; \
	HYPOTHESIS_PROFILE=thorough HYPOTHESIS_EXAMPLES=$(EXAMPLES) $(PY) -m pytest -m 'hypothesis and not slow' \
		--hypothesis-seed=$$now --until $$(( now + 60 * $(MINUTES) )) --numprocesses 2 $(SHARED_OUT) \
		--timeout 3600 $(ARGS)

.PHONY: lint
lint: $(DEV_READY) ## style and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	+@$(call WITH_NODE,lint,npx --no-install biome check --config-path=. ..)

.PHONY: format
format: $(DEV_READY) ## write the format that lint asks for
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .
	+@$(call WITH_NODE,format,npx --no-install biome check --write --config-path=. ..)

.PHONY: types
types: $(DEV_READY) ## strict types of every package
	$(PY) -m mypy
	+@$(call WITH_NODE,types,npx --no-install tsc -p .)

.PHONY: contracts
contracts: $(DEV_READY) ## which package may import which
	$(VENV)/bin/lint-imports --no-cache

.PHONY: screenshots
screenshots: $(DEV_READY) ## pictures of the page, into docs/page-*.png: a Kafka, a broker, the demo's data, Chromium
	$(PY) -m tests.page.screenshots $(ARGS)

.PHONY: page-libraries
page-libraries: ## bundle the libraries of the page anew, as their lock names them
	+@$(call WITH_NODE,page-libraries,node build.mjs)

.PHONY: page-libraries-same
page-libraries-same: ## the bundles of the page are what their lock gives, byte for byte
	+@$(call WITH_NODE,page-libraries-same,$(SAME_BUNDLES))

# What needs node runs in the folder of the page's libraries, after their lock is installed there. Where there is no
# node, or the lock cannot be installed, it is left out with a word; under continuous integration that is a failure.
PAGE_LIBRARIES := broker/page/libraries
PAGE_TOOLS := $(PAGE_LIBRARIES)/node_modules/.package-lock.json
WITH_NODE = if command -v npm >/dev/null && $(MAKE) --silent $(PAGE_TOOLS); then cd $(PAGE_LIBRARIES) && $(2); \
	elif [ "$$CI" = true ]; then \
	echo >&2 "make $(1) needs npm (apt-get install npm) and what $(PAGE_LIBRARIES)/package-lock.json names"; exit 1; \
	else echo "No npm here, or no packages for it: make $(1) leaves out the JavaScript of the page"; fi
SAME_BUNDLES = made=$$(mktemp -d) && trap "rm -rf $$made" EXIT && node build.mjs $$made \
	&& cp ../static/vendor/*.d.ts $$made && diff -r $$made ../static/vendor && echo "the bundles are the same"

$(PAGE_TOOLS): $(PAGE_LIBRARIES)/package.json $(PAGE_LIBRARIES)/package-lock.json
	@echo "Installing the libraries of the page into $(PAGE_LIBRARIES)/node_modules"
	@cd $(PAGE_LIBRARIES) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

.PHONY: deploy-syntax
deploy-syntax: $(DEV_READY) ## docker-compose.yml and the Dockerfile
	$(PY) -m pytest --quiet tests/deployment_test.py

.PHONY: docs
docs: $(DEV_READY) ## the site, into site/
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "the site is there: site/index.html"

.PHONY: bench
bench: $(DEV_READY) ## one benchmark: make bench NAME=selections ARGS=--json; without NAME, their list
	$(PY) -m benchmarks $(NAME) $(ARGS)

.PHONY: check
check: test lint types contracts page-libraries-same docs ## all that continuous integration asks

.PHONY: lock
lock: $(PY) ## resolve the requirements anew, into requirements/*.txt
	$(PIP) install --quiet --require-hashes -r requirements/lock.txt
	$(RESOLVE) requirements/build.in -o requirements/build.txt
	$(RESOLVE) requirements/lock.in -o requirements/lock.txt
	$(RESOLVE) pyproject.toml --all-extras --group dev -c requirements/build.txt -o requirements/dev.txt
	$(RESOLVE) pyproject.toml --extra server --extra demo -c requirements/dev.txt -o requirements/server.txt

# Versions already in a lock file stay unless UPGRADE=1. Addresses and paths of the machine stay out of it.
RESOLVE = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean: ## remove .venv and all that tools left behind
	rm -rf $(VENV) $(PAGE_LIBRARIES)/node_modules site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define CHECK_PYTHON
import sys
if not (3, 11) <= sys.version_info[:2] < (3, 14):
    sys.exit("Tureen needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is %d.%d.\n"
             "Name another one: make PYTHON=python3.11 ..." % sys.version_info[:2])
try:
    import ensurepip, venv
except ImportError:
    sys.exit("$(PYTHON) has no venv and ensurepip modules; Debian and Ubuntu ship them apart:\n"
             "    apt-get install python%d.%d-venv" % sys.version_info[:2])
endef
export CHECK_PYTHON

# An environment cut off while it was made is made again.
$(PY):
	@command -v $(PYTHON) >/dev/null || { echo >&2 "No $(PYTHON) here. Tureen needs Python 3.11, 3.12 or 3.13: \
	apt-get install python3 python3-venv, or make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@$(PYTHON) -c "$$CHECK_PYTHON"
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

# First what builds wheels, so that the few dependencies that ship as source only, and Tureen itself, are built
# with what the lock names and not with whatever is newest that day.
define INSTALL
	@echo "$(if $(wildcard $@),Bringing $(VENV) up to $(1),Installing $(1) into $(VENV); a first run downloads $(2))"
	@$(PIP) install --quiet --require-hashes -r requirements/build.txt
	@$(PIP) install $(if $(wildcard $@),--quiet) --no-build-isolation --require-hashes -r $(1)
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
endef

$(SERVER_READY): requirements/build.txt requirements/server.txt pyproject.toml | $(PY)
	$(call INSTALL,requirements/server.txt,about 300 MB)
	@touch $@

$(DEV_READY): requirements/build.txt requirements/dev.txt requirements/server.txt pyproject.toml | $(PY)
	$(call INSTALL,requirements/dev.txt,about 890 MB (PySpark is half of it))
	@touch $(SERVER_READY) $@
