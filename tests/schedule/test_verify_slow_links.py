"""Links slower than the hosts': messages over them last several phases."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from stagegen.errors import ScheduleError
from stagegen.schedule import Message, PhaseSchedule, SyncGraph, alltoall_schedule
from stagegen.schedule.alltoall.sync.synchronise import synchronise
from stagegen.schedule.verify import verify
from tests.schedule.oracle import Oracle, with_link_rates
from tests.schedule.rated import with_rates
from tests.strategies import make_topology


def two_thirds(*hosts: int):
    """Two switches, and a link on which a message takes 1.5 phases."""
    rates = {f"n{i}": 3 * 10**9 for i in range(sum(hosts))}
    return with_link_rates(make_topology(list(hosts), [0], rates=rates), [2])


def schedule_of(topology, *phases) -> PhaseSchedule:
    made = tuple(tuple(Message(*pair) for pair in phase) for phase in phases)
    return PhaseSchedule(
        ranks=topology.ranks,
        root="s0",
        subtrees=((0,), (1,)),
        bound_phases=Oracle(topology).bound,
        phases=made,
        sync=SyncGraph("none"),
    )


def test_two_ranks_need_two_phases_over_a_link_of_two_thirds():
    """The only message of each direction lasts 1.5 phases, so there are two phases."""
    topology = two_thirds(1, 1)
    both = [(0, 1), (1, 0)]
    assert verify(topology, schedule_of(topology, both, ())).phases == 2
    for phases, problem in (
        ((both,), "the number of phases is 1, but the last message ends after 2"),
        ((both, (), (), ()), "the number of phases is 4, but the last message ends after 2"),
    ):
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, schedule_of(topology, *phases))


@pytest.fixture
def slow():
    """Two pairs of ranks over a link on which a message takes 1.5 phases."""
    return two_thirds(2, 2)


LOCAL = [(0, 1), (1, 0), (2, 3), (3, 2)]
OVER = [[(0, 2), (2, 0)], [(1, 3), (3, 1)], [(0, 3), (2, 1)], [(1, 2), (3, 0)]]


def over_the_link_in(*phases):
    """One message in each direction in each of these phases, then the local ones."""
    found = [[] for _ in range(9)]
    for phase, messages in zip(phases, OVER, strict=True):
        found[phase] += messages
    found[7] += LOCAL
    return found


def of_four(topology, phases):
    made = schedule_of(topology, *phases)
    return replace(made, subtrees=((2, 3), (0,), (1,)))


def test_messages_may_start_within_a_phase(slow):
    """At 0, 1.5, 3 and 4.5: phases 0, 1, 3 and 4."""
    proof = verify(slow, of_four(slow, over_the_link_in(0, 1, 3, 4)))
    assert (proof.phases, proof.bound_phases) == (9, 6)
    assert "links slower than the hosts' are free when the messages start" in proof.checked
    verify(slow, of_four(slow, over_the_link_in(0, 2, 4, 6)))


@pytest.mark.parametrize("phases", [(0, 1, 2, 4), (0, 1, 3, 3), (0, 2, 3, 4), (1, 2, 3, 5)])
def test_a_message_cannot_start_while_the_link_is_busy(slow, phases):
    with pytest.raises(ScheduleError, match=r"cannot start in it|share the edge"):
        verify(slow, of_four(slow, over_the_link_in(*phases)))


def test_a_rank_is_busy_for_as_long_as_its_message():
    """0→2 lasts until 2.5, so 0→1 can start in phase 2 and not in phase 1."""
    slow = with_link_rates(make_topology([2, 2], [0]), [Fraction(2, 5)])
    for phase, fits in ((2, True), (1, False)):
        phases = [[] for _ in range(14)]
        for start, messages in zip((0, 4, 7, 10), OVER, strict=True):
            phases[start] += messages
        phases[phase].append((0, 1))
        phases[13].append((1, 0))
        phases[13] += [(2, 3), (3, 2)]
        schedule = of_four(slow, phases)
        if fits:
            verify(slow, schedule)
        else:
            with pytest.raises(ScheduleError, match="phase 1: 0→1 cannot start in it"):
                verify(slow, schedule)


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(4, 5), Fraction(2, 5)])
@pytest.mark.parametrize("scheme_name", ["none", "dummy", "receiver", "sender-partial"])
def test_schedules_for_slow_links_are_proven(factor, scheme_name):
    topology = with_link_rates(make_topology([3, 2, 2], [0, 1]), [factor, 1])
    proof = verify(topology, alltoall_schedule(topology, scheme_name))
    assert proof.gap is not None
    assert proof.gap >= 0


def test_on_a_slow_link_one_message_follows_the_other(slow):
    phases = of_four(slow, over_the_link_in(0, 2, 4, 6)).phases
    expected = Oracle(slow).minimal_syncs(phases)
    syncs = synchronise(slow, phases, "receiver").syncs
    assert {(sync.first, sync.then) for sync in syncs} == expected


def test_dummies_are_proven_beside_links_of_odd_rates():
    """Ticks that divide a message of each of three such links are billions for a phase."""
    slow = {"s1": 941_700_001, "s2": 937_300_003, "s3": 333_333_331}
    topology = with_rates(make_topology([2, 1, 1, 1], [0, 0, 0]), {}, slow)
    proof = verify(topology, alltoall_schedule(topology, "dummy"))
    assert "dummy messages keep every rank busy, and cause no contention" in proof.checked
