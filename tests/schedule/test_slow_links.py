"""Messages over slow links last longer than a phase, and nothing overtakes them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import NotFoundError
from stagegen.schedule import Message, alltoall_schedule
from stagegen.schedule.alltoall.phases.assignment import assign_phases
from stagegen.schedule.alltoall.phases.root import rooted_view
from stagegen.schedule.alltoall.phases.slow_links import (
    TICKS_MOST,
    Clock,
    first_fit_starts,
    one_after_the_other,
)
from stagegen.schedule.alltoall.schedule import alltoall_phases
from stagegen.schedule.verify import verify
from tests.schedule.test_capacity import plain_bound, plain_capacities
from tests.strategies import GIGABIT, examples, fast_topologies, make_topology, oracle_paths

RATES = st.sampled_from([Fraction(1, 2), Fraction(2, 5), Fraction(3, 4), Fraction(1, 10), 1, 2, 3])


@st.composite
def slow_topologies(draw, max_hosts: int = 12):
    """Random trees with two or more ranks and links of any speed, some slower than all hosts'."""
    topology = draw(fast_topologies(max_hosts, 5).filter(lambda t: t.rank_count > 1))
    return replace(
        topology,
        links=tuple(
            replace(link, bandwidth=int(GIGABIT * draw(RATES)), count=1) for link in topology.links
        ),
    )


class Plain:
    """Paths, capacities and durations of messages, from the plain lists."""

    def __init__(self, topology):
        self.paths = oracle_paths(topology)
        self.capacity = plain_capacities(topology)
        self.lasts = {
            message: 1 / min(Fraction(1), *(self.capacity[edge] for edge in path))
            for message, path in self.paths.items()
        }

    def overload(self, starts) -> list[tuple[str, str]]:
        """The edges that carry more than they can when some message starts."""
        users: dict[tuple[str, str], list[tuple[Fraction, Fraction]]] = {}
        for start, message in starts:
            for edge in self.paths[message]:
                users.setdefault(edge, []).append((start, start + self.lasts[message]))
        return [
            edge
            for edge, intervals in users.items()
            for begin, _ in intervals
            if sum(a <= begin < b for a, b in intervals) > max(1, self.capacity[edge])
        ]

    def occupied(self) -> int:
        """How many phases the edge that is occupied longest needs at least."""
        time: dict[tuple[str, str], Fraction] = {}
        for message, path in self.paths.items():
            for edge in path:
                share = int(max(1, self.capacity[edge]))
                time[edge] = time.get(edge, Fraction(0)) + self.lasts[message] / share
        return ceil(max(time.values()))

    def has_room(self, placed, start, message) -> bool:
        """Whether one message more overloads nothing for as long as it lasts."""
        return not self.overload([*placed, (start, message)])

    def replay(self, phases) -> tuple[list[tuple[Fraction, Message]], Fraction]:
        """Start every message as soon as its phase has begun and its edges are free, in order."""
        ends: dict[tuple[str, str], list[Fraction]] = {}
        starts, last = [], Fraction(0)
        for phase, messages in enumerate(phases):
            for message in messages:
                start = Fraction(phase)
                for edge in self.paths[message]:
                    running = sorted(ends.get(edge, []))
                    free = int(max(1, self.capacity[edge]))
                    if len(running) >= free:
                        start = max(start, running[-free])
                for edge in self.paths[message]:
                    ends.setdefault(edge, []).append(start + self.lasts[message])
                starts.append((start, message))
                last = max(last, start + self.lasts[message])
        return starts, last


