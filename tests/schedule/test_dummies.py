"""Dummies keep every rank busy in every phase, and cost no link anything that it lacks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from stagegen.schedule import Message, PhaseSchedule
from stagegen.schedule.alltoall.phases.dummies import dummy_messages
from stagegen.schedule.alltoall.schedule import alltoall_phases, alltoall_schedule, with_sync
from tests.schedule.test_capacity import plain_capacities
from tests.strategies import examples, fast_topologies, make_topology, oracle_paths, topologies


def switches(topology) -> list[str]:
    return [topology.host_by_name[host].switch for host in topology.ranks]


def check(topology, phases, dummies) -> None:
    assert len(dummies) == len(phases)
    paths, capacity, switch = oracle_paths(topology), plain_capacities(topology), switches(topology)
    ranks = set(range(topology.rank_count))
    for phase, extra in zip(phases, dummies, strict=True):
        both = [*phase, *extra]
        sources, destinations = Counter(u for u, _ in both), Counter(v for _, v in both)
        assert {*sources.values(), *destinations.values()} <= {1}
        assert sources.keys() | destinations.keys() == ranks
        busy = {rank for message in phase for rank in message}
        assert all(switch[u] == switch[v] and not {u, v} <= busy for u, v in extra)
        load = Counter(edge for m in both if m[0] != m[1] for edge in paths[m])
        assert all(messages <= capacity[edge] for edge, messages in load.items())
        for rank, other in extra:
            if rank == other:
                assert not partners(topology, rank, both, load)


def partners(topology, rank, messages, load) -> list[Message]:
    """The dummies that could take the place of one from a rank to itself."""
    paths, capacity, switch = oracle_paths(topology), plain_capacities(topology), switches(topology)
    sends, receives = {u for u, _ in messages}, {v for _, v in messages}
    near = [r for r in range(topology.rank_count) if r != rank and switch[r] == switch[rank]]
    could = [Message(rank, r) for r in near if r not in receives]
    could += [Message(r, rank) for r in near if r not in sends]
    room = {edge: max(1, capacity[edge]) - load[edge] for m in could for edge in paths[m]}
    return [m for m in could if all(room[edge] >= 1 for edge in paths[m])]


@examples(40)
@given(topologies(max_hosts=16, max_switches=6, max_ranks=16))
def test_all_ranks_are_busy_without_contention(topology):
    schedule = alltoall_phases(topology)
    check(topology, schedule.phases, dummy_messages(topology, schedule.phases))


@examples(40)
@given(fast_topologies(max_hosts=12, max_switches=5))
def test_all_ranks_are_busy_without_overload_of_faster_links(topology):
    schedule = alltoall_phases(topology)
    check(topology, schedule.phases, dummy_messages(topology, schedule.phases))


def test_idle_ranks_send_to_the_lowest_that_does_not_receive():
    topology = make_topology([4, 1], [0])
    phases = ((Message(0, 4),), (Message(4, 1), Message(1, 2)), ())
    assert dummy_messages(topology, phases) == (
        # 1 to the lowest that does not receive; 2 and 3 likewise; 4 receives.
        ((1, 0), (2, 1), (3, 2)),
        # 0 sends to 3, which is no longer idle.
        ((0, 3),),
        ((0, 1), (2, 0), (3, 2), (4, 4)),
    )


def test_a_shared_link_is_left_alone():
    # n0 has ranks 0 and 1; while 0 sends over its link, 1 cannot send to n1, but to 0.
    topology = make_topology([2, 1], [0], slots={"n0": 2})
    assert dummy_messages(topology, ((Message(0, 3),),))[0][0] == (1, 0)
    busy = ((Message(0, 3), Message(3, 0)),)
    assert dummy_messages(topology, busy) == (((1, 1), (2, 2)),)


def test_a_message_over_a_slow_link_keeps_its_ranks_busy():
    topology = make_topology([2, 2], [0], uplinks=[0.4])
    phases = ((Message(0, 2),), (), (), ())
    # It lasts 2.5 phases, so 0 and 2 are not idle in the first three.
    busy, idle = ((1, 0), (2, 3)), ((0, 1), (2, 3))
    assert dummy_messages(topology, phases) == (busy, busy, busy, idle)


@pytest.mark.parametrize("scheme_name", ["none", "dummy", "receiver"])
def test_only_the_dummy_scheme_has_dummies(scheme_name):
    topology = make_topology([3, 2], [0])
    schedule = alltoall_schedule(topology, scheme_name)
    assert bool(schedule.dummies) == (scheme_name == "dummy")
    assert PhaseSchedule.from_json(schedule.to_json()) == schedule
    assert with_sync(topology, schedule, "none").dummies == ()
