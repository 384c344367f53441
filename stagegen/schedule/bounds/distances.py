"""How long one bit takes between ranks: the sum of the latencies on its path."""

from __future__ import annotations

from collections.abc import Sequence

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


def furthest(
    topology: Topology, ranks: Sequence[int], root: int | None, *, everywhere: bool
) -> float:
    """Return the longest latency from some ranks to where their blocks go, in seconds.

    Args:
        topology: the cluster.
        ranks: those that have blocks.
        root: where they go; None for the best one.
        everywhere: whether they go to all ranks, and there is no root.
    """
    if not ranks:
        return 0.0
    if everywhere:
        return max(max(ends[rank] for rank in ranks) for ends in _furthest_pair(topology))
    if root is not None:
        own = distances(topology, root)
        return max(own[rank] for rank in ranks)
    # As in reach(): all that counts are the two of them that are furthest apart.
    start = distances(topology, ranks[0])
    one = distances(topology, max(ranks, key=start.__getitem__))
    other = distances(topology, max(ranks, key=one.__getitem__))
    return min(map(max, zip(one, other, strict=True)))


def _furthest_pair(topology: Topology) -> tuple[list[float], list[float]]:
    """Return the distances from each of two ranks that are furthest apart."""
    start = distances(topology, 0)
    one = distances(topology, start.index(max(start)))
    return one, distances(topology, one.index(max(one)))
