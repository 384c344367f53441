"""Which hosts are next to each other, and which ranks have tables of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from stagegen.schedule import depth_first_positions, depth_first_ranks
from stagegen.topology import WHOLE, RankMap, Topology, restricted_to


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
        """What the names of a group's routines end in; names of groups have no `_`."""
        return f"_group_{self.name.replace('-', '_')}" if self.number else ""


def groups_of(topology: Topology) -> tuple[RankGroup, ...]:
    """Return all ranks of a topology, then its groups."""
    groups = (
        RankGroup(number, group.name, restricted_to(topology, group.hosts))
        for number, group in enumerate(topology.groups, 1)
    )
    return RankGroup(0, WHOLE, topology), *groups


def depth_first_places(topology: Topology) -> tuple[int, ...]:
    """Return the place of each host, in the order of the file, in depth-first order of all hosts.

    Hosts with ranks are in the order of :func:`depth_first_ranks`; those without are among them
    as if they had the highest ranks.
    """
    everyone = _everyone(topology)
    place = dict(zip(everyone.ranks, depth_first_positions(everyone), strict=True))
    return tuple(place[host.name] for host in topology.hosts)


def meeting_depths(topology: Topology) -> tuple[int, ...]:
    """Return, for each place of that order, how deep it meets the place before; 0 for the first.

    That is the depth of the switch where the paths from the first place to the two hosts part, in
    switches below that of the first place. Of any two hosts, it is the least between their places.
    """
    everyone = _everyone(topology)
    order = depth_first_ranks(everyone)
    depths = [0, *(everyone.hops(order[0], host) - 1 for host in order[1:])]
    apart = [everyone.hops(*pair) - 1 for pair in pairwise(order)]
    both = zip(pairwise(depths), apart, strict=True)
    return 0, *((sum(pair) - between) // 2 for pair, between in both)


def _everyone(topology: Topology) -> Topology:
    """Return the topology with one rank on each host; those that have some are first."""
    names = dict.fromkeys((*topology.ranks, *(host.name for host in topology.hosts)))
    return replace(topology, rank_map=RankMap("list", tuple(names)))
