"""Ranges of numbers of ranks: total, disjoint, and each served by what was measured nearest."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.measure.records import Candidate
from stagegen.tune import Rule, Table
from stagegen.tune.decision import DecisionTable
from stagegen.tune.ranges import REACH, of_all_ranks, ranges

counts = st.sets(st.integers(1, 300), max_size=6)


@given(counts)
def test_ranges_are_total_and_disjoint(measured):
    found = ranges(measured)
    assert found[0].first == 1
    assert found[-1].last is None
    for one, following in pairwise(found):
        assert one.last is not None
        assert one.first <= one.last
        assert following.first == one.last + 1


@given(counts, st.integers(1, 1000))
def test_a_number_is_served_by_the_nearest_within_reach(measured, ranks):
    (serving,) = (r for r in ranges(measured) if r.first <= ranks and ranks <= (r.last or ranks))
    near = {m for m in measured if ranks <= REACH * m and m <= REACH * ranks}
    if not near:
        assert serving.measured is None
    else:
        ratio = {m: max(m, ranks) / min(m, ranks) for m in near}
        best = min(ratio.values())
        assert serving.measured == min(m for m in near if ratio[m] <= best * (1 + 1e-12))


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ([16], [(1, 7, None), (8, 32, 16), (33, None, None)]),
        ([4, 16], [(1, 1, None), (2, 8, 4), (9, 32, 16), (33, None, None)]),
        ([4, 32], [(1, 1, None), (2, 8, 4), (9, 15, None), (16, 64, 32), (65, None, None)]),
        ([2, 3], [(1, 2, 2), (3, 6, 3), (7, None, None)]),
        ([], [(1, None, None)]),
    ],
)
def test_ranges_are_those_made_by_hand(measured, expected):
    assert [(r.first, r.last, r.measured) for r in ranges(measured)] == expected


def table(kind: str, ranks: int, name: str) -> Table:
    return Table("bcast", kind, ranks, (Rule(0, Candidate(name)),), ranks, ranks)


def chosen(decision: DecisionTable, kind: str, ranks: int) -> str:
    found = decision.table("bcast", kind, ranks)
    return "none" if found is None else found.choice(8).algorithm


def test_communicators_have_their_own_table_or_that_of_their_number_of_ranks():
    measured = [
        table("cluster", 16, "aapc"), table("hosts", 16, "order"), table("other", 16, "any"),
        table("group left", 8, "tree"), table("hosts", 4, "small"), table("other", 4, "few"),
    ]  # fmt: skip
    made = DecisionTable("c", "0" * 64, "1" * 64, True, tuple(of_all_ranks("bcast", measured)))
    assert [chosen(made, "cluster", n) for n in (16, 8, 1)] == ["aapc", "small", "native"]
    assert [chosen(made, "group left", n) for n in (8, 16)] == ["tree", "order"]
    assert [chosen(made, "hosts", n) for n in (1, 2, 8, 9, 32, 33)] == [
        "native", "small", "small", "order", "order", "native",
    ]  # fmt: skip
    assert [chosen(made, "other", n) for n in (1, 2, 9, 33)] == ["native", "few", "any", "native"]
    assert made.table("reduce", "cluster", 16) is None


def test_one_host_is_served_by_what_was_measured_on_one_host_only():
    measured = [table("hosts", 8, "order"), table("other", 8, "any"), table("one-host", 4, "few")]
    both = DecisionTable("c", "0" * 64, "1" * 64, True, tuple(of_all_ranks("bcast", measured)))
    assert [chosen(both, "one-host", n) for n in (1, 4, 8, 9)] == [
        "native", "few", "few", "native",
    ]  # fmt: skip
    assert [chosen(both, "hosts", n) for n in (4, 3)] == ["order", "native"]
    network = tuple(of_all_ranks("bcast", measured[:2]))
    over_network = DecisionTable("c", "0" * 64, "1" * 64, True, network)
    assert {chosen(over_network, "one-host", n) for n in range(1, 20)} == {"none"}
