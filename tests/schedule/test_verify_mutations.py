"""The checker rejects what is wrong and nothing else: damaged schedules against an oracle."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stagegen.errors import ScheduleError
from stagegen.schedule import (
    Message,
    Sync,
    SyncGraph,
    alltoall_schedule,
    broadcast_tree,
    logical_ring,
)
from stagegen.schedule.verify import verify
from stagegen.schedule.verify_sync import check_progress
from tests.schedule.oracle import Oracle
from tests.strategies import make_topology, small_topologies, topologies

several = small_topologies.filter(lambda topology: topology.rank_count >= 3)
kinds = st.sampled_from(["sender", "receiver"])


def rejected(topology, schedule) -> bool:
    try:
        verify(topology, schedule)
    except ScheduleError:
        return True
    return False


def with_phases(schedule, phases):
    return replace(schedule, phases=tuple(map(tuple, phases)))


def pick(data, schedule):
    """A phase and the place of a message in it."""
    phase = data.draw(st.integers(0, len(schedule.phases) - 1))
    return phase, data.draw(st.integers(0, len(schedule.phases[phase]) - 1))


@given(several, kinds, st.data())
def test_a_dropped_message(topology, kind, data):
    schedule = alltoall_schedule(topology, kind)
    phase, place = pick(data, schedule)
    phases = list(map(list, schedule.phases))
    gone = phases[phase].pop(place)
    syncs = tuple(s for s in schedule.sync.syncs if gone not in (s.first, s.then))
    damaged = replace(with_phases(schedule, phases), sync=SyncGraph(kind, syncs))
    with pytest.raises(ScheduleError, match=f"{gone} is in no phase"):
        verify(topology, damaged)


@given(several, st.data())
def test_a_doubled_message(topology, data):
    schedule = alltoall_schedule(topology, "none")
    phase, place = pick(data, schedule)
    phases = list(map(list, schedule.phases))
    twice = phases[phase][place]
    phases[data.draw(st.integers(0, len(phases) - 1))].append(twice)
    with pytest.raises(ScheduleError, match=f"{twice}"):
        verify(topology, with_phases(schedule, phases))


@given(several, st.sampled_from(["none", "sender", "receiver", "barrier"]), st.data())
def test_a_moved_message(topology, kind, data):
    """Most moves meet contention or break the order; some are harmless, the oracle knows."""
    schedule = alltoall_schedule(topology, kind)
    phase, place = pick(data, schedule)
    phases = list(map(list, schedule.phases))
    moved = phases[phase].pop(place)
    target = data.draw(st.integers(0, len(phases) - 1))
    assume(target != phase)
    phases[target].append(moved)
    damaged = with_phases(schedule, phases)
    assert rejected(topology, damaged) == (not Oracle(topology).is_valid(damaged))


@given(several, kinds, st.data())
def test_two_messages_change_places(topology, kind, data):
    schedule = alltoall_schedule(topology, kind)
    (p, i), (q, j) = pick(data, schedule), pick(data, schedule)
    assume((p, i) != (q, j))
    phases = list(map(list, schedule.phases))
    phases[p][i], phases[q][j] = phases[q][j], phases[p][i]
    damaged = with_phases(schedule, phases)
    assert rejected(topology, damaged) == (not Oracle(topology).is_valid(damaged))


@given(several, kinds)
def test_every_sync_is_needed(topology, kind):
    schedule = alltoall_schedule(topology, kind)
    syncs = schedule.sync.syncs
    for index, sync in enumerate(syncs):
        damaged = replace(schedule, sync=SyncGraph(kind, syncs[:index] + syncs[index + 1 :]))
        with pytest.raises(ScheduleError, match=f"nothing makes {sync.then} wait for"):
            verify(topology, damaged)


@given(
    topologies(max_hosts=20, max_switches=8).filter(lambda t: t.rank_count > 2), kinds, st.data()
)
def test_a_needed_sync_of_a_larger_cluster(topology, kind, data):
    schedule = alltoall_schedule(topology, kind)
    syncs = list(schedule.sync.syncs)
    assume(syncs)
    syncs.pop(data.draw(st.integers(0, len(syncs) - 1)))
    damaged = replace(schedule, sync=SyncGraph(kind, tuple(syncs)))
    assert rejected(topology, damaged)


@given(several, kinds, st.data())
def test_a_wrong_token(topology, kind, data):
    schedule = alltoall_schedule(topology, kind)
    syncs = list(schedule.sync.syncs)
    assume(syncs)
    index = data.draw(st.integers(0, len(syncs) - 1))
    ranks = st.integers(0, topology.rank_count - 1)
    token = data.draw(st.one_of(st.none(), st.tuples(ranks, ranks)))
    assume(token != syncs[index].token)
    syncs[index] = syncs[index]._replace(token=token)
    damaged = replace(schedule, sync=SyncGraph(kind, tuple(syncs)))
    with pytest.raises(ScheduleError, match="the token is"):
        verify(topology, damaged)


@given(several, kinds, st.data())
def test_an_additional_sync(topology, kind, data):
    """A redundant sync does no harm unless its token can be taken for another."""
    schedule = alltoall_schedule(topology, kind)
    messages = [message for phase in schedule.phases for message in phase]
    first, then = data.draw(st.tuples(st.sampled_from(messages), st.sampled_from(messages)))
    giver = first.source if kind == "sender" else first.destination
    token = None if then.source in first else (giver, then.source)
    more = (*schedule.sync.syncs, Sync(first, then, token))
    damaged = replace(schedule, sync=SyncGraph(kind, more))
    assert rejected(topology, damaged) == (not Oracle(topology).is_valid(damaged))


def test_syncs_that_go_back_in_time_deadlock():
    topology = make_topology([4], [])
    schedule = alltoall_schedule(topology, "receiver")
    first, then, _ = schedule.sync.syncs[0]
    back = Sync(then, first, (then.destination, first.source))
    with_cycle = replace(schedule, sync=SyncGraph("receiver", (*schedule.sync.syncs, back)))
    with pytest.raises(ScheduleError, match="does not come before"):
        verify(topology, with_cycle)
    with pytest.raises(ScheduleError, match="deadlock"):
        check_progress(with_cycle)


def test_other_claims_are_checked():
    topology = make_topology([3, 2, 1], [0, 1])
    schedule = alltoall_schedule(topology, "receiver")
    damaged = {
        "the bound of phases": replace(schedule, bound_phases=schedule.bound_phases - 1),
        "the number of phases": replace(schedule, phases=(*schedule.phases, ())),
        "not the branches": replace(schedule, subtrees=schedule.subtrees[:-1]),
        "not the branches of root s2": replace(schedule, root="s2"),
        "not sorted": replace(schedule, subtrees=schedule.subtrees[::-1]),
        "ranks are not those": replace(schedule, ranks=schedule.ranks[::-1]),
        "unknown sync": replace(schedule, sync=SyncGraph("hope")),
        "cannot hold syncs": replace(schedule, sync=replace(schedule.sync, kind="barrier")),
        "nothing makes": replace(schedule, sync=SyncGraph("receiver")),
        "no rank 9": replace(schedule, phases=((Message(0, 9),), *schedule.phases)),
        "to itself": replace(schedule, phases=((Message(1, 1),), *schedule.phases)),
    }
    for problem, wrong in damaged.items():
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, wrong)


@given(several, st.data())
def test_two_ring_neighbours_swapped(topology, data):
    """Neighbours on one switch may change places; the oracle knows."""
    ring = logical_ring(topology)
    order = list(ring.order)
    place = data.draw(st.integers(0, len(order) - 1))
    order[place - 1], order[place] = order[place], order[place - 1]
    pairs = list(zip(order, order[1:] + order[:1], strict=True))
    oracle = Oracle(topology)
    hops = max(topology.hops(*pair) for pair in pairs)
    damaged = replace(ring, order=tuple(order))
    harmless = oracle.contention_free(pairs) and hops == ring.max_hops
    assert rejected(topology, damaged) == (not harmless)


def test_swapped_neighbours_of_different_switches_are_rejected():
    topology = make_topology([3, 3], [0])
    ring = logical_ring(topology)
    with pytest.raises(ScheduleError, match="share the edge"):
        verify(topology, replace(ring, order=(0, 1, 3, 2, 4, 5)))


def test_other_claims_of_a_ring_are_checked():
    topology = make_topology([3, 3], [0])
    ring = logical_ring(topology)
    damaged = {
        "rank 2 is missing": replace(ring, order=(0, 1, 3, 4, 5)),
        "rank 1 comes more than once": replace(ring, order=(0, 1, 1, 3, 4, 5)),
        "no rank 6": replace(ring, order=(0, 1, 2, 3, 4, 6)),
        "the most hops are 2, not 1": replace(ring, max_hops=1),
    }
    for problem, wrong in damaged.items():
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, wrong)


@given(several, st.data())
def test_a_tree_with_another_parent(topology, data):
    tree = broadcast_tree(topology, data.draw(st.integers(0, topology.rank_count - 1)))
    edges = list(tree.edges)
    place = data.draw(st.integers(0, len(edges) - 1))
    parent = data.draw(st.integers(0, topology.rank_count - 1))
    child = edges[place].destination
    assume(parent not in (child, edges[place].source))
    edges[place] = Message(parent, child)
    oracle = Oracle(topology)
    below = {tree.root: 0}
    for _ in edges:
        below |= {e.destination: below[e.source] + 1 for e in edges if e.source in below}
    harmless = (
        len(below) == topology.rank_count
        and max(below.values()) == tree.height
        and not any(
            oracle.clash(a, b) for a, b in itertools.combinations(edges, 2) if a.source != b.source
        )
    )
    assert rejected(topology, replace(tree, edges=tuple(edges))) == (not harmless)


def test_other_claims_of_a_tree_are_checked():
    topology = make_topology([2, 2], [0])
    tree = broadcast_tree(topology, 0)
    first, second, third = tree.edges
    damaged = {
        "rank 3 has no parent": replace(tree, edges=(first, second)),
        "second parent": replace(tree, edges=(*tree.edges, Message(0, 3))),
        "leads into the root": replace(tree, edges=(*tree.edges, Message(3, 0))),
        "on a cycle": replace(tree, edges=(first, Message(3, 2), third)),
        "no rank 4": replace(tree, edges=(*tree.edges, Message(3, 4))),
        "no rank 7": replace(tree, root=7),
        "the height is 3, not 2": replace(tree, height=2),
        "contention_free is wrong": replace(tree, contention_free=False),
        "0→2 and 1→3 share the edge s0→s1": replace(
            tree, edges=(first, Message(0, 2), Message(1, 3)), height=2
        ),
    }
    for problem, wrong in damaged.items():
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, wrong)
