"""An alltoall between groups of ranks that the network cannot tell apart.

Ranks next to the same node of the tree (the hosts of a switch, the ranks of a host) form a group:
beyond their own links their messages take the same path. The other links see only how many
messages each phase carries from group to group; the ranks of these messages can always be found
afterwards (:mod:`stagegen.schedule.alltoall.phases.spread`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np

from stagegen.schedule.alltoall.capacity import NodeEdge, edge_capacities
from stagegen.topology import Topology

Pair = tuple[int, int]
"""A sending and a receiving group by their numbers; one group twice for its own messages."""


@dataclass(frozen=True)
class Traffic:
    """The demand of an alltoall on the links.

    A message of a pair occupies resources. First come the groups as senders, then the groups as
    receivers (each of as many messages of a phase as it has ranks), then directed links. Links
    that can carry whatever their ranks send are no resources.

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
        """Return how many phases each resource of a pair needs, the largest number first."""
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
    """Return the capacities of the edges that their ranks could overload in a phase."""
    tree = topology.tree
    binding = {}
    for (node, neighbour), capacity in edge_capacities(topology).items():
        beyond = tree.ranks_beyond(node, neighbour)
        if capacity < min(beyond, tree.rank_count - beyond):
            binding[node, neighbour] = floor(capacity)
    return binding


def _ways(topology: Topology, start: int, number: dict[NodeEdge, int]) -> dict[int, list[int]]:
    """Return the numbered edges on the path from a node to every other node."""
    tree = topology.tree
    ways: dict[int, list[int]] = {start: []}
    for node in tree.depth_first(start):
        for neighbour in tree.neighbours[node]:
            if neighbour not in ways:
                edge = number.get((node, neighbour))
                ways[neighbour] = ways[node] + ([] if edge is None else [edge])
    return ways
