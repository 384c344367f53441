"""Tables of shapes: total on the cluster's hosts, and each served by what was measured nearest."""

from __future__ import annotations

from math import inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.measure.records import Candidate
from stagegen.tune import Rule, Table
from stagegen.tune.decision import HOSTS, ONE_HOST, OTHER, DecisionTable
from stagegen.tune.ranges import REACH, of_all_shapes
from stagegen.tune.shapes import Shape, nearest, nearest_shape

counts = st.sets(st.integers(1, 300), min_size=1, max_size=6)
shapes = st.builds(Shape, st.integers(1, 300), st.integers(1, 64))
several = st.builds(Shape, st.integers(2, 300), st.integers(1, 64))


def far(one: int, other: int) -> float:
    return abs(log(one / other))


@given(counts, st.integers(1, 1000))
def test_a_number_is_served_by_the_nearest_by_ratio(measured, number):
    (serving,) = (one for one, range_ in nearest(measured) if number in range_)
    best = min(far(one, number) for one in measured)
    assert serving == min(one for one in measured if far(one, number) <= best + 1e-12)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ([16], [(16, 1, None)]),
        ([4, 16], [(4, 1, 8), (16, 9, None)]),
        ([2, 3], [(2, 1, 2), (3, 3, None)]),
        ([], []),
    ],
)
def test_ranges_are_those_made_by_hand(measured, expected):
    assert [(one, r.first, r.last) for one, r in nearest(measured)] == expected


@given(st.sets(shapes, max_size=8), shapes)
def test_the_nearest_shape_is_nearest_in_hosts_then_in_ranks_per_host(measured, shape):
    alike = {one for one in measured if (one.hosts == 1) == (shape.hosts == 1)}
    found = nearest_shape(measured, shape)
    if not alike:
        assert found is None
        return
    assert found in alike
    hosts = min(far(one.hosts, shape.hosts) for one in alike)
    assert far(found.hosts, shape.hosts) == pytest.approx(hosts)
    ranks = [far(o.ranks_per_host, shape.ranks_per_host) for o in alike if o.hosts == found.hosts]
    assert far(found.ranks_per_host, shape.ranks_per_host) == pytest.approx(min(ranks))


@given(st.sets(several, min_size=1, max_size=8), several, st.integers(0, 50))
def test_more_hosts_are_never_served_by_a_shape_of_fewer(measured, shape, more):
    larger = Shape(shape.hosts + more, shape.ranks_per_host)
    assert nearest_shape(measured, shape).hosts <= nearest_shape(measured, larger).hosts


@given(st.integers(1, 200), st.integers(0, 500))
def test_a_shape_has_one_rank_per_host_only_if_no_host_has_several(hosts, more):
    shape = Shape.of(hosts, hosts + more)
    assert (shape.ranks_per_host == 1) == (more == 0)
    assert 0 <= shape.ranks - (hosts + more) < hosts


def table(kind: str, shape: Shape, name: str) -> Table:
    return Table.exactly("bcast", kind, shape.ranks, shape.hosts, (Rule(0, Candidate(name)),))


def decided(*measured: Table) -> DecisionTable:
    return DecisionTable("c", "0" * 64, "1" * 64, True, tuple(of_all_shapes("bcast", measured)))


def chosen(decision: DecisionTable, kind: str, hosts: int, per_host: int = 1) -> str:
    found = decision.table("bcast", kind, Shape(hosts, per_host))
    return "none" if found is None else found.choice(8).algorithm


def kinds(shape: Shape) -> tuple[str, ...]:
    return (ONE_HOST,) if shape.hosts == 1 else (HOSTS, OTHER)


@given(st.sets(shapes, min_size=1, max_size=8), shapes)
def test_every_shape_on_known_hosts_is_served_by_the_nearest(measured, shape):
    names = {one: f"a{number}" for number, one in enumerate(sorted(measured))}
    made = decided(*(table(kind, one, names[one]) for one in measured for kind in kinds(one)))
    found = made.table("bcast", kinds(shape)[0], shape)
    serving = nearest_shape(measured, shape)
    assert (found and found.shape) == serving
    if found:
        assert found.choice(8).algorithm == names[serving]
        assert found.confirmed == (shape in measured)
    there = made.table("bcast", OTHER, shape) if shape.hosts > 1 else None
    ratios = [inf, inf] if serving is None else [
        far(serving.hosts, shape.hosts), far(serving.ranks_per_host, shape.ranks_per_host)
    ]  # fmt: skip
    if shape.hosts > 1:
        assert (there is not None) == (max(ratios) <= log(REACH) + 1e-12)
        assert there is None or (there.shape == serving and not there.confirmed)


def test_communicators_have_their_own_table_or_that_of_the_nearest_shape():
    made = decided(
        table("cluster", Shape(16, 1), "aapc"), table("hosts", Shape(16, 1), "order"),
        table("other", Shape(16, 1), "any"), table("group left", Shape(8, 1), "tree"),
        table("hosts", Shape(4, 1), "small"), table("other", Shape(4, 1), "few"),
    )  # fmt: skip
    assert [chosen(made, "cluster", n) for n in (16, 8, 1)] == ["aapc", "small", "none"]
    assert [chosen(made, "group left", n) for n in (8, 16)] == ["tree", "order"]
    assert [chosen(made, "hosts", n) for n in (1, 2, 8, 9, 32, 999)] == [
        "none", "small", "small", "order", "order", "order",
    ]  # fmt: skip
    assert [chosen(made, "other", n) for n in (1, 2, 9, 33)] == ["none", "few", "any", "none"]
    assert made.table("reduce", "cluster", Shape(16, 1)) is None


def test_as_many_ranks_on_few_hosts_and_on_many_are_different_shapes():
    made = decided(table("hosts", Shape(2, 16), "shared"), table("hosts", Shape(32, 1), "spread"))
    assert [chosen(made, "hosts", *s) for s in ((2, 16), (32, 1), (4, 8), (16, 2))] == [
        "shared", "spread", "shared", "spread",
    ]  # fmt: skip


def test_one_host_is_served_by_what_was_measured_on_one_host_only():
    measured = [
        table("hosts", Shape(8, 1), "order"),
        table("other", Shape(8, 1), "any"),
        table("one-host", Shape(1, 4), "few"),
    ]
    both = decided(*measured)
    assert [chosen(both, "one-host", 1, n) for n in (2, 4, 8, 64)] == ["few"] * 4
    assert [chosen(both, "hosts", n) for n in (2, 3, 4)] == ["order"] * 3
    over_network = decided(*measured[:2])
    assert {chosen(over_network, "one-host", 1, n) for n in range(1, 20)} == {"none"}
