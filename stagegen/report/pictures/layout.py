"""Where the nodes of a switch tree are drawn: ranks side by side, their switches above them.

Every subtree takes an interval, so no two lines of the tree cross. Subtrees come in the order
in which a ring or a broadcast tree first visits them: a contention-free ring visits every
subtree in one go (Faraj, 2006, section 3.3.2), so its neighbours are neighbours in the drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagegen.topology import RankTree


@dataclass(frozen=True)
class Layout:
    """A tree that hangs from a node.

    Attributes:
        top: the node at the top.
        order: the ranks from left to right.
        spans: for each node, the places of its first and last rank.
        level: for each node, how many links it is below the top.
        above: for each node, the next node towards the top; -1 for the top.
    """

    top: int
    order: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    level: tuple[int, ...]
    above: tuple[int, ...]

    @property
    def place(self) -> dict[int, int]:
        """The place of each rank from left to right."""
        return {rank: place for place, rank in enumerate(self.order)}

    def centre(self, node: int) -> float:
        """Return where a node is, in places from left to right."""
        first, last = self.spans[node]
        return (first + last) / 2


def lay_out_ring(tree: RankTree, order: Sequence[int]) -> Layout:
    """Return the layout for a ring, with the tree's centre at the top.

    The order is rotated, so that it begins between two subtrees of the centre.
    """
    top = _centre(tree)
    return lay_out(tree, _rotated(tree, top, order), top)


def lay_out(tree: RankTree, order: Sequence[int], top: int) -> Layout:
    """Return the layout in which the ranks keep an order as far as the tree allows.

    Args:
        tree: what is drawn.
        order: all ranks.
        top: the node from which the tree hangs.
    """
    nodes, above, level = _hang_up(tree, top)
    place = {rank: at for at, rank in enumerate(order)}
    first = [place.get(tree.rank[node], len(order)) for node in range(len(tree.names))]
    for node in reversed(nodes[1:]):
        first[above[node]] = min(first[above[node]], first[node])
    spans = [(0, 0)] * len(tree.names)
    ranks: list[int] = []
    stack = [top]
    while stack:
        node = stack.pop()
        spans[node] = (len(ranks), len(ranks))
        if tree.rank[node] >= 0:
            ranks.append(tree.rank[node])
        below = (n for n in tree.neighbours[node] if n != above[node])
        stack += sorted(below, key=lambda n: -first[n])
    for node in reversed(nodes[1:]):
        start, last = spans[above[node]]
        spans[above[node]] = (start, max(last, spans[node][1]))
    return Layout(top, tuple(ranks), tuple(spans), tuple(level), tuple(above))


def _hang_up(tree: RankTree, top: int) -> tuple[list[int], list[int], list[int]]:
    """Return the nodes from the top down, and for each the node above and the level."""
    nodes, above, level = [top], [-1] * len(tree.names), [0] * len(tree.names)
    for node in nodes:
        for neighbour in tree.neighbours[node]:
            if neighbour != above[node]:
                above[neighbour], level[neighbour] = node, level[node] + 1
                nodes.append(neighbour)
    return nodes, above, level


def _centre(tree: RankTree) -> int:
    """Return the inner node from which the furthest node is nearest; the first of several."""
    inner = [node for node, rank in enumerate(tree.rank) if rank < 0]
    if not inner:
        return 0
    # In a tree the furthest node is an end of a longest path, and the centre is half way.
    one = _hang_up(tree, inner[0])[0][-1]
    nodes, above, _ = _hang_up(tree, one)
    path = [nodes[-1]]
    while above[path[-1]] >= 0:
        path.append(above[path[-1]])
    middle = len(path) // 2
    halves = {path[middle], path[(len(path) - 1) // 2]} - {path[0], path[-1]}
    return min(halves or {inner[0]})


def _rotated(tree: RankTree, top: int, order: Sequence[int]) -> Sequence[int]:
    """Return the order from the first place where it enters another subtree of the top."""
    nodes, above, _ = _hang_up(tree, top)
    branch = list(range(len(tree.names)))
    for node in nodes[1:]:
        branch[node] = node if above[node] == top else branch[above[node]]
    for at in range(len(order)):
        if branch[tree.leaf[order[at - 1]]] != branch[tree.leaf[order[at]]]:
            return [*order[at:], *order[:at]]
    return order
