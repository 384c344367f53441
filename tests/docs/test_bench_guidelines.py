"""Guidelines on made-up rows: what is compared, at which sizes, and when it counts as broken."""

from __future__ import annotations

import pytest

from docs.tools.bench.guidelines import BARRIER, GUIDELINES, verdict
from docs.tools.bench.plan import FIXED
from stagegen.catalogue import load_catalogue
from tests.docs.bench_rows import carried, launched_again, timed

P = 4


def broken(*rows):
    return [(one.guideline, one.size) for one in verdict(rows, P).broken]


#: The left side's row, those of the right side, and the guideline: sizes as collectives count.
PAIRS = [
    (("allgather", 64), [("gather", 64), ("bcast", 256)], "allgather(n) ≼ gather(n) + bcast(p·n)"),
    (("allgather", 64), [("allgatherv", 256)], "allgather(n) ≼ allgatherv(p·n)"),
    (("allreduce", 64), [("reduce", 64), ("bcast", 64)], "allreduce(n) ≼ reduce(n) + bcast(n)"),
    (
        ("allreduce", 64),
        [("reduce_scatter_block", 16), ("allgather", 16)],
        "allreduce(n) ≼ reduce_scatter_block(n/p) + allgather(n/p)",
    ),
    (("alltoall", 64), [("alltoallv", 64)], "alltoall(n) ≼ alltoallv(n)"),
    (
        ("bcast", 64),
        [("scatter", 16), ("allgather", 16)],
        "bcast(n) ≼ scatter(n/p) + allgather(n/p)",
    ),
    (("gather", 64), [("allgather", 64)], "gather(n) ≼ allgather(n)"),
    (("reduce", 64), [("allreduce", 64)], "reduce(n) ≼ allreduce(n)"),
    (
        ("reduce", 64),
        [("reduce_scatter", 64), ("gather", 16)],
        "reduce(n) ≼ reduce_scatter(n) + gather(n/p)",
    ),
    (
        ("reduce_scatter_block", 64),
        [("reduce", 256), ("scatter", 64)],
        "reduce_scatter_block(n) ≼ reduce(p·n) + scatter(n)",
    ),
    (
        ("reduce_scatter_block", 64),
        [("reduce_scatter", 256)],
        "reduce_scatter_block(n) ≼ reduce_scatter(p·n)",
    ),
    (("scatter", 64), [("bcast", 256)], "scatter(n) ≼ bcast(p·n)"),
    (("barrier", 0), [("allreduce", 1)], "barrier ≼ allreduce(1)"),
    (("barrier", 0), [("reduce", 1), ("bcast", 1)], "barrier ≼ reduce(1) + bcast(1)"),
]


@pytest.mark.parametrize(("left", "right", "name"), PAIRS, ids=[name for *_, name in PAIRS])
def test_a_composition_that_is_faster_breaks_its_guideline(left, right, name):
    parts = [timed(*point, 0.5 / len(right)) for point in right]
    assert broken(timed(*left, 0.6), *parts) == [(name, left[1])]
    assert broken(timed(*left, 0.5), *parts) == []
    other = [timed(collective, size + 4, 0.5 / len(right)) for collective, size in right]
    assert broken(timed(*left, 0.6), *other) == []


@pytest.mark.parametrize(
    ("left", "noise", "counts"),
    [(1.02, 0.001, False), (1.04, 0.001, True), (1.04, 0.03, False), (1.2, 0.03, True)],
)
def test_only_what_is_beyond_three_percent_and_the_noise_counts(left, noise, counts):
    rows = (timed("gather", 64, left, noise), timed("allgather", 64, 1.0, noise))
    assert bool(broken(*rows)) is counts


def test_no_difference_counts_as_beyond_an_unknown_noise():
    left, right = timed("gather", 64, 1.2), timed("allgather", 64, 1.0)
    assert broken(left, right)
    assert not broken(carried(left), right)
    assert not broken(left, carried(right))


