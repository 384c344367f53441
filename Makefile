# make quickstart   set up, tune the cluster of topologies/quickstart.yaml in the lab, show the result
# make test         set up, lint, and run all tests
# make check-all    the tests with their slow cross products; their totals in docs/conformance.md
# make conformance  the conformance tests of it, and the page
# make bench        tune and compare topologies/chain-4x4-cyclic.yaml in the lab; needs a quiet machine
# make bench-schedule   time making, proving and compiling schedules of up to 100,000 hosts
# make reference   measure generated/reference again, after a change of a template
# make lint, make format, make clean
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The wheel's MPI library, whatever else is installed.
export PATH := $(CURDIR)/$(BIN):$(PATH)

QUICKSTART := topologies/quickstart.yaml
QUICKSTART_OUTPUT := generated/quickstart
QUICKSTART_SIZES := 1,64,1KiB,4KiB,16KiB
# Four of the twelve, for the sake of time.
QUICKSTART_COLLECTIVES := allgather,allreduce,alltoall,bcast
BENCH := topologies/chain-4x4-cyclic.yaml
# Collectives whose size is that of the whole message are tuned at 16 times the largest as well. The
# last rule serves longer messages, too; an alltoall of 256 KiB takes 8 s a call there.
BENCH_SIZES := 1,64,1KiB,4KiB,16KiB,32KiB,64KiB
BENCH_OUTPUT := generated/chain-4x4-cyclic

# Files of tests at a time.
WORKERS ?= 2
CONFORMANCE_LOG := $(CURDIR)/build/conformance.jsonl

all: quickstart

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "stagegen needs Python 3.10 or later; give it with PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.use: pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mpi,report]'
	@touch $@

$(VENV)/.develop: pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mpi,report,test,lint]'
	@touch $@ $(VENV)/.use

quickstart: $(VENV)/.use
	@$(BIN)/stagegen tune --topology $(QUICKSTART) --collectives $(QUICKSTART_COLLECTIVES) \
	  --sizes $(QUICKSTART_SIZES) --budget 2
	@$(MAKE) --silent -C $(QUICKSTART_OUTPUT) all check
	@$(BIN)/stagegen bench --topology $(QUICKSTART) --library $(QUICKSTART_OUTPUT) \
	  --collectives $(QUICKSTART_COLLECTIVES) --sizes $(QUICKSTART_SIZES) --repetitions 5
	@echo "report: $(QUICKSTART_OUTPUT)/report.html"

lint: $(VENV)/.develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.lint_c

# Of the lab, which measures, one test at a time.
test: lint
	$(BIN)/pytest -m "not slow and not lab" -n $(WORKERS) --dist loadfile
	$(BIN)/pytest -m "not slow and lab"

# What the runs of the check program add to the log becomes docs/conformance.md.
check-all: lint
	@mkdir -p $(dir $(CONFORMANCE_LOG)) && rm -f $(CONFORMANCE_LOG)
	CONFORMANCE_LOG=$(CONFORMANCE_LOG) $(BIN)/pytest -m "not lab" -n $(WORKERS) --dist loadfile
	$(BIN)/pytest -m lab
	$(BIN)/python docs/conformance.py $(CONFORMANCE_LOG)

# The part of it that the page is made from.
conformance: $(VENV)/.develop
	@mkdir -p $(dir $(CONFORMANCE_LOG)) && rm -f $(CONFORMANCE_LOG)
	CONFORMANCE_LOG=$(CONFORMANCE_LOG) $(BIN)/pytest tests/mpi/test_conformance.py
	$(BIN)/python docs/conformance.py $(CONFORMANCE_LOG)

bench: $(VENV)/.use
	@$(BIN)/stagegen tune --topology $(BENCH) --sizes $(BENCH_SIZES) --output $(BENCH_OUTPUT)
	@$(BIN)/python docs/bench.py --topology $(BENCH) --library $(BENCH_OUTPUT) \
	  --plot docs/benchmark.svg --page docs/benchmark.md

# Takes a few minutes; the table and the plot of docs/theory.md are from here.
bench-schedule: $(VENV)/.use
	@$(BIN)/python docs/bench_schedule.py

# After a change of an algorithm's template; `python docs/reference.py` does for other changes.
reference: $(VENV)/.use
	$(BIN)/python docs/reference.py --measure

format: $(VENV)/.develop
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i drivers/*.[ch] $(wildcard tests/mpi/*.[ch])

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: all quickstart lint test check-all conformance bench bench-schedule reference format clean
