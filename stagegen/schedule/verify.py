"""An independent checker of schedules: proves what a generated header claims.

It shares no code with the schedulers, takes a topology's plain lists and recomputes paths,
loads and orders. Every violation is a :class:`~stagegen.errors.ScheduleError` that names the
rank, phase or message.
"""

from __future__ import annotations

from stagegen.errors import ScheduleError
from stagegen.schedule.model import Message, PhaseSchedule
from stagegen.schedule.proof import Proof
from stagegen.schedule.shapes import Ring, Tree
from stagegen.schedule.verify_paths import Network, require, require_rank, require_same_ranks
from stagegen.schedule.verify_ring import verify_ring
from stagegen.schedule.verify_sync import (
    check_order,
    check_progress,
    check_syncs,
    check_token_order,
)
from stagegen.schedule.verify_tree import verify_tree
from stagegen.topology import Topology

__all__ = ["Proof", "verify", "verify_alltoall", "verify_ring", "verify_tree"]

_SEPARATION = {
    "none": "phases are not kept apart (sync none)",
    "barrier": "phases are kept apart by barriers",
    "sender": "messages with contention start in order of their phases (sender-based tokens)",
    "receiver": "messages with contention follow each other's arrival (receiver-based tokens)",
}


def verify_alltoall(topology: Topology, schedule: PhaseSchedule) -> Proof:
    """Check an alltoall schedule.

    Raises:
        ScheduleError: a property does not hold.
    """
    require_same_ranks(topology, schedule.ranks)
    network, count = Network(topology), topology.rank_count
    phase_of = _check_every_pair_once(schedule, count)
    for phase, messages in enumerate(schedule.phases):
        network.require_contention_free(messages, f"phase {phase}")
    bottleneck = network.bottleneck() if count > 1 else 0
    for name, number in (("bound", schedule.bound_phases), ("number", len(schedule.phases))):
        require(
            number == bottleneck,
            f"the {name} of phases is {number}, but the load of the bottleneck is {bottleneck}",
        )
    _check_root(schedule, network)
    check_syncs(schedule, phase_of)
    check_token_order(schedule, phase_of)
    if schedule.sync.kind in ("sender", "receiver"):
        check_order(schedule, network)
    check_progress(schedule)
    return Proof(
        collective="alltoall",
        ranks=count,
        phases=len(schedule.phases),
        bound_phases=bottleneck,
        syncs=len(schedule.sync.syncs),
        checked=(
            "every ordered pair of ranks is in exactly one phase",
            "no two messages of a phase share a network edge",
            "the number of phases is the load of the bottleneck",
            _SEPARATION[schedule.sync.kind],
            "the steps of all ranks complete under rendezvous",
        ),
    )


def _check_every_pair_once(schedule: PhaseSchedule, count: int) -> dict[Message, int]:
    """Check that all pairs are there once; return the phase of each message."""
    require(schedule.sync.kind in _SEPARATION, f"unknown sync {schedule.sync.kind!r}")
    phase_of: dict[Message, int] = {}
    for phase, messages in enumerate(schedule.phases):
        for message in messages:
            for rank in message:
                require_rank(rank, count, f"phase {phase}")
            require(message.source != message.destination, f"phase {phase}: {message} to itself")
            require(
                message not in phase_of,
                f"phase {phase}: {message} was in phase {phase_of.get(message)} already",
            )
            phase_of[message] = phase
    if len(phase_of) < count * (count - 1):
        pairs = (Message(a, b) for a in range(count) for b in range(count) if a != b)
        missing = next(message for message in pairs if message not in phase_of)
        raise ScheduleError(f"message {missing} is in no phase")
    return phase_of


def _check_root(schedule: PhaseSchedule, network: Network) -> None:
    """Check that the subtrees are the branches of the root, with at most half of the ranks."""
    subtrees, count = schedule.subtrees, len(schedule.ranks)
    require(
        sorted(subtrees) == network.branches(schedule.root),
        f"the subtrees are not the branches of root {schedule.root}",
    )
    sizes = [len(subtree) for subtree in subtrees]
    require(sizes == sorted(sizes, reverse=True), "the subtrees are not sorted by size")
    require(
        count == 1 or 2 * sizes[0] <= count,
        f"the subtree of rank {subtrees[0][0]} has more than half of the ranks",
    )


def verify(topology: Topology, schedule: PhaseSchedule | Ring | Tree) -> Proof:
    """Check any schedule.

    Raises:
        ScheduleError: a property does not hold.
    """
    if isinstance(schedule, PhaseSchedule):
        return verify_alltoall(topology, schedule)
    if isinstance(schedule, Ring):
        return verify_ring(topology, schedule)
    return verify_tree(topology, schedule)
