# Every target sets up what it needs: only Python >= 3.11, git and make must be there.
#
#   make demo     set up, then show real conversations going in and blocks coming out, and a real agent session's bill
#   make test     set up, then run the whole test suite
#   make check    what CI runs: format, lint, types, layers, spelling, docs, coverage
#   make bench    speed beside other rankers        make eval    selection quality
#   make clients  install real clients (1.4 GB) into .clients, then run them beside the gateway and through it
#   make slow-kills    1,000 x kill -9 of writing processes      make slow-damage    1,000 damaged store files
#   make slow-histories    100,000 edited conversations of each API
#   make clean    remove caches and reports         make distclean    and the environment

VENV ?= .venv
PYTHON := $(VENV)/bin/python
BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev
PIP_INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check
SIZES ?= 1000,10000,100000
PEERS ?= tantivy,fts5,rank_bm25,bm25s
KILLS ?= 1000
DAMAGED_FILES ?= 1000
HISTORIES ?= 100000

.PHONY: demo test check bench eval clients slow-kills slow-damage clean distclean help
.PHONY: format lint types layers spelling docs coverage docs-write
.DELETE_ON_ERROR:
.NOTPARALLEL:

help:
	@sed -n 's/^#   //p' Makefile

demo: $(BASE)
	$(VENV)/bin/cgk demo

# What the tests run under, and which of them; `make coverage` sets both.
UNDER :=
TESTS :=
test: $(DEV)
	$(strip $(PYTHON) $(UNDER) -m pytest $(TESTS))

# All tests run once, under coverage. They come last, so that their closing line is nearly the last to be read.
check: format lint types layers spelling docs coverage

format: $(DEV)
	$(PYTHON) -m ruff format --check .

lint: $(DEV)
	$(PYTHON) -m ruff check .

types: $(DEV)
	$(PYTHON) -m mypy

layers: $(DEV)
	$(VENV)/bin/lint-imports --no-cache

spelling: $(DEV)
	$(VENV)/bin/codespell src tests docs scripts benchmarks examples *.md Makefile pyproject.toml

docs: $(DEV)
	$(PYTHON) -m cogapp --check --diff -P docs/*.md

docs-write: $(DEV)
	$(PYTHON) -m cogapp -r -P docs/*.md

# Two halves side by side, on two cores: what starts processes of its own, and everything else.
APART := tests/entrypoints tests/stores tests/docs tests/benchmarks
UNDER_COVERAGE := --no-print-directory test UNDER="-m coverage run"

coverage: $(DEV)
	$(PYTHON) -m coverage erase
	@$(MAKE) $(UNDER_COVERAGE) TESTS="$(APART)" >.coverage_apart.log 2>&1 & apart=$$!; status=0; \
	$(MAKE) $(UNDER_COVERAGE) TESTS="tests $(APART:%=--ignore=%)" || status=1; \
	wait $$apart || status=1; cat .coverage_apart.log; exit $$status
	@$(PYTHON) -m coverage combine --quiet
	@$(PYTHON) -m coverage json --quiet
	@$(PYTHON) scripts/check_coverage.py .coverage_report.json

bench: $(DEV)
	$(PYTHON) -m benchmarks select --sizes $(SIZES) --peers $(PEERS)
	$(PYTHON) -m benchmarks plan

eval: $(DEV)
	$(VENV)/bin/cgk eval contamination
	$(VENV)/bin/cgk eval followups
	$(VENV)/bin/cgk eval agents --data examples/data/coding_session.jsonl.gz --rules all

# `make test` runs those among them that the dev extra installs.
clients: $(DEV)
	sh scripts/install_clients.sh $(PYTHON)
	$(PYTHON) -m pytest tests/clients --all-clients

# The short forms of both are part of `make test`.
slow-kills: $(DEV)
	$(PYTHON) -m pytest tests/stores/test_sqlite_kill.py -k kills --kills $(KILLS)

slow-damage: $(DEV)
	$(PYTHON) -m pytest --quiet tests/stores/test_sqlite_damage.py -k a_damaged_file --damaged-files $(DAMAGED_FILES)

slow-histories: $(DEV)
	$(PYTHON) -m pytest --quiet tests/gateway/test_rendering.py -k generated_histories --histories $(HISTORIES)

clean:
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.* htmlcov build dist
	find src tests benchmarks scripts examples -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) .clients

# -- setting up; a second run costs nothing -------------------------------------------------

$(BASE): pyproject.toml | $(PYTHON)
	$(PIP_INSTALL) --editable .
	@touch $@

$(DEV): pyproject.toml | $(PYTHON)
	$(PIP_INSTALL) --editable ".[dev]"
	@touch $(BASE) $@

$(PYTHON):
	@for python in python3.13 python3.12 python3.11 python3 python; do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        echo "environment: $(VENV), by $$python"; \
	        $$python -m venv $(VENV) && exit 0; \
	        rm -rf $(VENV); $$python -m virtualenv --quiet $(VENV) 2>/dev/null && exit 0; \
	        rm -rf $(VENV); \
	        echo "$$python: it cannot make a virtual environment; install its venv module (Debian: apt install python3-venv)" >&2; \
	        exit 1; \
	    fi; \
	done; \
	echo "Python: no version from 3.11 on was found; install one and call make again" >&2; exit 1
