"""The depth-first order of a cluster's hosts, and how deep neighbours in it meet."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from stagegen.schedule import depth_first_positions, depth_first_ranks
from stagegen.topology import RankMap, Topology


def depth_first_places(topology: Topology) -> tuple[int, ...]:
    """Return for each host, in file order, its place in the depth-first order of all hosts.

    Hosts with ranks are in the order of :func:`depth_first_ranks`; hosts without ranks are placed
    as if they had the highest ranks.
    """
    everyone = _everyone(topology)
    place = dict(zip(everyone.ranks, depth_first_positions(everyone), strict=True))
    return tuple(place[host.name] for host in topology.hosts)


def meeting_depths(topology: Topology) -> tuple[int, ...]:
    """Return, for each place of that order, how deep it meets the place before; 0 for the first.

    This depth is that of the switch where the paths from the first place to the two hosts part,
    counted in switches below the first place's own. Any two hosts, at places a < b, meet at the
    least of the depths of places a + 1 to b.
    """
    everyone = _everyone(topology)
    order = depth_first_ranks(everyone)
    depths = [0, *(everyone.hops(order[0], host) - 1 for host in order[1:])]
    apart = [everyone.hops(*pair) - 1 for pair in pairwise(order)]
    both = zip(pairwise(depths), apart, strict=True)
    return 0, *((sum(pair) - between) // 2 for pair, between in both)


def _everyone(topology: Topology) -> Topology:
    """Return the topology with one rank on each host; hosts that have ranks come first."""
    names = dict.fromkeys((*topology.ranks, *(host.name for host in topology.hosts)))
    return replace(topology, rank_map=RankMap("list", tuple(names)))