@examples(60)
@given(slow_topologies())
def test_messages_start_in_their_phases_and_all_end_in_the_last(topology):
    schedule = alltoall_phases(topology)
    assert sorted(m for phase in schedule.phases for m in phase) == sorted(oracle_paths(topology))
    assert plain_bound(topology) == schedule.bound_phases <= len(schedule.phases)
    plain = Plain(topology)
    starts, end = plain.replay(schedule.phases)
    phase_of = {m: phase for phase, messages in enumerate(schedule.phases) for m in messages}
    assert all(phase_of[message] == start // 1 for start, message in starts)
    assert ceil(end) <= len(schedule.phases)
    assert not plain.overload(starts)


@examples(40)
@given(slow_topologies(max_hosts=8), st.randoms(use_true_random=False))
def test_both_ways_to_start_messages_overload_nothing(topology, random):
    clock, phases = Clock.of(topology), assign_phases(rooted_view(topology))
    order = [message for messages in phases for message in messages]
    random.shuffle(order)
    plain = Plain(topology)
    for starts in (
        first_fit_starts(topology, clock, order),
        one_after_the_other(topology, clock, phases),
    ):
        in_phases = [(Fraction(start, clock.ticks), message) for start, message in starts]
        assert sorted(message for _, message in in_phases) == sorted(order)
        assert not plain.overload(in_phases)


@examples(30)
@given(slow_topologies(max_hosts=5), st.randoms(use_true_random=False))
def test_first_fit_leaves_no_room_before_a_message(topology, random):
    clock, plain = Clock.of(topology), Plain(topology)
    order = [Message(*message) for message in sorted(plain.paths)]
    random.shuffle(order)
    placed: list[tuple[Fraction, Message]] = []
    for start, message in first_fit_starts(topology, clock, order):
        for tick in range(start):
            assert not plain.has_room(placed, Fraction(tick, clock.ticks), message)
        placed.append((Fraction(start, clock.ticks), message))


@pytest.mark.parametrize(
    ("hosts", "uplink", "phases"), [([8, 8], 0.5, 128), ([8, 8], 0.4, 160), ([3, 1], 0.3, 10)]
)
def test_a_single_slow_link_is_never_idle(hosts, uplink, phases):
    schedule = alltoall_phases(make_topology(hosts, [0], uplinks=[uplink]))
    assert len(schedule.phases) == schedule.bound_phases == phases


def test_a_slow_link_that_is_no_bottleneck_still_takes_its_time():
    # The link to s1 has load 16·1, the one to s2 has 1·16 messages of two phases each.
    topology = make_topology([8, 8, 1], [0, 0], uplinks=[1, 0.5])
    schedule = alltoall_phases(topology)
    slow = [p for p, messages in enumerate(schedule.phases) for m in messages if m.source == 16]
    assert schedule.bound_phases == 72
    assert all(later - earlier >= 2 for earlier, later in pairwise(slow))


@pytest.mark.parametrize(
    ("hosts", "uplinks"),
    [
        ([0, 3, 3, 3, 8], [0.1, 0.1, 2, 0.4]),
        ([0, 5, 10, 2, 3, 6], [0.75, 0.75, 0.1, 0.1, 0.5]),
        ([0, 5, 9, 3, 7], [0.97, 0.97, 2, 0.9]),
        ([2, 4, 4, 4], [0.5, 0.5, 0.5]),
        ([0, 8, 2, 8], [0.4, 3, 2]),
    ],
)
def test_hardly_more_phases_than_links_are_occupied(hosts, uplinks):
    topology = make_topology(hosts, [0] * len(uplinks), uplinks=uplinks)
    assert len(alltoall_phases(topology).phases) <= 1.05 * Plain(topology).occupied()


@pytest.mark.parametrize("rates", [(666_666_666, 10**9), (333_333_331, 666_666_667)])
def test_odd_rates_do_not_make_schedules_large(rates):
    """Here a tick that makes all durations whole would be less than a billionth of a phase."""
    topology = make_topology([4, 3, 5], [0, 1])
    links = tuple(
        replace(link, bandwidth=rate) for link, rate in zip(topology.links, rates, strict=True)
    )
    topology = replace(topology, links=links)
    assert Clock.of(topology).ticks <= TICKS_MOST
    assert verify(topology, alltoall_schedule(topology)).gap <= 1 / TICKS_MOST


def test_a_link_that_is_far_too_slow_has_no_phases_and_no_routine():
    topology = make_topology([2, 2], [0])
    link = replace(topology.links[0], bandwidth=7)
    topology = replace(topology, links=(link,))
    with pytest.raises(NotFoundError, match=r"link s0–s1 is 1.42857e\+08 times slower"):
        alltoall_schedule(topology)
