# make quickstart   set up, tune the cluster of topologies/quickstart.yaml in the lab, show the result
# make test         set up, lint, and run the tests; 7 to 12 minutes on two cores
# make test-wide    more of the same: other clusters, values and MPI libraries; 20 minutes more
# make check-all    all tests, with slow cross products; their totals in docs/conformance.md
# make conformance  the conformance tests of it, and the page
# make bench        tune and compare several clusters in the lab; needs a quiet machine, and hours
# make bench-tuning     time and loss of tunings on a model, in a minute; BENCH_TUNING_OPTIONS= for the lab
# make bench-arrival   experiments about processes that arrive at different times; PART=…, POINTS=…
# make bench-adaptive  experiments about calls that measure and adapt; likewise
# make bench-applications  programs that are recorded, tuned for, run again; likewise
# make bench-paths     trees that are reconfigured, and two identical ones; likewise
# make bench-patterns  experiments about patterns of irregular collectives; likewise
# make bench-schedule   time making, proving and compiling schedules of up to 100,000 hosts
# make reference   measure generated/reference again, after a change of a template
# make catalogue   the page of all algorithms again, as make test does
# make lint, make format, make clean
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The wheel's MPI library, whatever else is installed.
export PATH := $(CURDIR)/$(BIN):$(PATH)

# pip compiles no modules: Python compiles each one when it is imported, and few are.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

QUICKSTART := topologies/quickstart.yaml
QUICKSTART_OUTPUT := generated/quickstart
QUICKSTART_SIZES := 1,1KiB,8KiB
# Four of the twelve, and no jobs on parts of the cluster, for the sake of time.
QUICKSTART_COLLECTIVES := allgather,allreduce,alltoall,bcast
# Lists of names, all if empty; what docs/results has already is not measured again.
BENCH_CLUSTERS ?=
BENCH_CONGESTION ?=
BENCH_COLLECTIVES ?=
# Such as --anew, or --page-only; of experiments also --seconds 600, or --list.
BENCH_OPTIONS ?=
# Of docs/tools/bench_tuning; without --model it measures in the lab, for hours. `--parts
# faults,launchers` takes minutes.
BENCH_TUNING_OPTIONS ?= --model

# Of the experiments: patterns of their names and of their points, all if empty. BENCH_REPETITIONS of
# the environment, or behind make, is how often what is compared runs in turn.
PART ?=
POINTS ?=

# Files of tests at a time: on two CPUs one more, as some tests wait.
WORKERS ?= 3
# In the order of tests/tiers.py: long files first.
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Files that have tests that run alone: to collect all others takes as long as some of these.
ALONE = $(shell grep -lr 'mark\.alone' tests --include='*.py')
CONFORMANCE_LOG := $(CURDIR)/build/conformance.jsonl

CPUS := $(shell getconf _NPROCESSORS_ONLN 2> /dev/null || echo 1)

all: quickstart

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "stagegen needs Python 3.10 or later; give it with PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.use: pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV)"
	@$(PIP_INSTALL) -e '.[mpi,report]'
	@touch $@

$(VENV)/.develop: pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV)"
	@$(PIP_INSTALL) -e '.[mpi,report,test,lint]'
	@touch $@ $(VENV)/.use

quickstart: $(VENV)/.use
	@$(BIN)/stagegen tune --topology $(QUICKSTART) --collectives $(QUICKSTART_COLLECTIVES) \
	  --communicators whole --sizes $(QUICKSTART_SIZES) --budget 110s
	@$(MAKE) --silent -j$(CPUS) -C $(QUICKSTART_OUTPUT) all check \
	  COLLECTIVES=$(QUICKSTART_COLLECTIVES) LEVEL=quick
	@$(BIN)/stagegen bench --topology $(QUICKSTART) --library $(QUICKSTART_OUTPUT) \
	  --collectives $(QUICKSTART_COLLECTIVES) --sizes $(QUICKSTART_SIZES) --repetitions 3
	@echo "report: $(QUICKSTART_OUTPUT)/report.html"

# Types and C are checked at the same time. Pages that a script makes say which script, if they are
# not up to date.
lint: $(VENV)/.develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python docs/tools/catalogue.py --check
	@$(MAKE) --no-print-directory -j$(CPUS) lint-types lint-c

lint-types: $(VENV)/.develop
	$(BIN)/mypy

lint-c: $(VENV)/.develop
	$(BIN)/python -m tests.lint_c

# Writes the page of all algorithms; `make lint` only says whether it is up to date.
catalogue: $(VENV)/.develop
	@$(BIN)/python docs/tools/catalogue.py

# A new algorithm is entered in the catalogue page. What measures runs alone. tests/tiers.py says
# which tests are wide.
test: catalogue
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest -m "not slow and not wide and not alone" --hypothesis-profile few $(PARALLEL)
	$(BIN)/pytest -m "not slow and not wide and alone" $(ALONE)

# Of property tests all examples.
test-wide: $(VENV)/.develop
	$(BIN)/pytest -m "not slow and (wide or hypothesis) and not alone" $(PARALLEL)
	$(BIN)/pytest -m "not slow and wide and alone" $(ALONE)

# What the runs of the check program add to the log becomes docs/conformance.md.
check-all: catalogue
	@$(MAKE) --no-print-directory lint
	@mkdir -p $(dir $(CONFORMANCE_LOG)) && rm -f $(CONFORMANCE_LOG)
	CONFORMANCE_LOG=$(CONFORMANCE_LOG) $(BIN)/pytest -m "not alone" $(PARALLEL)
	$(BIN)/pytest -m alone $(ALONE)
	$(BIN)/python docs/tools/conformance.py $(CONFORMANCE_LOG)

# The part of it that the page is made from.
conformance: $(VENV)/.develop
	@mkdir -p $(dir $(CONFORMANCE_LOG)) && rm -f $(CONFORMANCE_LOG)
	CONFORMANCE_LOG=$(CONFORMANCE_LOG) $(BIN)/pytest tests/mpi/test_conformance.py
	$(BIN)/python docs/tools/conformance.py $(CONFORMANCE_LOG)

# Tables, picture and judgement are made from all that docs/results has, of any machine.
bench: $(VENV)/.use
	@$(BIN)/python -m docs.tools.bench --clusters '$(BENCH_CLUSTERS)' --congestion '$(BENCH_CONGESTION)' \
	  --collectives '$(BENCH_COLLECTIVES)' $(BENCH_OPTIONS)

# Experiments: their pages are made likewise.
EXPERIMENTS := bench-arrival bench-adaptive bench-applications bench-paths bench-patterns
$(EXPERIMENTS): bench-%: $(VENV)/.use
	@$(BIN)/python -m docs.tools.experiments $* --parts '$(PART)' --points '$(POINTS)' $(BENCH_OPTIONS)

# Takes a few minutes; the table and the plot of docs/theory.md are from here.
bench-schedule: $(VENV)/.use
	@$(BIN)/python docs/tools/bench_schedule.py

# docs/bench-tuning.md has what the lab's parts are called with.
bench-tuning: $(VENV)/.use
	@$(BIN)/python -m docs.tools.bench_tuning $(BENCH_TUNING_OPTIONS)

# After a change of how candidates are searched or timed; generated/README.md says what else there is.
reference: $(VENV)/.use
	$(BIN)/python docs/tools/reference.py --measure

format: $(VENV)/.develop
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i drivers/*.[ch] $(wildcard tests/mpi/*.[ch] tests/launch/*.c docs/examples/*/*.c)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: all quickstart lint lint-types lint-c catalogue test test-wide check-all conformance bench bench-tuning $(EXPERIMENTS) bench-schedule reference format clean
