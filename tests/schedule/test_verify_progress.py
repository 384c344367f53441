"""Whether all steps complete, compared with carrying them out one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import ScheduleError
from stagegen.schedule import SCHEMES, Message, Sync, SyncGraph, alltoall_schedule
from stagegen.schedule.verify.checked_schemes import CHECKED_SCHEMES
from stagegen.schedule.verify.plan import Plan
from stagegen.schedule.verify.progress import check_progress
from stagegen.schedule.verify.sync import read_syncs
from tests.strategies import small_topologies

several = small_topologies.filter(lambda topology: topology.rank_count >= 3)


def test_the_checker_has_its_own_table_of_the_same_schemes():
    assert set(CHECKED_SCHEMES) == set(SCHEMES)
    for name, scheme in SCHEMES.items():
        checked = CHECKED_SCHEMES[name]
        assert (checked.giver, checked.barriers, checked.dummies) == (
            scheme.giver,
            scheme.barriers,
            scheme.dummies,
        )
        if scheme.giver:
            for pair in ((0, 1), (1, 2), (0, 3)):
                same = pair[0] // 2 == pair[1] // 2
                assert (checked.inside if same else checked.apart) == scheme.keeps(*pair, 2)


def completes(phases, ranks, sync, barriers) -> bool:
    """Carry out every rank's steps as far as they go, under rendezvous.

    A rank begins a step when it has ended the one before, and after the barrier of the block
    before; a message moves when both its ranks have begun, and its tokens have been given; a
    token is given at the end of the giver's step.
    """
    steps = [[p for p, ms in enumerate(phases) if any(r in m for m in ms)] for r in range(ranks)]
    at = [0] * ranks
    moved = set()
    phase_of = {m: p for p, messages in enumerate(phases) for m in messages}

    def ended(rank, phase) -> bool:
        return at[rank] >= len(steps[rank]) or steps[rank][at[rank]] > phase

    def begun(rank, phase) -> bool:
        block = phase // sync.block_size
        passed = not barriers or all(ended(r, block * sync.block_size - 1) for r in range(ranks))
        return passed and at[rank] < len(steps[rank]) and steps[rank][at[rank]] == phase

    def told(first, token) -> bool:
        return first in moved if token is None else ended(token[0], phase_of[first])

    while True:
        ready = [
            m
            for m, p in phase_of.items()
            if m not in moved
            and all(begun(rank, p) for rank in m)
            and all(told(first, token) for first, then, token in sync.syncs if then == m)
        ]
        moved |= set(ready)
        advanced = False
        for rank in range(ranks):
            while at[rank] < len(steps[rank]) and all(
                m in moved for m in phases[steps[rank][at[rank]]] if rank in m
            ):
                at[rank] += 1
                advanced = True
        if not ready and not advanced:
            return len(moved) == len(phase_of)


@given(several, st.sampled_from(list(SCHEMES)), st.integers(1, 4), st.data())
def test_deadlocks_are_found_and_nothing_else(topology, scheme_name, block_size, data):
    """Additional syncs, many of them back in time."""
    phases = alltoall_schedule(topology, "none").phases
    messages = [message for phase in phases for message in phase]
    pairs = data.draw(st.lists(st.tuples(*2 * [st.sampled_from(messages)]), max_size=5))
    syncs = [Sync(first, then, _token(first, then)) for first, then in pairs if first != then]
    sync = SyncGraph(scheme_name, tuple(syncs), block_size)
    plan = Plan.of(phases, topology.rank_count)
    table = read_syncs(sync.syncs, plan)
    if completes(phases, topology.rank_count, sync, CHECKED_SCHEMES[scheme_name].barriers):
        check_progress(plan, table, sync, CHECKED_SCHEMES[scheme_name])
    else:
        with pytest.raises(ScheduleError, match="waits for itself: a deadlock"):
            check_progress(plan, table, sync, CHECKED_SCHEMES[scheme_name])


def _token(first: Message, then: Message) -> tuple[int, int] | None:
    return None if then.source in first else (first.destination, then.source)
