"""Which hosts are next to each other, and the groups of ranks that have tables of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stagegen.schedule import depth_first_positions
from stagegen.topology import RankMap, Topology

WHOLE = "whole"
"""What the group of all ranks is called."""


@dataclass(frozen=True)
class Group:
    """Ranks that schedules are made for.

    Attributes:
        name: as in the topology file, or `whole`.
        topology: the cluster as they see it; its ranks are the positions of the C tables.
    """

    name: str
    topology: Topology


def groups_of(topology: Topology) -> Iterator[Group]:
    """Yield the whole cluster; group k of the C tables is the k-th."""
    yield Group(WHOLE, topology)


def depth_first_places(topology: Topology) -> tuple[int, ...]:
    """Return the place of each host, in the order of the file, in depth-first order of all hosts.

    Hosts with ranks are in the order of :func:`depth_first_ranks`; those without are among them
    as if they had the highest ranks.
    """
    hosts = [host.name for host in topology.hosts]
    names = tuple(dict.fromkeys((*topology.ranks, *hosts)))
    everyone = replace(topology, rank_map=RankMap("list", names))
    place = dict(zip(names, depth_first_positions(everyone), strict=True))
    return tuple(place[host] for host in hosts)
