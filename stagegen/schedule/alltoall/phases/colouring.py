"""Colours a bipartite graph's edges with as many colours as the largest degree (Kőnig 1916)."""

from __future__ import annotations

from collections.abc import Sequence


class _Colouring:
    """A partial colouring: no node has two edges of a colour; parallel edges are allowed.

    Attributes:
        colours: how many there are.
        ends: (left node, right node) of each edge.
        colour: of each edge, -1 for none yet.
        free: on the left and on the right, the free colours of each node as bits.
        edge: on the left and on the right, the edge of each node and colour, -1 for none.
    """

    def __init__(self, ends: Sequence[tuple[int, int]], colours: int):
        self.colours = colours
        self.ends = ends
        self.colour = [-1] * len(ends)
        counts = [max((nodes[side] for nodes in ends), default=-1) + 1 for side in (0, 1)]
        self.free = [[(1 << colours) - 1] * count for count in counts]
        self.edge = [[-1] * (count * colours) for count in counts]

    def run(self) -> list[int]:
        """Colour all edges in their order."""
        (free_left, free_right), (edge_left, edge_right) = self.free, self.edge
        for number, (left, right) in enumerate(self.ends):
            common = free_left[left] & free_right[right]
            if not common:
                common = free_left[left] & -free_left[left]
                self._swap(right, _first(free_left[left]), _first(free_right[right]))
            bit = common & -common
            free_left[left] ^= bit
            free_right[right] ^= bit
            colour = self.colour[number] = bit.bit_length() - 1
            edge_left[left * self.colours + colour] = number
            edge_right[right * self.colours + colour] = number
        return self.colour

    def _swap(self, right: int, taken: int, free: int) -> None:
        """Swap two colours on the path that leaves a right node by its edge of colour `taken`.

        The path enters left nodes by edges of that colour, hence no node where it is free.
        """
        path, side, node, colour = [], 1, right, taken
        while (number := self.edge[side][node * self.colours + colour]) >= 0:
            path.append(number)
            side = 1 - side
            node = self.ends[number][side]
            colour = taken + free - colour
        both = 1 << taken | 1 << free
        self.free[1][right] ^= both
        self.free[side][node] ^= both
        for number in path:
            for side, node in enumerate(self.ends[number]):
                self.edge[side][node * self.colours + self.colour[number]] = -1
        for number in path:
            colour = self.colour[number] = taken + free - self.colour[number]
            for side, node in enumerate(self.ends[number]):
                self.edge[side][node * self.colours + colour] = number


def colour_edges(ends: Sequence[tuple[int, int]], colours: int) -> list[int]:
    """Return a colour for each edge so that the edges of a node have different colours.

    Takes O(edges · nodes) at most, in practice hardly more than the number of edges.

    Args:
        ends: the left and the right node of each edge, each side numbered from 0.
        colours: how many there are, at least as many as any node has edges.
    """
    return _Colouring(ends, colours).run()


def _first(members: int) -> int:
    """Return the lowest member of a set of bits."""
    return (members & -members).bit_length() - 1
