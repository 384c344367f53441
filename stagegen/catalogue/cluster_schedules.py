"""The schedules of a cluster, and the values of parameters that make a difference on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from math import inf

from stagegen.catalogue.algorithm import OWN_TABLES, Algorithm
from stagegen.catalogue.alltoall_schedules import AlltoallSchedules
from stagegen.errors import NotFoundError
from stagegen.schedule import RING_CONSTRUCTIONS, logical_ring
from stagegen.schedule.alltoall.capacity import require_phases
from stagegen.schedule.alltoall.phases.hierarchy import Hierarchy, hierarchy
from stagegen.topology import Topology

INT_MOST = 2**31 - 1
LEADER_BYTES = 2**30
"""The most bytes that a host's leader may keep for a hierarchical alltoall."""


def why_undivided(topology: Topology, level: str, hosts: Sequence[str]) -> str | None:
    """Return why ranks on these hosts are not in several parts of a level, one with several ranks.

    Args:
        topology: the cluster.
        level: one of :data:`stagegen.catalogue.algorithm.LEVELS`.
        hosts: of each rank.
    """
    where, numbers = {
        "switches": ("at one switch", topology.switch_numbers),
        "sites": ("at one site", topology.site_numbers),
    }.get(level, ("on one host", {host: number for number, host in enumerate(hosts)}))
    parts = {numbers[host] for host in hosts}
    if len(parts) == 1:
        return f"all ranks are {where}"
    part = {"switches": "switch", "sites": "site"}.get(level, "host")
    if len(parts) == len(hosts):
        return f"no {part} has several ranks"
    same = part == "switch" and len(parts) == len(set(hosts))
    return "each switch has one host, so that switches are hosts" if same else None


@lru_cache(maxsize=32)
def schedules_of(topology: Topology) -> ClusterSchedules:
    """Return the schedules of a topology; they keep what several algorithms need."""
    return ClusterSchedules(topology)


class ClusterSchedules:
    """The schedules of one topology, each made when it is first asked for."""

    def __init__(self, topology: Topology):
        self.topology = topology

    def serve(self, algorithm: Algorithm) -> bool:
        """Tell whether the topology has the schedule that an algorithm needs."""
        return self.why_not(algorithm) is None

    def why_not(self, algorithm: Algorithm) -> str | None:
        """Return why the topology lacks the schedule that an algorithm needs; None if it has it.

        It has none if there is no such ring, or none with fewer hops than those of earlier
        constructions; if a link is too slow for phases; and, for hierarchical algorithms, if no
        host, switch or site has several ranks.
        """
        if algorithm.needs is None:
            return None
        if self.topology.rank_count < 2:
            return "a single rank needs no schedule"
        reasons: Mapping[str, Callable[[Algorithm], str | None]] = {
            "aapc": lambda _: self._no_phases,
            "hosts": lambda _: self._no_leaders or self._no_phases_of_leaders,
            "leaders": lambda _: self._no_leaders,
            "sites": lambda _: why_undivided(self.topology, "sites", self.topology.ranks),
            "switches": lambda _: why_undivided(self.topology, "switches", self.topology.ranks),
            "ring": lambda one: self._no_ring[one.construction or ""],
            OWN_TABLES: self._not_own,
        }
        return reasons[algorithm.needs](algorithm) if algorithm.needs in reasons else None

    def _not_own(self, algorithm: Algorithm) -> str | None:
        """Return why the tables that a template brings are not for these ranks."""
        is_own = algorithm.topology == self.topology.hash
        return None if is_own else "its tables are for the ranks of another topology"

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

    @property
    def _no_leaders(self) -> str | None:
        """Why the hosts have no leaders; None if they do."""
        leaders = len(self.hierarchy.leaders)
        if leaders == 1:
            return "all ranks are on one host"
        return "no host has several ranks" if leaders == self.topology.rank_count else None

    @cached_property
    def _no_phases(self) -> str | None:
        """Why there are no phases of an alltoall; None if there are."""
        return _why_no_phases(self.topology)

    @cached_property
    def _no_phases_of_leaders(self) -> str | None:
        """Why there are no phases of an alltoall between the hosts' leaders."""
        return _why_no_phases(self.hierarchy.topology)

    @cached_property
    def _between_ranks(self) -> AlltoallSchedules:
        return AlltoallSchedules(self.topology)

    @cached_property
    def _between_leaders(self) -> AlltoallSchedules:
        return AlltoallSchedules(self.hierarchy.topology)

    @cached_property
    def _no_ring(self) -> Mapping[str, str | None]:
        """Why a construction has no ring with fewer hops than earlier ones; None if it has one."""
        reasons: dict[str, str | None] = {}
        fewest: float = inf
        for construction in RING_CONSTRUCTIONS:
            try:
                hops = logical_ring(self.topology, construction).max_hops
            except NotFoundError as error:
                reasons[construction] = str(error)
                continue
            too_many = f"its ring has {hops} hops, and one of another construction has no more"
            reasons[construction] = None if hops < fewest else too_many
            fewest = min(fewest, hops)
        return reasons


def _why_no_phases(topology: Topology) -> str | None:
    try:
        require_phases(topology)
    except NotFoundError as error:
        return str(error)
    return None
