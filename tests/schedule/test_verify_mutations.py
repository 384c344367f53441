"""The checker rejects what is wrong and nothing else: damaged alltoalls against an oracle."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stagegen.errors import ScheduleError
from stagegen.schedule import SCHEME_NAMES, SCHEMES, Message, Sync, SyncGraph, alltoall_schedule
from stagegen.schedule.verify import verify
from stagegen.schedule.verify.checked_schemes import CHECKED_SCHEMES
from stagegen.schedule.verify.plan import Plan
from stagegen.schedule.verify.progress import check_progress
from stagegen.schedule.verify.sync import read_syncs
from tests.schedule.oracle import Oracle, with_link_rates
from tests.strategies import make_topology, small_topologies, topologies

several = small_topologies.filter(lambda topology: topology.rank_count >= 3)
fast = st.lists(st.sampled_from([1, Fraction(3, 2), 2, 3]), min_size=1, max_size=4)
with_tokens = st.sampled_from([name for name, scheme in SCHEMES.items() if scheme.giver])
full = st.sampled_from(["sender", "receiver"])
every_scheme = st.sampled_from(SCHEME_NAMES)
SIZES = {"block_size": st.integers(1, 4), "window": st.integers(1, 3)}


@st.composite
def cases(draw, scheme_names=every_scheme, topologies=several):
    """A cluster, perhaps with fast links, and a schedule, perhaps with blocks and a window."""
    topology = draw(topologies)
    if draw(st.booleans()):
        topology = with_link_rates(topology, draw(fast))
    scheme_name = draw(scheme_names)
    scheme = SCHEMES[scheme_name]
    has = {"block_size": scheme.blocks, "window": scheme.giver is not None}
    sizes = {name: draw(SIZES[name]) for name, used in has.items() if used}
    return topology, alltoall_schedule(topology, scheme_name, **sizes)


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


def with_syncs(schedule, syncs):
    return replace(schedule, sync=replace(schedule.sync, syncs=tuple(syncs)))


def agrees(topology, schedule) -> bool:
    """Whether the checker and the oracle say the same of a schedule, both ways."""
    return rejected(topology, schedule) != Oracle(topology).is_valid(schedule)


@given(cases())
def test_nothing_is_rejected_without_damage(case):
    assert not rejected(*case)
    assert agrees(*case)


@given(cases(with_tokens), st.data())
def test_a_dropped_message_is_rejected(case, data):
    topology, schedule = case
    phase, place = pick(data, schedule)
    phases = list(map(list, schedule.phases))
    gone = phases[phase].pop(place)
    syncs = (s for s in schedule.sync.syncs if gone not in (s.first, s.then))
    with pytest.raises(ScheduleError, match=f"{gone} is in no phase"):
        verify(topology, with_syncs(with_phases(schedule, phases), syncs))


@given(cases(), st.data())
def test_a_doubled_message_is_rejected(case, data):
    topology, schedule = case
    phase, place = pick(data, schedule)
    phases = list(map(list, schedule.phases))
    twice = phases[phase][place]
    phases[data.draw(st.integers(0, len(phases) - 1))].append(twice)
    with pytest.raises(ScheduleError, match=f"{twice}"):
        verify(topology, with_phases(schedule, phases))


@given(cases(), st.data())
def test_a_moved_message_is_judged_as_by_the_oracle(case, data):
    """Most moves meet contention or break the order; some are harmless, the oracle knows."""
    topology, schedule = case
    phase, place = pick(data, schedule)
    phases = list(map(list, schedule.phases))
    moved = phases[phase].pop(place)
    target = data.draw(st.integers(0, len(phases) - 1))
    assume(target != phase)
    phases[target].append(moved)
    assert agrees(topology, with_phases(schedule, phases))


@given(cases(), st.data())
def test_two_messages_that_change_places_are_judged_as_by_the_oracle(case, data):
    topology, schedule = case
    (p, i), (q, j) = pick(data, schedule), pick(data, schedule)
    assume((p, i) != (q, j))
    phases = list(map(list, schedule.phases))
    phases[p][i], phases[q][j] = phases[q][j], phases[p][i]
    assert agrees(topology, with_phases(schedule, phases))


@given(cases(), st.data())
def test_a_reversed_message_is_rejected(case, data):
    topology, schedule = case
    phase, place = pick(data, schedule)
    phases = list(map(list, schedule.phases))
    phases[phase][place] = Message(*phases[phase][place][::-1])
    with pytest.raises(ScheduleError, match=f"{phases[phase][place]}"):
        verify(topology, with_phases(schedule, phases))


@given(cases(), st.data())
def test_two_phases_that_change_places_are_judged_as_by_the_oracle(case, data):
    """Without syncs that is harmless; with them they mostly go back in time."""
    topology, schedule = case
    phases = list(schedule.phases)
    p, q = data.draw(st.tuples(*2 * [st.integers(0, len(phases) - 1)]))
    phases[p], phases[q] = phases[q], phases[p]
    assert agrees(topology, replace(schedule, phases=tuple(phases)))


@given(cases(full))
def test_every_sync_is_needed(case):
    """Dropping one is always noticed: it implies no other, and no other implies it."""
    topology, schedule = case
    syncs = schedule.sync.syncs
    for index, sync in enumerate(syncs):
        if sync.token is None:  # the program of its sender gives that order anyway
            continue
        with pytest.raises(ScheduleError, match="nothing makes"):
            verify(topology, with_syncs(schedule, syncs[:index] + syncs[index + 1 :]))


@given(cases(with_tokens), st.data())
def test_a_dropped_sync_is_rejected(case, data):
    topology, schedule = case
    syncs = list(schedule.sync.syncs)
    told = [index for index, sync in enumerate(syncs) if sync.token is not None]
    assume(told)
    syncs.pop(data.draw(st.sampled_from(told)))
    assert rejected(topology, with_syncs(schedule, syncs))


@given(
    cases(with_tokens, topologies(max_hosts=20, max_switches=8).filter(lambda t: t.rank_count > 2))
)
def test_a_larger_cluster_without_its_last_sync(case):
    topology, schedule = case
    syncs = list(schedule.sync.syncs)
    told = [index for index, sync in enumerate(syncs) if sync.token is not None]
    assume(told)
    syncs.pop(told[-1])
    assert rejected(topology, with_syncs(schedule, syncs))


@given(cases(with_tokens), st.data())
def test_a_wrong_token_is_rejected(case, data):
    topology, schedule = case
    syncs = list(schedule.sync.syncs)
    assume(syncs)
    index = data.draw(st.integers(0, len(syncs) - 1))
    ranks = st.integers(0, topology.rank_count - 1)
    token = data.draw(st.one_of(st.none(), st.tuples(ranks, ranks)))
    assume(token != syncs[index].token)
    syncs[index] = syncs[index]._replace(token=token)
    with pytest.raises(ScheduleError, match="the token is"):
        verify(topology, with_syncs(schedule, syncs))


def rightful(schedule, first, then) -> Sync:
    """A sync with the token that it has to have."""
    sender = SCHEMES[schedule.sync.scheme].giver == "sender"
    giver = first.source if sender else first.destination
    return Sync(first, then, None if then.source == giver else (giver, then.source))


@given(cases(with_tokens), st.data())
def test_an_additional_sync_is_judged_as_by_the_oracle(case, data):
    """It follows from the others, makes others follow, or belongs to no order at all."""
    topology, schedule = case
    messages = [message for phase in schedule.phases for message in phase]
    first, then = data.draw(st.tuples(st.sampled_from(messages), st.sampled_from(messages)))
    more = (*schedule.sync.syncs, rightful(schedule, first, then))
    assert agrees(topology, with_syncs(schedule, more))


@given(cases(with_tokens), st.data())
def test_a_sync_that_follows_from_others_is_rejected(case, data):
    """A message and the one after the next on some way through the syncs and programs."""
    topology, schedule = case
    graph = nx.DiGraph([(first, then) for first, then, _ in schedule.sync.syncs])
    ways = [(a, c) for a, b in graph.edges for c in graph.successors(b)]
    more = [rightful(schedule, *way) for way in ways]
    more = [sync for sync in more if sync.token is not None]
    assume(more)
    more = (*schedule.sync.syncs, data.draw(st.sampled_from(more)))
    assert rejected(topology, with_syncs(schedule, more))


@given(cases(with_tokens), st.data())
def test_a_sync_with_another_message_is_judged_as_by_the_oracle(case, data):
    topology, schedule = case
    syncs = list(schedule.sync.syncs)
    assume(syncs)
    index = data.draw(st.integers(0, len(syncs) - 1))
    message = data.draw(st.sampled_from([m for phase in schedule.phases for m in phase]))
    first, then, _ = syncs[index]
    ends = data.draw(st.sampled_from([(message, then), (first, message)]))
    syncs[index] = rightful(schedule, *ends)
    assert agrees(topology, with_syncs(schedule, syncs))


@given(cases(), every_scheme, st.integers(1, 3), st.integers(1, 3))
def test_another_scheme_is_judged_as_by_the_oracle(case, scheme_name, block_size, window):
    """The same syncs under another name, with other blocks or another window."""
    topology, schedule = case
    scheme = SCHEMES[scheme_name]
    sync = SyncGraph(
        scheme_name,
        schedule.sync.syncs,
        block_size if scheme.blocks else 1,
        window if scheme.giver else 1,
    )
    assert agrees(topology, replace(schedule, sync=sync))


@given(cases(st.just("dummy")), st.data())
def test_damaged_dummies_are_judged_as_by_the_oracle(case, data):
    """One dropped, moved to another phase, or between other ranks."""
    topology, schedule = case
    dummies = list(map(list, schedule.dummies))
    places = [(p, i) for p, phase in enumerate(dummies) for i in range(len(phase))]
    assume(places)
    phase, place = data.draw(st.sampled_from(places))
    dummy = dummies[phase].pop(place)
    ranks = st.integers(0, topology.rank_count - 1)
    other = Message(*data.draw(st.tuples(ranks, ranks)))
    target = data.draw(st.integers(0, len(dummies) - 1))
    moved = data.draw(st.sampled_from([(phase, other), (target, dummy), None]))
    if moved is not None:
        dummies[moved[0]].append(moved[1])
    assert agrees(topology, replace(schedule, dummies=tuple(map(tuple, dummies))))


@given(cases(st.just("dummy")), st.data())
def test_an_additional_dummy_is_judged_as_by_the_oracle(case, data):
    topology, schedule = case
    dummies = list(map(list, schedule.dummies))
    ranks = st.integers(0, topology.rank_count - 1)
    more = Message(*data.draw(st.tuples(ranks, ranks)))
    dummies[data.draw(st.integers(0, len(dummies) - 1))].append(more)
    assert agrees(topology, replace(schedule, dummies=tuple(map(tuple, dummies))))


def test_syncs_that_go_back_in_time_deadlock():
    topology = make_topology([4], [])
    schedule = alltoall_schedule(topology, "receiver")
    first, then, _ = schedule.sync.syncs[0]
    back = Sync(then, first, (then.destination, first.source))
    with_cycle = with_syncs(schedule, (*schedule.sync.syncs, back))
    with pytest.raises(ScheduleError, match="does not come before"):
        verify(topology, with_cycle)
    plan = Plan.of(with_cycle.phases, topology.rank_count)
    table = read_syncs(with_cycle.sync.syncs, plan)
    with pytest.raises(ScheduleError, match="deadlock"):
        check_progress(plan, table, with_cycle.sync, CHECKED_SCHEMES["receiver"])


def test_other_claims_are_checked():
    topology = make_topology([3, 2, 1], [0, 1])
    schedule = alltoall_schedule(topology, "receiver")
    damaged = {
        "the bound of phases": replace(schedule, bound_phases=schedule.bound_phases - 1),
        "the number of phases": replace(schedule, phases=(*schedule.phases, ())),
        "not the branches": replace(schedule, subtrees=schedule.subtrees[:-1]),
        "not the branches of root s2": replace(schedule, root="s2"),
        "not sorted": replace(schedule, subtrees=schedule.subtrees[::-1]),
        "ranks differ from": replace(schedule, ranks=schedule.ranks[::-1]),
        "unknown sync": replace(schedule, sync=SyncGraph("hope")),
        "cannot hold syncs": replace(schedule, sync=replace(schedule.sync, scheme="barrier")),
        "nothing makes": replace(schedule, sync=SyncGraph("receiver")),
        "no rank 9": replace(schedule, phases=((Message(0, 9),), *schedule.phases)),
        "to itself": replace(schedule, phases=((Message(1, 1),), *schedule.phases)),
    }
    for problem, wrong in damaged.items():
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, wrong)
