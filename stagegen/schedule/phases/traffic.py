"""An alltoall between groups of ranks that the network cannot tell apart.

Ranks next to the same node of the tree (the hosts of a switch, the ranks of a host) form a
group: beyond their own links their messages take the same way. Which phase carries how many
messages from group to group is all that the other links see; which ranks these messages are of
can be settled afterwards, always (:mod:`stagegen.schedule.phases.spread`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np

from stagegen.schedule.capacity import NodeEdge, edge_capacities
from stagegen.topology import Topology

Pair = tuple[int, int]
"""Messages from a group to a group (to itself: between its ranks), by their numbers."""


@dataclass(frozen=True)
class Traffic:
    """What an alltoall asks of the links.

    A resource is what a message of a pair occupies: first the groups as senders, then the
    groups as receivers (of so many messages of a phase as they have ranks), then directed
    links. Links that can carry whatever their ranks send are none.

    Attributes:
        groups: the ranks of each group, ascending.
        demands: how many messages each pair has in all, at least one.
        uses: the resources that a message of each pair occupies.
        capacity: of each resource, in messages of a phase.
        load: of each resource, in messages of all phases.
    """

    groups: tuple[tuple[int, ...], ...]
    demands: dict[Pair, int]
    uses: dict[Pair, tuple[int, ...]]
    capacity: np.ndarray
    load: np.ndarray

    def stress(self, pair: Pair) -> list[float]:
        """Return the phases that each resource of a pair needs, those with the most first."""
        used = list(self.uses[pair])
        return sorted((self.load[used] / self.capacity[used]).tolist(), reverse=True)


def traffic(topology: Topology) -> Traffic:
    """Return the traffic of an alltoall; no link may be slower than the slowest host's."""
    tree = topology.tree
    ranks_at: dict[int, list[int]] = {}
    for rank, leaf in enumerate(tree.leaf):
        ranks_at.setdefault(tree.neighbours[leaf][0], []).append(rank)
    groups = tuple(map(tuple, ranks_at.values()))
    sizes = list(map(len, groups))
    binding = _binding_edges(topology)
    number = {edge: 2 * len(groups) + index for index, edge in enumerate(binding)}
    demands, uses = {}, {}
    for i, (start, senders) in enumerate(ranks_at.items()):
        ways = _ways(topology, start, number)
        for j, (end, receivers) in enumerate(ranks_at.items()):
            demand = len(senders) * (len(receivers) - (i == j))
            if demand:
                demands[i, j] = demand
                uses[i, j] = (i, len(groups) + j, *ways[end])
    load = np.zeros(2 * len(groups) + len(binding), np.int64)
    for pair, demand in demands.items():
        load[list(uses[pair])] += demand
    return Traffic(groups, demands, uses, np.array([*sizes, *sizes, *binding.values()]), load)


def _binding_edges(topology: Topology) -> dict[NodeEdge, int]:
    """Return the capacities of the links that a phase of their ranks could overload."""
    tree = topology.tree
    binding = {}
    for (node, neighbour), capacity in edge_capacities(topology).items():
        beyond = tree.ranks_beyond(node, neighbour)
        if capacity < min(beyond, tree.rank_count - beyond):
            binding[node, neighbour] = floor(capacity)
    return binding


def _ways(topology: Topology, start: int, number: dict[NodeEdge, int]) -> dict[int, list[int]]:
    """Return the numbered edges on the way from a node to every other one."""
    tree = topology.tree
    ways: dict[int, list[int]] = {start: []}
    for node in tree.depth_first(start):
        for neighbour in tree.neighbours[node]:
            if neighbour not in ways:
                edge = number.get((node, neighbour))
                ways[neighbour] = ways[node] + ([] if edge is None else [edge])
    return ways
