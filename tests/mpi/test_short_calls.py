"""The first short calls of a communicator are native: a duplicate takes longer than they do."""

from __future__ import annotations

import json

import pytest

from tests.mpi import support

pytestmark = pytest.mark.mpi

RANKS = 4
USUAL = 16


def served(folder, plan: str, **variables: str) -> tuple[int, int]:
    """How many calls of a plan the MPI library served on rank 0, and how many routines did."""
    program = support.compiled("short_calls.c", RANKS)
    trace = folder / "trace.json"
    settings = {"LIBCOLL_TRACE": f"json:{trace}", "LIBCOLL_SHORT_CALLS": "", **variables}
    result = support.run(RANKS, program, plan, variables=settings, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads(trace.read_text())["calls"]
    native = sum(row["calls"] for row in rows if row["routine"] == "native")
    return native, sum(row["calls"] for row in rows) - native


PLANS = [
    ("s" * 30, 0, 30),
    ("d" + "s" * 30, USUAL, 30 - USUAL),
    ("d" + "sb" * 15, USUAL, 30 - USUAL),
    ("dssslss", 3, 3),
    ("dsssgss", 3, 3),
    ("dsssvss", 3, 3),
    ("d" + "s" * 20 + "d" + "s" * 20, 2 * USUAL, 40 - 2 * USUAL),
    ("dsswss", 2, 2),
]


@pytest.mark.parametrize(("plan", "native", "routines"), PLANS)
def test_short_calls_are_native_until_there_were_some(tmp_path, plan, native, routines):
    """A long call gets the duplicate at once, and MPI_COMM_WORLD always has one."""
    assert served(tmp_path, plan) == (native, routines)


VALUES = [("0", 0), ("3", 3), ("30", 20), ("-1", USUAL), ("many", USUAL), ("99999999999", USUAL)]


@pytest.mark.parametrize(("value", "native"), VALUES)
def test_the_number_of_calls_may_be_set(tmp_path, value, native):
    assert served(tmp_path, "d" + "s" * 20, LIBCOLL_SHORT_CALLS=value) == (native, 20 - native)


def test_a_routine_that_is_forced_serves_at_once(tmp_path):
    assert served(tmp_path, "d" + "s" * 5, LIBCOLL_FORCE="bcast=binomial") == (0, 5)


#: How ranks find calls differently: see short_calls_alike.c.
WAYS = ["types", "long", "own", "threads", "trace"]


@pytest.mark.parametrize("most", ["3", ""])
@pytest.mark.parametrize("way", WAYS)
def test_ranks_agree_on_when_routines_begin_however_they_find_a_call(way, most):
    """Only calls that all ranks know to be native may be remembered."""
    program = support.compiled("short_calls_alike.c", RANKS, f"-I{support.library(RANKS) / 'src'}")
    words = (program, way)
    if way == "trace":
        pick = 'if [ "$PMI_RANK" = 0 ]; then export LIBCOLL_TRACE=1; fi; exec "$@"'
        words = ("/bin/sh", "-c", pick, "sh", *words)
    variables = {"LIBCOLL_SHORT_CALLS": most}
    result = support.run(RANKS, *words, variables=variables, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_value_that_is_no_number_is_reported(tmp_path):
    program = support.compiled("short_calls.c", RANKS)
    result = support.run(RANKS, program, "ds", variables={"LIBCOLL_SHORT_CALLS": "x"}, timeout=60)
    assert (
        "libcoll: LIBCOLL_SHORT_CALLS: 'x' is ignored: expected a number of calls" in result.stderr
    )
