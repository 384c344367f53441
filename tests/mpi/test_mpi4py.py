"""Unchanged programs with the library preloaded or linked, and its environment variables."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from stagegen.catalogue import applicable
from tests.mpi import support

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.mpi

RANKS = 4
PROGRAM = support.HERE / "programs" / "collectives.py"
TRACE = re.compile(r"libcoll: rank (\d+): (\w+) +(\w+) +(\d+)\.\.(\d+) +bytes +(\d+) calls")


def run(preloaded: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    preload = (support.library(RANKS) / "libcoll.so",) if preloaded else ()
    result = support.run(RANKS, sys.executable, PROGRAM, preload=preload, variables=variables)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == RANKS
    return result


@pytest.fixture(scope="module")
def native() -> str:
    return run(preloaded=False).stdout


def traced(result: subprocess.CompletedProcess[str]) -> set[tuple[str, str]]:
    """Which collective was served by which algorithm."""
    return {(line[2], line[3]) for line in map(TRACE.match, result.stderr.splitlines()) if line}


def test_preloaded_it_changes_no_result(native):
    result = run(LIBCOLL_TRACE="1")
    assert result.stdout == native
    served = {name for name, algorithm in traced(result) if algorithm != "native"}
    assert served == set(support.CATALOGUE.collectives)
    assert set(re.findall(r"rank (\d+):", result.stderr)) == {"0"}


def test_trace_of_all_ranks_counts_the_calls():
    lines = [TRACE.match(line) for line in run(LIBCOLL_TRACE="all").stderr.splitlines()]
    calls = [0] * RANKS
    for line in filter(None, lines):
        calls[int(line[1])] += int(line[6]) if line[2] == "alltoall" else 0
        low, high = int(line[4]), int(line[5])
        assert low == high == 0 or (high + 1 == 2 * low)
    assert calls == [calls[0]] * RANKS
    assert calls[0] >= 14


@pytest.mark.parametrize("value", ["1", "yes"])
def test_a_disabled_library_changes_nothing_and_is_quiet(native, value):
    result = run(LIBCOLL_DISABLE=value, LIBCOLL_TRACE="1")
    assert (result.stdout, result.stderr) == (native, "")


def test_zero_and_nothing_disable_nothing():
    for value in ("0", ""):
        result = run(LIBCOLL_DISABLE=value, LIBCOLL_TRACE="1")
        assert traced(result)


def test_the_library_is_quiet_by_default():
    assert run().stderr == ""


def rounds() -> list[dict[str, str]]:
    """Every algorithm once: in a round one of each collective that has any left."""
    by_collective: dict[str, list[str]] = {}
    for algorithm in applicable(support.CATALOGUE, support.cluster(RANKS)):
        by_collective.setdefault(algorithm.collective, []).append(algorithm.name)
    most = max(map(len, by_collective.values()))
    return [
        {name: names[number] for name, names in by_collective.items() if number < len(names)}
        for number in range(most)
    ]


#: Of so many rounds, one is in `make test`: the check program tries every routine there, too.
EACH = 4


@pytest.mark.parametrize(
    "forced",
    [
        pytest.param(
            forced,
            id="-".join(forced.values())[:60],
            marks=[pytest.mark.slow] if number % EACH else [],
        )
        for number, forced in enumerate(rounds())
    ],
)
def test_a_forced_algorithm_serves_and_changes_no_result(forced, native):
    setting = ",".join(f"{collective}={name}" for collective, name in forced.items())
    result = run(LIBCOLL_FORCE=setting, LIBCOLL_TRACE="1")
    assert result.stdout == native
    for collective, name in forced.items():
        on_world = {a for c, a in traced(result) if c == collective}
        # What is smaller than the cluster (the split communicator) is served otherwise.
        assert on_world <= {name, "native"}
        assert name in on_world


def test_several_algorithms_are_forced_at_once():
    result = run(LIBCOLL_FORCE="alltoall=ring,bcast=binomial", LIBCOLL_TRACE="1")
    assert {("alltoall", "ring"), ("bcast", "binomial")} <= traced(result)
    assert "ignored" not in result.stderr


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("alltoall=nonsense", "this library has .*aapc_barrier.* ring"),
        ("gossip=ring", "this library has no such collective"),
        ("ring", "expected collective=algorithm"),
        ("all=ring", "this library has no such collective"),
    ],
)
def test_force_complains_once_of_what_it_does_not_know(setting, complaint, native):
    result = run(LIBCOLL_FORCE=setting)
    assert result.stdout == native
    lines = [line for line in result.stderr.splitlines() if line.startswith("libcoll:")]
    assert len(lines) == 1
    assert re.search(f"'{setting}' is ignored: {complaint}", lines[0])


def test_no_algorithm_is_forced_where_it_cannot_run(native):
    """Ranks of unknown hosts are not the cluster: its routines cannot be forced on them."""
    result = support.run(
        RANKS, sys.executable, PROGRAM,
        preload=(support.library(RANKS) / "libcoll.so",),
        variables={"LIBCOLL_FORCE": "alltoall=aapc_none", "LIBCOLL_TRACE": "1"},
        hosts=[f"nobody{rank}" for rank in range(RANKS)],
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout == native
    assert ("alltoall", "aapc_none") not in traced(result)
    served = {algorithm for name, algorithm in traced(result) if name == "alltoall"}
    assert served - {"native"}
    assert not [name for name in served if name.startswith("aapc")]
