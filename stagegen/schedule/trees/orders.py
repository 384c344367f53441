"""Depth-first orders of the ranks from a root, from which contention-free trees are cut.

Every way to visit the children of the nodes gives a depth-first order, and Lemma 11 of Faraj
(2006, section 3.4.2.2) holds in each of them; the trees that Algorithm 5 makes of them differ
in height.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from stagegen.schedule.trees.range_max import Integers
from stagegen.topology.tree import RankTree

Arrange = Callable[[list[int], Callable[[int], int]], list[int]]
"""Puts the children of a node in order, given how many ranks are at and below each."""


@dataclass(frozen=True)
class DepthFirstOrder:
    """The ranks by their positions, and how the network's subtrees nest.

    With the tree rooted at the root's neighbour, every node holds an interval of positions.
    The *group* of a position c > 0 is the smallest node that holds both c - 1 and c: the subtree
    that starts at c (a rank, a host or switches with all that is below) is one of its children.

    Attributes:
        ranks: the rank at each position; the first is the root.
        first: the first position of the group of each position; 0 for position 0.
        last: the last position of that group; the last of all for position 0.
    """

    ranks: tuple[int, ...]
    first: Integers
    last: Integers


def _as_in_the_file(children: list[int], _: Callable[[int], int]) -> list[int]:
    return children


def _larger_first(children: list[int], size: Callable[[int], int]) -> list[int]:
    return sorted(children, key=lambda node: -size(node))


def _one_then_larger(children: list[int], size: Callable[[int], int]) -> list[int]:
    """One rank receives for its switch and feeds the switches beyond, large ones first."""
    arranged = _larger_first(children, size)
    alone = [node for node in arranged[-1:] if size(node) == 1]
    return alone + arranged[: len(arranged) - len(alone)]


def _reversed(children: list[int], _: Callable[[int], int]) -> list[int]:
    return children[::-1]


def _smaller_first(children: list[int], size: Callable[[int], int]) -> list[int]:
    return sorted(children, key=size)


def _shuffled(seed: int) -> Arrange:
    generator = Random(seed)

    def arrange(children: list[int], _: Callable[[int], int]) -> list[int]:
        return generator.sample(children, len(children))

    return arrange


_ARRANGED = (_as_in_the_file, _one_then_larger, _larger_first, _smaller_first, _reversed)
_SHUFFLES = 3
ORDERS = len(_ARRANGED) + _SHUFFLES
"""How many depth-first orders there are to choose from."""


def depth_first_orders(tree: RankTree, root: int, count: int = ORDERS) -> Iterator[DepthFirstOrder]:
    """Yield depth-first orders from a root, which differ in how the parts of a node are visited.

    1. As in the file: hosts, then switches; the order of the linear tree.
    2. One rank, then larger subtrees before smaller ones: mostly the best.
    3. Larger before smaller.
    4. Smaller before larger.
    5. The reverse of the first.
    6. and later: shuffled, the same in every run.

    Args:
        tree: the cluster's.
        root: the first rank.
        count: how many, at most `ORDERS`.
    """
    arrangements = (*_ARRANGED, *map(_shuffled, range(_SHUFFLES)))
    for arrange in arrangements[:count]:
        yield _depth_first(tree, root, arrange)


def _depth_first(tree: RankTree, root: int, arrange: Arrange) -> DepthFirstOrder:
    """Visit all nodes from the root's neighbour, the root first of all."""
    start = tree.leaf[root]
    ranks: list[int] = []
    groups: list[int] = []
    hub = tree.neighbours[start][0] if tree.rank_count > 1 else start
    first, size = {hub: 0}, {hub: tree.rank_count, start: 1}
    stack = [(hub, hub)]
    while stack:
        node, parent = stack.pop()
        first[node] = len(ranks)
        if len(groups) == len(ranks):
            groups.append(parent)
        if tree.rank[node] >= 0:
            ranks.append(tree.rank[node])
            continue
        children = [n for n in tree.neighbours[node] if n not in (parent, start)]
        for child in children:
            size[child] = tree.ranks_beyond(node, child)
        if node == hub:
            children.append(start)
        children = arrange(children, size.__getitem__)
        if node == hub:
            children.remove(start)
            children.insert(0, start)
        stack += [(child, node) for child in reversed(children)]
    begin = np.array([first[node] for node in groups], dtype=np.int64)
    length = np.array([size[node] for node in groups], dtype=np.int64)
    return DepthFirstOrder(tuple(ranks), begin, begin + length - 1)
