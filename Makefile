# Everything happens in .venv, made from what pyproject.toml names and renewed when it changes.
# Another interpreter: `make clean run PYTHON=python3.13`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-compile
# What pip would do with one core, with all of them; packages hold files that are no Python, or that of another version.
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib
# Three more than there are cores: many tests wait for processes that they have started.
WORKERS ?= $(shell expr 3 + "$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)")

# As an installed program, the house keeps its bytecode: without it, compiling it is half of every start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-all lint bench bench-recall economy soak crash attack simulate study fit-rules fleet-demo fleet-crash docs docs-check clean

help:
	@echo "make run         talk to Nocturne in this terminal (or pipe lines into it)"
	@echo "make test        the tests, without the slowest (some minutes)"
	@echo "make test-all    all tests, with a sample of the crash scenarios"
	@echo "make lint        style, types, import directions, generated docs, words"
	@echo "make bench       the figures, measured on this machine"
	@echo "make bench-recall [DATA=FILE...]  what is found again of generated talks and of conversations of LoCoMo's form"
	@echo "make economy     what a year costs, by how the context is kept small (ARGS='--seed 2'; ARGS=quality: what is remembered)"
	@echo "make soak        half an hour under load: what grows (ARGS='--minutes 5')"
	@echo "make crash       every crash scenario, at each moment that leaves another home (needs strace)"
	@echo "make attack      kills, disk errors, clock jumps, floods, hostile text and files (needs strace)"
	@echo "make fleet-demo  two PostgreSQL servers, three hosts, a router and ten homes; a host and the primary are lost (HOMES=10)"
	@echo "make fleet-crash machines of a fleet are lost while people write, 300 times (ARGS='--seed 7 --runs 20')"
	@echo "make simulate    20 years of a simulated life with faults (SEED=1 DAYS=365 YEARS=20)"
	@echo "make study       a scripted conversation of 2,000 turns: what it remembers, what it costs"
	@echo "make fit-rules   fit the weights of the rules to the sentences of the tests, and write them"
	@echo "make docs        write docs/developing/reference/ and the conversation in README.md again, check the pages"
	@echo "make clean       remove what the others made"

run: $(VENV)/.run
	@$(BIN)/assistant run --chat

test: $(VENV)/.dev
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

test-all: $(VENV)/.dev
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/mypy --no-error-summary --explicit-package-bases docs/*.py
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m docs.generate --check
	@$(BIN)/python -m docs.check_names
	@$(BIN)/python -m docs.check_words

bench: $(VENV)/.dev
	@$(BIN)/python -m tests.bench $(ARGS)

bench-recall: $(VENV)/.dev
	@$(BIN)/python -m tests.recall_bench $(DATA) $(ARGS)

economy: $(VENV)/.dev
	@$(BIN)/python -m tests.economy $(ARGS)

soak: $(VENV)/.dev
	@$(BIN)/python -m tests.soak $(ARGS)

crash: $(VENV)/.dev
	@$(BIN)/python -m tests.crash $(ARGS)

attack: $(VENV)/.dev
	@$(BIN)/python -m tests.attack $(ARGS)

fleet-demo: $(VENV)/.dev
	@$(BIN)/python -m tests.fleet demo --homes $(or $(HOMES),10)

fleet-crash: $(VENV)/.dev
	@$(BIN)/python -m tests.fleet $(ARGS)

simulate: $(VENV)/.dev
	@$(BIN)/python -m tests.simulate --seed $(or $(SEED),1) --days $(or $(DAYS),365) --years $(or $(YEARS),20) --journal .bench/simulate.jsonl $(ARGS)

study: $(VENV)/.dev
	@$(BIN)/python -m tests.study $(ARGS)

fit-rules: $(VENV)/.dev
	@$(BIN)/python -m tests.fit

docs: $(VENV)/.dev
	@$(BIN)/python -m docs.generate
	@$(BIN)/python -m docs.transcript
	@$(BIN)/python -m docs.check_names

docs-check: $(VENV)/.dev
	@$(BIN)/python -m docs.generate --check
	@$(BIN)/python -m docs.check_names
	@$(BIN)/python -m docs.check_words

clean:
	@rm -rf $(VENV) build dist .bench .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A .venv that works is kept; input that was piped to `make run` is left for the conversation.
define make_venv
$(BIN)/python -m pip --version >/dev/null 2>&1 && exit 0; \
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' </dev/null 2>/dev/null || { \
  echo "Nocturne needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
  exit 1; }; \
$(PYTHON) -c 'import ensurepip, venv' </dev/null 2>/dev/null || { \
  echo "'$(PYTHON)' has no venv module; install it (on Debian and Ubuntu: apt install python3-venv), then try again." >&2; \
  exit 1; }; \
$(PYTHON) -m venv --clear $(VENV) </dev/null
endef

define not_installed
{ echo "The packages could not be installed, for the reason above. Your data was not touched; try again." >&2; exit 1; }
endef

$(VENV)/.run: pyproject.toml
	@$(make_venv)
	@echo "Installing into $(VENV), which takes a minute the first time ..." >&2
	@$(PIP) --editable . </dev/null || $(not_installed)
	@$(COMPILE) </dev/null || true
	@touch $@

# Dependency groups need pip 25.1; the interpreter may have brought an older one.
$(VENV)/.dev: pyproject.toml
	@$(make_venv)
	@echo "Installing into $(VENV), with what tests and checks need ..." >&2
	@$(PIP) --upgrade 'pip>=25.1' </dev/null || $(not_installed)
	@$(PIP) --editable . --group dev </dev/null || $(not_installed)
	@$(COMPILE) </dev/null || true
	@touch $@ $(VENV)/.run
