"""Checks logical rings; for :mod:`stagegen.schedule.verify`."""

from __future__ import annotations

from stagegen.schedule.model import Message
from stagegen.schedule.proof import Proof
from stagegen.schedule.shapes import Ring
from stagegen.schedule.verify_paths import Network, require, require_rank, require_same_ranks
from stagegen.topology import Topology


def verify_ring(topology: Topology, ring: Ring) -> Proof:
    """Check a logical ring.

    Raises:
        ScheduleError: a property does not hold.
    """
    require_same_ranks(topology, ring.ranks)
    network, count = Network(topology), topology.rank_count
    seen: set[int] = set()
    for rank in ring.order:
        require_rank(rank, count, "ring")
        require(rank not in seen, f"ring: rank {rank} comes more than once")
        seen.add(rank)
    missing = set(range(count)) - seen
    require(not missing, f"ring: rank {min(missing, default=0)} is missing")
    following = ring.order[1:] + ring.order[:1]
    messages = [Message(*pair) for pair in zip(ring.order, following, strict=True)]
    if count == 1:
        messages = []
    network.require_contention_free(messages, "ring")
    hops = max(map(network.hops, messages), default=0)
    require(hops == ring.max_hops, f"ring: the most hops are {hops}, not {ring.max_hops}")
    return Proof(
        collective="allgather",
        ranks=count,
        phases=None,
        bound_phases=None,
        syncs=None,
        checked=(
            "the ring has every rank exactly once",
            "no network edge is used more than once",
            f"a message passes at most {hops} switches",
        ),
    )
