"""LIBCOLL_TRACE=json:FILE counts the calls of a program, and where they went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stagegen.tune.program import program_of, read_trace
from tests.library import schemas
from tests.mpi import support
from tests.mpi.locales import decimal_commas

pytestmark = pytest.mark.mpi

RANKS = 4
KNOWN = {
    ("allreduce", 4, 8): 5,
    ("bcast", 4, 1000): 3,
    ("alltoall", 2, 50): 4,
    ("barrier", 4, 0): 1,
}


def run(file: Path, *arguments: str, **variables: str) -> str:
    program = support.compiled("histogram.c", RANKS)
    settings = {"LIBCOLL_TRACE": f"json:{file}", **variables}
    result = support.run(RANKS, program, *arguments, variables=settings)
    assert result.returncode == 0, result.stderr
    return result.stderr


def read(file: Path) -> dict[str, Any]:
    trace = json.loads(file.read_text(encoding="utf-8"))
    schemas.validate("trace", trace)
    return trace


def calls_of(trace: dict[str, Any]) -> dict[tuple[str, int, int], int]:
    found: dict[tuple[str, int, int], int] = {}
    for entry in trace["calls"]:
        key = entry["collective"], entry["ranks"], entry["bytes"]
        found[key] = found.get(key, 0) + entry["calls"]
    return found


def test_calls_are_counted_by_collective_communicator_and_size(tmp_path):
    complaints = run(tmp_path / "trace.json")
    trace = read(tmp_path / "trace.json")
    assert calls_of(trace) == KNOWN
    assert trace["left_out"] == 0
    assert "libcoll:" not in complaints


def test_the_file_is_json_in_a_locale_with_decimal_commas(tmp_path):
    complaints = run(tmp_path / "trace.json", **decimal_commas(tmp_path))
    assert "locale" not in complaints
    assert calls_of(read(tmp_path / "trace.json")) == KNOWN


def test_each_routine_that_served_has_an_entry_of_its_own(tmp_path):
    run(tmp_path / "forced.json", LIBCOLL_FORCE="bcast=binomial")
    routines = {entry["collective"]: entry for entry in read(tmp_path / "forced.json")["calls"]}
    assert routines["bcast"]["routine"] == "binomial"
    assert routines["bcast"]["seconds"] > 0
    assert routines["bcast"]["communicator"] == "cluster"
    assert routines["bcast"]["hosts"] == RANKS
    assert routines["alltoall"]["hosts"] == RANKS / 2
    assert routines["alltoall"]["communicator"] == "hosts"


def test_tuning_reads_the_calls_of_a_histogram(tmp_path):
    run(tmp_path / "trace.json")
    found = read_trace(tmp_path / "trace.json", support.cluster(RANKS))
    assert {(one.collective, one.ranks, one.size): one.calls for one in found} == KNOWN
    names = {one.communicator for one in program_of(found, support.cluster(RANKS)).wanted}
    assert names == {"whole", "2x1"}


def test_each_first_rank_of_a_communicator_counts_in_a_file_of_its_own(tmp_path):
    """Ranks 0 and 1 are rank 0 of the two halves."""
    run(tmp_path / "trace-%r.json")
    found = [calls_of(read(tmp_path / f"trace-{rank}.json")) for rank in range(RANKS)]
    halves = {("alltoall", 2, 50): 4}
    assert found == [KNOWN, halves, {}, {}]


def test_many_sizes_are_rounded_down_and_no_call_is_lost(tmp_path):
    sizes = 6000
    run(tmp_path / "trace.json", str(sizes))
    trace = read(tmp_path / "trace.json")
    of_halves = {
        b: n for (name, ranks, b), n in calls_of(trace).items() if (name, ranks) == ("bcast", 2)
    }
    assert sum(of_halves.values()) == sizes
    assert trace["left_out"] == 0
    rounded = {size for size, calls in of_halves.items() if calls > 1}
    assert rounded
    assert all(size & (size - 1) == 0 for size in rounded)
    last_exact = max(size for size in of_halves if size not in rounded)
    assert set(of_halves) >= set(range(1, last_exact + 1))


def test_a_file_that_cannot_be_written_is_reported_and_harms_nothing(tmp_path):
    complaints = run(tmp_path / "missing" / "trace.json")
    assert "libcoll: LIBCOLL_TRACE: cannot write" in complaints
    assert "No such file" in complaints
