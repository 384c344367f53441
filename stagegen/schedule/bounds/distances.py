"""How long one bit takes between ranks: the sum of the latencies on its path."""

from __future__ import annotations

from stagegen.topology import Topology


def distances(topology: Topology, rank: int) -> list[float]:
    """Return the latency of the path from a rank to every rank, in seconds."""
    tree = topology.tree
    distance = {tree.leaf[rank]: 0.0}
    for node in tree.depth_first(tree.leaf[rank]):
        for neighbour in tree.neighbours[node]:
            if neighbour not in distance:
                edge = tree.names[node], tree.names[neighbour]
                distance[neighbour] = distance[node] + topology.latencies.get(edge, 0.0)
    return [distance[leaf] for leaf in tree.leaf]


def diameter(topology: Topology) -> float:
    """Return the latency between the two ranks that are furthest apart, in seconds."""
    return max(_furthest_pair(topology)[1])


def reach(topology: Topology, rank: int | None) -> float:
    """Return the latency from a rank to the furthest rank, in seconds.

    Args:
        topology: the cluster.
        rank: the rank; None for the most central one.
    """
    if rank is not None:
        return max(distances(topology, rank))
    # In a tree the furthest rank from anywhere is one end of a longest path.
    return min(map(max, zip(*_furthest_pair(topology), strict=True)))


def _furthest_pair(topology: Topology) -> tuple[list[float], list[float]]:
    """Return the distances from each of two ranks that are furthest apart."""
    start = distances(topology, 0)
    one = distances(topology, start.index(max(start)))
    return one, distances(topology, one.index(max(one)))
