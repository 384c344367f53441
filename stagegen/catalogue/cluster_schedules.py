"""The schedules of a cluster, and the values of parameters that make a difference on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from math import inf

from stagegen.catalogue.algorithm import Algorithm
from stagegen.catalogue.alltoall_schedules import AlltoallSchedules
from stagegen.errors import NotFoundError
from stagegen.schedule import RING_KINDS, Ring, logical_ring
from stagegen.schedule.alltoall.capacity import require_phases
from stagegen.schedule.alltoall.phases.hierarchy import Hierarchy, hierarchy
from stagegen.topology import Topology

INT_MOST = 2**31 - 1
LEADER_BYTES = 2**30
"""The most bytes that a host's leader may keep for a hierarchical alltoall."""


@lru_cache(maxsize=32)
def schedules_of(topology: Topology) -> ClusterSchedules:
    """Return the schedules of a topology; they keep what several algorithms need."""
    return ClusterSchedules(topology)


class ClusterSchedules:
    """The schedules of one topology, each made when it is first asked for."""

    def __init__(self, topology: Topology):
        self.topology = topology

    def serve(self, algorithm: Algorithm) -> bool:
        """Tell whether the topology has the schedule that an algorithm needs.

        It has none if there is no such ring, or none with fewer hops than earlier kinds; if a link
        is too slow for phases; and, for hierarchical algorithms, if no host has several ranks.
        """
        if algorithm.needs is None:
            return True
        if self.topology.rank_count < 2:
            return False
        if algorithm.needs in ("aapc", "hosts") and not self._has_phases:
            return False
        if algorithm.needs in ("hosts", "leaders"):
            return 1 < len(self.hierarchy.leaders) < self.topology.rank_count
        return algorithm.needs != "ring" or self._rings[algorithm.kind or ""] is not None

    def narrowed(self, algorithm: Algorithm) -> Algorithm:
        """Return the algorithm without values of parameters that change nothing here."""
        if algorithm.needs not in ("aapc", "hosts"):
            return algorithm
        parameters = tuple(map(self.alltoall_of(algorithm).narrowed, algorithm.parameters))
        most = algorithm.max_bytes
        if algorithm.needs == "hosts":
            most = min(most or INT_MOST, self._most_for_leaders())
        return replace(algorithm, parameters=parameters, max_bytes=most)

    def alltoall_of(self, algorithm: Algorithm) -> AlltoallSchedules:
        """Return the schedules that an algorithm needs: between all ranks, or between leaders."""
        return self._between_leaders if algorithm.needs == "hosts" else self._between_ranks

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The leaders of the hosts."""
        return hierarchy(self.topology)

    def _most_for_leaders(self) -> int:
        """Return the largest message, in bytes, whose alltoall a host's leader can hold.

        A leader keeps all that its ranks send and receive, and sends one message to each other
        leader. All ranks must decide alike, so no rank may find out by itself that it lacks
        memory.
        """
        ranks = max(map(len, self.hierarchy.members))
        return min(LEADER_BYTES // (2 * ranks * self.topology.rank_count), INT_MOST // ranks**2)

    @cached_property
    def _has_phases(self) -> bool:
        try:
            require_phases(self.topology)
        except NotFoundError:
            return False
        return True

    @cached_property
    def _between_ranks(self) -> AlltoallSchedules:
        return AlltoallSchedules(self.topology)

    @cached_property
    def _between_leaders(self) -> AlltoallSchedules:
        return AlltoallSchedules(self.hierarchy.topology)

    @cached_property
    def _rings(self) -> Mapping[str, Ring | None]:
        """The ring of each kind; None if it does not exist with fewer hops than earlier kinds."""
        rings: dict[str, Ring | None] = {}
        fewest: float = inf
        for kind in RING_KINDS:
            ring = _ring_if_any(self.topology, kind)
            rings[kind] = ring if ring is not None and ring.max_hops < fewest else None
            fewest = min(fewest, fewest if ring is None else ring.max_hops)
        return rings


def _ring_if_any(topology: Topology, kind: str) -> Ring | None:
    try:
        return logical_ring(topology, kind)
    except NotFoundError:
        return None
