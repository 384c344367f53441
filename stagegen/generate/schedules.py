"""Schedules in the shape of C tables, each with the summary of its proof.

A schedule is verified before it is written: :meth:`Scheduler.make` raises where the
independent checker finds a fault. A routine with parameters is verified for each of their
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from math import inf
from typing import Any

from stagegen.errors import NotFoundError
from stagegen.generate.aapc import Aapc
from stagegen.generate.tables import numbers
from stagegen.generate.trees import KaryTrees
from stagegen.repository import Algorithm
from stagegen.schedule import RING_KINDS, Ring, logical_ring
from stagegen.schedule.capacity import require_phases
from stagegen.schedule.phases.hierarchy import Hierarchy, hierarchy
from stagegen.schedule.verify import Proof, verify_order, verify_ring
from stagegen.topology import Topology

INT_MOST = 2**31 - 1
LEADER_BYTES = 2**30
"""What the leader of a host may need in memory for a hierarchical alltoall."""

_Values = dict[str, Any]
_Made = tuple[_Values, Mapping[str, Proof]]


@lru_cache(maxsize=32)
def scheduler_of(topology: Topology) -> Scheduler:
    """Return the scheduler of a topology; it keeps what several routines need."""
    return Scheduler(topology)


class Scheduler:
    """Makes the values that a template which ``needs`` a schedule is rendered with."""

    def __init__(self, topology: Topology):
        self._topology = topology

    def exists(self, algorithm: Algorithm) -> bool:
        """Tell whether the topology has the schedule that an algorithm needs.

        It has not where there is no such ring, or no shorter one than those of earlier kinds,
        where a link is too slow for phases, and, for hierarchical algorithms, where no host has
        several ranks.
        """
        if algorithm.needs is None:
            return True
        if self._topology.rank_count < 2:
            return False
        if algorithm.needs in ("aapc", "hosts") and not self._has_phases:
            return False
        if algorithm.needs in ("hosts", "leaders"):
            return 1 < len(self._hierarchy.leaders) < self._topology.rank_count
        return algorithm.needs != "ring" or self._rings[algorithm.kind or ""] is not None

    def narrowed(self, algorithm: Algorithm) -> Algorithm:
        """Return the algorithm without values of parameters that change nothing here."""
        if algorithm.needs not in ("aapc", "hosts"):
            return algorithm
        parameters = tuple(map(self._aapc_of(algorithm).narrowed, algorithm.parameters))
        most = algorithm.max_bytes
        if algorithm.needs == "hosts":
            most = min(most or INT_MOST, self._most_for_leaders())
        return replace(algorithm, parameters=parameters, max_bytes=most)

    def _most_for_leaders(self) -> int:
        """Return how long a message may be, for a leader to hold those of its host, in bytes.

        It keeps all that its ranks send and all that they receive, and sends to another leader
        in one message. Every rank must decide alike, so no rank may find out by itself that it
        lacks the memory.
        """
        ranks = max(map(len, self._hierarchy.members))
        return min(LEADER_BYTES // (2 * ranks * self._topology.rank_count), INT_MOST // ranks**2)

    def make(self, algorithm: Algorithm) -> tuple[_Values, tuple[str, ...]]:
        """Return the template's ``schedule`` and the lines of its proof.

        Raises:
            ScheduleError: the schedule fails its proof.
        """
        makers = {
            "aapc": self._aapc,
            "hosts": self._hosts,
            "leaders": self._in_order,
            "order": self._in_order,
            "ring": self._ring,
            "tree": self._tree,
        }
        values, proofs = makers[algorithm.needs or ""](algorithm)
        return values, tuple(f"proven: {line}" for line in summary(proofs))

    @cached_property
    def _has_phases(self) -> bool:
        try:
            require_phases(self._topology)
        except NotFoundError:
            return False
        return True

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        return hierarchy(self._topology)

    @cached_property
    def _between_ranks(self) -> Aapc:
        return Aapc(self._topology)

    @cached_property
    def _between_leaders(self) -> Aapc:
        return Aapc(self._hierarchy.topology)

    def _aapc_of(self, algorithm: Algorithm) -> Aapc:
        return self._between_leaders if algorithm.needs == "hosts" else self._between_ranks

    def _aapc(self, algorithm: Algorithm) -> _Made:
        return self._between_ranks.tables(algorithm), self._between_ranks.proofs(algorithm)

    def _hosts(self, algorithm: Algorithm) -> _Made:
        aapc, members = self._between_leaders, self._hierarchy.members
        counts = [len(ranks) for ranks in members]
        host_of = {rank: host for host, ranks in enumerate(members) for rank in ranks}
        values = {
            **aapc.tables(algorithm),
            "host_count": len(members),
            "rank_count": sum(counts),
            "host_of": numbers(host_of[rank] for rank in sorted(host_of)),
            "first_member": numbers([sum(counts[:host]) for host in range(len(counts) + 1)]),
            "members": numbers(rank for ranks in members for rank in ranks),
        }
        return values, aapc.proofs(algorithm)

    @cached_property
    def _rings(self) -> Mapping[str, Ring | None]:
        """The ring of each kind; None where there is none that has fewer hops than those before."""
        rings: dict[str, Ring | None] = {}
        fewest: float = inf
        for kind in RING_KINDS:
            ring = _ring_if_any(self._topology, kind)
            rings[kind] = ring if ring is not None and ring.max_hops < fewest else None
            fewest = min(fewest, fewest if ring is None else ring.max_hops)
        return rings

    def _ring(self, algorithm: Algorithm) -> _Made:
        ring = logical_ring(self._topology, algorithm.kind or "")
        values = {"ring": numbers(ring.order), "place_of": numbers(_inverse(ring.order))}
        return values, {"": verify_ring(self._topology, ring)}

    def _in_order(self, _: Algorithm) -> _Made:
        """No tables: ranks are taken from the depth-first order, which is that of the ring LR1."""
        proof = verify_order(self._topology, logical_ring(self._topology, "lr1"))
        return {}, {"": proof}

    def _tree(self, algorithm: Algorithm) -> _Made:
        trees = KaryTrees(self._topology, algorithm)
        return trees.tables(), trees.proofs()


def _ring_if_any(topology: Topology, kind: str) -> Ring | None:
    try:
        return logical_ring(topology, kind)
    except NotFoundError:
        return None


def _inverse(order: tuple[int, ...]) -> list[int]:
    places = [0] * len(order)
    for place, position in enumerate(order):
        places[position] = place
    return places


def summary(proofs: Mapping[str, Proof]) -> Iterator[str]:
    """Yield the lines of several proofs: first those of all, then what is proven of each only."""
    lines = {label: proof.lines() for label, proof in proofs.items()}
    everywhere = set.intersection(*map(set, lines.values()))
    yield from (line for line in next(iter(lines.values())) if line in everywhere)
    for label, own in lines.items():
        different = [line for line in own if line not in everywhere]
        if different:
            yield f"{label}: {'; '.join(different)}"