@pytest.mark.parametrize(
    ("left", "is_broken"),
    [
        ([1.2] * 5, True),
        ([1.1, 1.2, 1.01, 1.02, 1.1], True),
        ([1.2, 1.2, 0.99, 1.2, 1.2], False),
        ([1.2, 1.2, 1.02, 1.02, 1.02], False),
    ],
    ids=["all", "the median", "not all", "not the median"],
)
def test_further_launches_decide_what_one_job_made_suspect(left, is_broken):
    sides = timed("allreduce", 8, 1.2), timed("reduce", 8, 0.5), timed("bcast", 8, 0.5)
    ones = [1.0] * 5
    rows = [launched_again(sides[0], ones, left)]
    rows += [launched_again(one, ones, [0.5] * 5) for one in sides[1:]]
    found = verdict(rows, P)
    assert [one.launches for one in found.suspects] == [tuple(left)]
    assert bool(found.broken) is is_broken
    assert verdict([rows[0], *sides[1:]], P).broken, "a side was in no further launch"
    other = launched_again(sides[1], ones, [0.5] * 5, run="b")
    assert verdict([rows[0], other, rows[2]], P).broken, "a side was in other launches"


def test_further_launches_of_what_no_job_made_suspect_show_nothing():
    rows = [timed("gather", 8, 1.0), timed("allgather", 8, 1.0)]
    slow = launched_again(rows[0], [1.0] * 5, [2.0] * 5)
    assert not verdict([slow, launched_again(rows[1], [1.0] * 5, [1.0] * 5)], P).suspects


def test_parts_of_the_right_side_add_up():
    rows = timed("allreduce", 8, 1.0), timed("reduce", 8, 0.4), timed("bcast", 8, 0.4)
    (one,) = verdict(rows, P).broken
    assert one.ratio == pytest.approx(1.25)
    assert one.right_seconds == pytest.approx((0.8, 0.792, 0.808))


def test_no_size_takes_longer_than_a_longer_one():
    assert broken(timed("bcast", 64, 1.1), timed("bcast", 100, 1.0)) == [
        ("bcast(n) ≼ bcast(100)", 64)
    ]


def test_no_size_takes_longer_than_its_parts_one_after_the_other():
    rows = [timed("alltoall", 32, 1.0), timed("alltoall", 64, 2.2), timed("alltoall", 96, 3.5)]
    assert broken(*rows) == [
        ("alltoall(n) ≼ 3 × alltoall(n/3)", 96),
        ("alltoall(n) ≼ 2 × alltoall(n/2)", 64),
    ]


def test_the_worst_broken_guideline_comes_first():
    rows = timed("gather", 64, 1.2), timed("allgather", 64, 1.0), timed("gather", 8, 1.5)
    found = verdict(rows, P).broken
    assert [one.ratio for one in found] == sorted((one.ratio for one in found), reverse=True)
    assert found[0].size == 8


def test_what_cannot_be_compared_is_reported():
    rows = timed("gather", 64, 1.0), timed("allgather", 64, 1.0)
    missing = verdict(rows, P).missing
    assert len(missing) == len(GUIDELINES) + len(BARRIER) - 1
    assert "gather(n) ≼ allgather(n)" not in missing
    assert "bcast(n) ≼ scatter(n/p) + allgather(n/p)" in missing


def test_all_can_be_compared_on_the_fixed_cluster():
    points = {(name, size) for name in FIXED.collectives for size in FIXED.compared(name)}
    seen = verdict([timed(name, size, 1.0) for name, size in points], 16)
    assert seen.missing == ()
    named = {part.collective for one in GUIDELINES for part in one.right}
    named |= {one.left for one in GUIDELINES} | {"barrier"}
    assert named == set(load_catalogue().collectives)


@pytest.mark.parametrize(("seconds", "is_below"), [(0.12, True), (0.13, False)])
def test_a_right_side_below_the_bound_is_marked_as_such(seconds, is_below):
    """The bound of made-up rows is 0.5 s; four shorter calls count four times."""
    found = verdict([timed("gather", 64, 0.6), timed("gather", 16, seconds)], P)
    (one,) = (one for one in found.broken if one.size == 64)
    assert one.is_below_bound == is_below
