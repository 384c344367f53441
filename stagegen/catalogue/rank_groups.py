"""The ranks that have schedules of their own: all of a cluster, and its named groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stagegen.topology import WHOLE, Topology, restricted_to


@dataclass(frozen=True)
class RankGroup:
    """Ranks that schedules are made for: all, or those of a group.

    Attributes:
        number: 0 for all ranks, k for the k-th group of the topology file.
        name: of the group, or `whole`.
        topology: the cluster as they see it; its ranks are the positions of the C tables.
    """

    number: int
    name: str
    topology: Topology

    @property
    def suffix(self) -> str:
        """The ending of the names of a group's routines; names of groups have no `_`."""
        return f"_group_{self.name.replace('-', '_')}" if self.number else ""


@lru_cache(maxsize=32)
def groups_of(topology: Topology) -> tuple[RankGroup, ...]:
    """Return all ranks of a topology, then its groups."""
    groups = (
        RankGroup(number, group.name, restricted_to(topology, group.hosts))
        for number, group in enumerate(topology.groups, 1)
    )
    return RankGroup(0, WHOLE, topology), *groups
