"""Routines and rules for patterns of groups: they serve the ranks of their group, and no others."""

from __future__ import annotations

import re
import shutil
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.audit import audit_folder
from stagegen.errors import ScheduleError
from stagegen.library import write_library
from tests.mpi import support
from tests.mpi.conformance import PLAIN, built
from tests.mpi.patterned import (
    EVERYONE,
    FAMILIES,
    ONE_LONG,
    RANKS,
    catalogue,
    decision_of_both,
    patterns_of_both,
    with_groups,
)
from tests.mpi.test_patterns import program, served

pytestmark = pytest.mark.mpi


@lru_cache
def library_of_both(slots: int = 1) -> Path:
    """The folder of a library with patterns of all ranks, and others of each half of them."""
    topology, own = with_groups(slots), patterns_of_both(slots)
    found = catalogue(topology, own)
    folder = support.scratch() / f"patterns-of-both-{slots}"
    write_library(folder, topology, found, decision_of_both(topology, found, own), {})
    return folder


@pytest.mark.parametrize(
    ("plan", "wanted"),
    [
        ("a", {"pattern_zipf": 36}),
        ("abb", {"pattern_zipf": 36, "pattern_banded": 72}),
        ("h", {ONE_LONG: 36}),
    ],
)
def test_calls_of_a_group_are_served_by_its_patterns_and_classes(tmp_path, plan, wanted):
    """The job has just the ranks of the group."""
    calls = 36 * len(plan)
    assert served(tmp_path, plan, calls, folder=library_of_both()) == wanted


def test_patterns_and_classes_of_a_group_serve_no_other_ranks(tmp_path):
    both = library_of_both()
    found = served(tmp_path, "a", 36, folder=both, ranks=EVERYONE)
    assert found == {"pattern_all_zipf": 36}
    for trace in tmp_path.glob("trace-*"):
        trace.unlink()
    found = served(tmp_path, "h", 36, folder=both, ranks=EVERYONE)
    assert not found.keys() & {ONE_LONG, "pattern_zipf", "pattern_banded"}


def test_a_program_calls_on_all_ranks_and_in_two_rows_in_turn(tmp_path):
    """Each communicator has the patterns of its own ranks, which are in any order."""
    calls, folder = 1500, library_of_both()
    found = served(tmp_path, "ab", calls, "rows", folder=folder, ranks=EVERYONE)
    of_all = found.pop("pattern_all_zipf") + found.pop("pattern_all_sparse")
    of_rows = [
        found.pop(f"pattern_{first}") + found.pop(f"pattern_{last}")
        for first, last in (("zipf", "banded"), ("last_zipf", "last_sparse"))
    ]
    assert not [name for name in found if name.startswith("pattern_")], "of other ranks"
    assert 0.6 * calls < of_all < 0.8 * calls
    assert all(0.15 * calls < one < 0.3 * calls for one in of_rows)


@pytest.mark.parametrize("slots", [1, 2])
def test_random_counts_arrive_by_the_routines_of_a_group(slots):
    result = support.run(RANKS, program(library_of_both(slots)), 7, 300, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr


def test_ranks_of_a_group_that_disagree_neither_hang_nor_corrupt(tmp_path):
    found = served(tmp_path, "?", 1500, "communicators", folder=library_of_both())
    assert len([name for name in found if name.startswith("pattern_")]) > 1


@pytest.mark.parametrize("slots", [1, pytest.param(2, marks=pytest.mark.wide)])
def test_routines_of_patterns_of_a_group_give_the_bytes_of_native(slots):
    folder = library_of_both(slots)
    check = built(folder, PLAIN)
    variables = PLAIN.environment(folder)
    result = support.run(RANKS, check, "quick", timeout=600, variables=variables)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    (passed,) = re.findall(r"^alltoallv +(\d+) passed, 0 failed", result.stdout, re.MULTILINE)
    assert int(passed) > 50 * (len(FAMILIES) if slots == 1 else 2)


def test_tables_of_patterns_of_a_group_are_proven_for_its_ranks():
    for slots, suffix in ((1, ""), (2, "_by_host")):
        proven = {one.routine: one for one in audit_folder(library_of_both(slots))}
        for name in (f"all_zipf{suffix}", f"zipf{suffix}_group_some"):
            ((_, proof),) = proven[f"alltoallv_pattern_{name}"].proofs
            assert "every message that is not empty is sent exactly once" in str(proof)


#: A change of an entry of the group's pattern `zipf`, and what the proof says of it.
ENTRIES = [
    (r'(\{"zipf", COLL_ALLTOALLV, )1', r"\g<1>0", "for 36 blocks, but group 0 has 12 ranks"),
    (r'(\{"zipf", COLL_ALLTOALLV, )1', r"\g<1>2", "has tables of another group: 1, expected 2"),
    (r'(\{"zipf", COLL_ALLTOALLV, )1', r"\g<1>3", "group 3, which there is not"),
    (
        r'(\{"one-long-for-one", COLL_ALLTOALLV, )1(.*\n.*)COLL_ALLTOALLV, 1',
        r"\g<1>2\g<2>COLL_ALLTOALLV, 1",
        "several groups or collectives",
    ),
]


@pytest.mark.parametrize(("pattern", "change", "why"), ENTRIES)
def test_an_entry_for_other_ranks_fails_the_proof(tmp_path, pattern, change, why):
    shutil.copytree(library_of_both(), tmp_path / "changed")
    path = tmp_path / "changed" / "src" / "patterns.c"
    text, count = re.subn(pattern, change, path.read_text())
    assert count == 1
    path.write_text(text)
    with pytest.raises(ScheduleError, match=why):
        list(audit_folder(tmp_path / "changed"))
