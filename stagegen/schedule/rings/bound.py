"""A lower bound on the hops of every contention-free ring, from each switch alone.

The branches of a switch stand in a circle on the ring, and a message between two of them passes
at least the switches up to the nearest machine of each, and the switch itself. So the maximum
of hops is at least the best that arranging the distances of the branches in a circle can do.
"""

from __future__ import annotations

from collections.abc import Iterable

from stagegen.topology import Topology
from stagegen.topology.tree import RankTree


def fewest_hops(topology: Topology) -> int:
    """Return a lower bound on the hops of a contention-free ring, in O(n log n)."""
    tree = topology.tree
    return max(
        (1 + least_meeting(near) for near in _nearest_machines(tree) if len(near) > 1), default=0
    )


def least_meeting(sizes: list[int]) -> int:
    """Return the least possible maximum of the sums of neighbours in a circle of numbers.

    Let the numbers ascend as a_1 … a_k. Either two of the j largest are neighbours, or the j
    largest have at least j+1 other neighbours, so some sum is at least a_(k+1-j) + a_(j+1); if
    j is half of k, they may have only j. Placing large and small numbers in turn attains the
    maximum of these bounds.
    """
    ascending = sorted(sizes)
    count = len(ascending)
    return max(
        ascending[count - j] + ascending[j - 1 if 2 * j == count else j]
        for j in range(1, count // 2 + 1)
    )


def _nearest_machines(tree: RankTree) -> list[list[int]]:
    """Return for each switch how many switches are before the nearest machine of each branch."""
    top_down = sorted(range(len(tree.names)), key=tree.depth.__getitem__)
    beyond: list[dict[int, int]] = [{} for _ in tree.names]
    for node in reversed(top_down):
        parent = tree.parent[node]
        if parent >= 0:
            beyond[parent][node] = _distance(tree, node, beyond[node].values())
    for node in top_down:
        two = sorted(beyond[node].items(), key=lambda item: item[1])[:2]
        for child in tree.neighbours[node]:
            if child != tree.parent[node]:
                others = [distance for near, distance in two if near != child]
                beyond[child][node] = _distance(tree, node, others)
    return [
        list(near.values())
        for near, is_switch in zip(beyond, tree.is_switch, strict=True)
        if is_switch
    ]


def _distance(tree: RankTree, node: int, beyond: Iterable[int]) -> int:
    """Return how many switches lie between a node's link and the nearest machine beyond it."""
    return 1 + min(beyond) if tree.is_switch[node] else 0
