"""Schedules of patterns: the checker accepts all that is made, and no damage."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError, ScheduleError
from stagegen.patterns import FAMILIES, Pattern, make_pattern
from stagegen.schedule import PATTERN_CONSTRUCTIONS, PatternSchedule, Piece, Wait, aggregated
from stagegen.schedule import pattern_schedule as schedule_of
from stagegen.schedule.patterns.volume import volumes
from stagegen.schedule.verify import verify
from stagegen.topology import load_topology
from tests.strategies import examples, fast_topologies, make_topology, oracle_paths, topologies

clusters = st.one_of(topologies(12, 5, 14), fast_topologies(10, 5)).filter(
    lambda topology: topology.rank_count > 1
)
sizes = st.sampled_from([0, 0, 1, 700, 4096, 65536, 300001])
constructions = st.sampled_from(PATTERN_CONSTRUCTIONS)


@st.composite
def cases(draw):
    topology = draw(clusters)
    ranks = topology.rank_count
    row = st.lists(sizes, min_size=ranks, max_size=ranks).map(tuple)
    rows = tuple(draw(st.lists(row, min_size=ranks, max_size=ranks)))
    return topology, Pattern("p", "alltoallv", rows)


@examples(50)
@given(cases(), constructions, st.sampled_from([None, 1, 999, 30000]))
def test_every_schedule_is_proven(case, construction, segment):
    topology, pattern = case
    if segment == 1:
        pattern = pattern.scaled(1e-4)
    schedule = schedule_of(topology, pattern, construction, segment)
    verify(topology, schedule)
    assert schedule.seconds >= schedule.bound_seconds * (1 - 1e-9)
    assert PatternSchedule.from_json(schedule.to_json()) == schedule


def test_a_rank_may_have_more_pieces_than_16_bits_count():
    pattern = Pattern("p", "alltoallv", ((0, 33_000), (0, 0)))
    schedule = schedule_of(make_topology([2], []), pattern, "segments", 1)
    assert len(schedule.waits) == 32_999
    verify(make_topology([2], []), schedule)


@examples(40)
@given(cases())
def test_the_bound_is_the_largest_load_over_rate(case):
    topology, pattern = case
    loads: Counter[tuple[str, str]] = Counter()
    for (u, v), path in oracle_paths(topology).items():
        for edge in path:
            if edge in topology.rates:
                loads[edge] += pattern.sizes[u][v]
    wanted = max((Fraction(8 * n, topology.rates[e]) for e, n in loads.items()), default=0)
    assert schedule_of(topology, pattern, "greedy").bound_seconds == pytest.approx(float(wanted))
    found = volumes(topology, pattern)
    assert {link.edge: link.bytes for link in found if link.bytes} == {
        edge: load for edge, load in loads.items() if load
    }


def star(hosts: int):
    return make_topology([hosts], [])


MADE = make_pattern("zipf", 8, 40000, seed=2)


@pytest.fixture(
    params=[
        (construction, segment)
        for construction in PATTERN_CONSTRUCTIONS
        for segment in (None, 30000)
    ]
)
def proven(request):
    construction, segment = request.param
    topology = make_topology([3, 3, 2], [0, 1])
    schedule = schedule_of(topology, MADE, construction, segment)
    verify(topology, schedule)
    return topology, schedule


def rejects(topology, schedule, said):
    with pytest.raises(ScheduleError, match=said):
        verify(topology, schedule)


def test_no_wait_can_be_left_out(proven):
    topology, schedule = proven
    for place in range(len(schedule.waits)):
        waits = schedule.waits[:place] + schedule.waits[place + 1 :]
        rejects(topology, replace(schedule, waits=waits), "nothing makes")


def test_no_wait_can_be_added(proven):
    topology, schedule = proven
    first, last = schedule.phases[0][0], schedule.phases[-1][-1]
    rejects(
        topology,
        replace(schedule, waits=(*schedule.waits, schedule.waits[0])),
        "superfluous|mistaken",
    )
    rejects(topology, replace(schedule, waits=(*schedule.waits, Wait(last, first))), "earlier")


def test_no_piece_can_be_left_out_or_doubled(proven):
    topology, schedule = proven
    for number, phase in enumerate(schedule.phases):
        for place in range(len(phase)):
            less = phase[:place] + phase[place + 1 :]
            phases = (*schedule.phases[:number], less, *schedule.phases[number + 1 :])
            rejects(topology, replace(schedule, phases=phases), "pieces|lacks")
    phases = (*schedule.phases, (schedule.phases[0][0],))
    rejects(topology, replace(schedule, phases=phases), "twice")


def test_no_two_phases_can_be_one(proven):
    topology, schedule = proven
    for number in range(len(schedule.phases) - 1):
        both = schedule.phases[number] + schedule.phases[number + 1]
        phases = (*schedule.phases[:number], both, *schedule.phases[number + 2 :])
        rejects(topology, replace(schedule, phases=phases), "carries|earlier")


def test_wrong_times_bounds_ranks_and_sizes_are_rejected(proven):
    topology, schedule = proven
    rejects(topology, replace(schedule, seconds=schedule.seconds * 1.01), "time")
    rejects(topology, replace(schedule, bound_seconds=schedule.bound_seconds / 2), "bound")
    rejects(topology, replace(schedule, ranks=schedule.ranks[::-1]), "ranks")
    strange = Piece(0, 99)
    rejects(topology, replace(schedule, phases=((strange,), *schedule.phases)), "no rank 99")
    rejects(topology, replace(schedule, phases=schedule.phases[::-1]), "earlier")
    sizes = [list(row) for row in schedule.sizes]
    u, v = schedule.phases[0][0][:2]
    sizes[u][v] = 0
    rejects(topology, replace(schedule, sizes=tuple(map(tuple, sizes))), "pieces")


@pytest.mark.parametrize("name", ["chain-4x4-cyclic", "slots-4x2x2", "slow-uplink-16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_segments_come_near_the_bound(name, family):
    topology = load_topology(f"topologies/{name}.yaml")
    pattern = make_pattern(family, topology.rank_count, 32768, seed=1)
    ours = schedule_of(topology, pattern)
    verify(topology, ours)
    assert ours.gap < 0.15
    assert ours.seconds <= schedule_of(topology, pattern, "greedy").seconds * 1.006


def test_segments_fill_what_whole_messages_leave_idle():
    """Three ranks; 0 and 1 each send to 2 one long message, and to each other short ones."""
    sizes = ((0, 10**6, 2 * 10**6), (10**6, 0, 2 * 10**6), (0, 0, 0))
    pattern = Pattern("p", "alltoallv", sizes)
    assert schedule_of(star(3), pattern, segment=100_000).gap < 0.01


def test_all_to_all_has_no_more_phases_than_the_alltoall():
    topology = make_topology([4, 4], [0])
    for seed in range(5):
        pattern = make_pattern("sparse", 8, 10000, seed, 0.5)
        assert len(schedule_of(topology, pattern, "all-to-all").phases) <= 16


def test_by_host_the_links_carry_the_same():
    topology = load_topology("topologies/slots-4x2x2.yaml")
    pattern = make_pattern("zipf", topology.rank_count, 32768)
    leaders, together = aggregated(topology, pattern)
    switches = {switch.name for switch in topology.switches}
    one, other = (
        {link.edge: link.bytes for link in volumes(*pair)}
        for pair in ((topology, pattern), (leaders, together))
    )
    assert one == other
    assert any(switches & set(edge) for edge in one)
    verify(leaders, schedule_of(leaders, together))


def test_a_schedule_of_other_ranks_or_of_an_unknown_construction_is_refused():
    with pytest.raises(InputError, match="unknown schedule"):
        schedule_of(star(8), MADE, "best")
    with pytest.raises(InputError, match="on 8 ranks"):
        schedule_of(star(7), MADE)
    with pytest.raises(InputError, match="at least 1"):
        schedule_of(star(8), MADE, segment=0)
    with pytest.raises(InputError, match="8 ranks"):
        volumes(star(7), MADE)


@pytest.mark.parametrize("value", [0, 5])
def test_patterns_with_nothing_or_only_own_blocks_need_no_phase(value):
    pattern = Pattern("p", "alltoallv", tuple(map(tuple, (value * np.eye(4, dtype=int)).tolist())))
    for construction in PATTERN_CONSTRUCTIONS:
        schedule = schedule_of(star(4), pattern, construction)
        assert (schedule.phases, schedule.seconds, schedule.gap) == ((), 0.0, 0.0)
        verify(star(4), schedule)
