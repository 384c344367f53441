"""Checks logical rings; for :mod:`stagegen.schedule.verify`."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from stagegen.schedule.model import RING_CONSTRUCTIONS, Message, Ring
from stagegen.schedule.verify.hops import Climb
from stagegen.schedule.verify.paths import require, require_rank, require_same_ranks
from stagegen.schedule.verify.proof import Proof
from stagegen.topology import Edge, Topology


def verify_ring(topology: Topology, ring: Ring) -> Proof:
    """Check a logical ring, in time linear in the size of the cluster.

    For `lr2` it checks that no message passes more than two switches; for `lr3` it states that no
    ring has fewer hops if a single switch shows this.

    Raises:
        ScheduleError: a property does not hold.
    """
    require_same_ranks(topology, ring.ranks)
    _check_every_rank_once(ring, topology.rank_count)
    climb = Climb(topology)
    hops = most_hops(climb, ring)
    require(hops == ring.max_hops, f"ring: the most hops are {hops}, not {ring.max_hops}")
    return Proof(
        collective="allgather",
        ranks=len(ring.ranks),
        # Every rank receives a block from every other, one after the other.
        phases=len(ring.ranks) - 1,
        bound_phases=len(ring.ranks) - 1,
        syncs=None,
        checked=(
            "the ring has every rank exactly once",
            "no network edge is used more than once",
            f"a message passes at most {hops} switches",
            *_promise(ring, climb),
        ),
    )


def verify_order(topology: Topology, ring: Ring) -> Proof:
    """Check the depth-first order of the ranks, as the ring around it.

    For routines that use the depth-first order, only the order is proven, not their messages. But
    the messages of a routine that goes around the order are those of the ring.

    Raises:
        ScheduleError: a property does not hold.
    """
    proof = verify_ring(topology, ring)
    checked = (
        "the order has every rank exactly once",
        "a ring around the order uses no network edge more than once, nor does one of fewer hosts",
        f"a message to the next rank of the order passes at most {ring.max_hops} switches",
    )
    return replace(proof, phases=None, bound_phases=None, checked=checked)


def _check_every_rank_once(ring: Ring, count: int) -> None:
    require(
        ring.construction in RING_CONSTRUCTIONS, f"ring: unknown construction {ring.construction!r}"
    )
    seen: set[int] = set()
    for rank in ring.order:
        require_rank(rank, count, "ring")
        require(rank not in seen, f"ring: rank {rank} comes more than once")
        seen.add(rank)
    missing = set(range(count)) - seen
    require(not missing, f"ring: rank {min(missing, default=0)} is missing")


def most_hops(climb: Climb, ring: Ring) -> int:
    """Return the most switches that a message between neighbours passes.

    Raises:
        ScheduleError: two messages share an edge. That ends the search, so all paths together
            have no more edges than the network.
    """
    user: dict[Edge, Message] = {}
    hops = 0
    for message in map(Message, ring.order, chain(ring.order[1:], ring.order[:1])):
        path = climb.path(ring.ranks[message.source], ring.ranks[message.destination])
        for edge in path:
            first = user.setdefault(edge, message)
            require(
                first is message,
                f"ring: {first} and {message} share the edge {edge[0]}→{edge[1]}",
            )
        hops = max(hops, len(path) - 1)
    return hops


def _promise(ring: Ring, climb: Climb) -> tuple[str, ...]:
    """Return how far the hops are from a lower bound, in words.

    Raises:
        ScheduleError: a construction's promise is broken.
    """
    if ring.construction == "lr2":
        require(ring.max_hops <= 2, f"ring: lr2 has {ring.max_hops} hops, not 2 at most")
    floor = climb.floor()
    if ring.max_hops == floor.hops:
        at = "" if floor.switch is None else f", as switch {floor.switch} shows"
        return (f"no contention-free ring has a smaller maximum{at}",)
    bound = f"every contention-free ring has {floor.hops} or more, as switch {floor.switch} shows"
    if ring.construction == "lr3":
        return (f"not shown here: that this maximum is the least; {bound}",)
    return (bound,)
