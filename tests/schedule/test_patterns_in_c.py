"""Patterns scheduled in C at run time: proven by the checker, as short as those of Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.data import TOPOLOGIES
from stagegen.patterns import make_pattern
from stagegen.schedule import pattern_schedule
from stagegen.schedule.verify import verify
from stagegen.topology import load_topology
from tests.schedule.pattern_in_c import planned
from tests.schedule.rated import with_rates
from tests.strategies import examples, fast_topologies, make_topology, topologies

clusters = st.one_of(topologies(12, 5, 14), fast_topologies(10, 5))
sizes = st.sampled_from([0, 0, 1, 700, 4096, 65536, 300001])
#: Words of sets and looks at links that 64 ranks may take: some 50 ms of a slow CPU.
OPERATIONS = 25_000_000


@st.composite
def cases(draw):
    topology = draw(clusters)
    ranks = topology.rank_count
    rows = st.lists(sizes, min_size=ranks * ranks, max_size=ranks * ranks)
    return topology, np.array(draw(rows), np.int64).reshape(ranks, ranks)


@examples(120)
@given(cases(), st.sampled_from([1, 999, 30000, 1 << 40]))
def test_every_schedule_is_proven(case, segment):
    topology, blocks = case
    schedule = planned(topology, blocks, segment).schedule
    verify(topology, schedule)
    assert schedule.seconds >= schedule.bound_seconds * (1 - 1e-9)


@pytest.mark.parametrize("name", ["chain-4x4-cyclic", "cluster-24-a", "slots-4x2x2"])
@pytest.mark.parametrize("family", ["zipf", "sparse", "heavy", "banded"])
def test_it_is_as_short_as_the_one_of_python(name, family):
    topology = load_topology(TOPOLOGIES / f"{name}.yaml")
    pattern = make_pattern(family, topology.rank_count, 32768, seed=3)
    ours = planned(topology, pattern.array, 16384).schedule
    theirs = pattern_schedule(topology, pattern, "segments", 16384)
    assert ours.seconds <= 1.05 * theirs.seconds


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("family", ["zipf", "sparse", "heavy", "banded"])
def test_links_that_carry_all_pieces_at_a_time_change_no_order(family, seed):
    """Work on a link is counted over its capacity, whether or not it is ever used."""
    topology = with_rates(
        make_topology([3, 4, 1, 3], [0, 0, 1]), {}, {"s1": 10**10, "s2": 10**11, "s3": 4 * 10**11}
    )
    pattern = make_pattern(family, topology.rank_count, 32768, seed=seed)
    ours = planned(topology, pattern.array, 1 << 40).schedule
    theirs = pattern_schedule(topology, pattern, "segments", 1 << 40)
    assert ours.seconds == pytest.approx(theirs.seconds)


@pytest.mark.parametrize("rate", [2**31, 2**32, 10**15])
def test_a_link_may_be_faster_than_a_host_by_any_factor(rate):
    hosts = {f"n{number}": 1 for number in range(6)}
    topology = with_rates(make_topology([3, 3], [0]), hosts, {"s1": rate})
    pattern = make_pattern("zipf", 6, 1000, seed=1)
    schedule = planned(topology, pattern.array, 300).schedule
    verify(topology, schedule)
    theirs = pattern_schedule(topology, pattern, "segments", 300)
    assert schedule.seconds == pytest.approx(theirs.seconds)


@pytest.mark.parametrize("family", ["even", "zipf", "heavy"])
@pytest.mark.parametrize("links", [(0, 1, 2), (0, 0, 0)])
def test_64_ranks_are_planned_with_few_operations(family, links):
    topology = make_topology([16, 16, 16, 16], links)
    even = np.full((64, 64), 32768, np.int64)
    sizes = even if family == "even" else make_pattern(family, 64, 32768, seed=1).array
    plan = planned(topology, sizes, 4096)
    assert plan.operations < OPERATIONS
    assert plan.schedule.gap < 0.2
