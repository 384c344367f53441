"""The cuts of a cluster: every directed edge of the network divides the ranks in two.

All data from the ranks before an edge to the ranks beyond it must cross that edge, since a tree
has no other path. Ranks of one host are on the same side of every network edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from stagegen.topology import Edge, RankTree, Topology


@dataclass(frozen=True)
class Cut:
    """A directed edge of the network, and which ranks are on its two sides.

    Attributes:
        edge: by names.
        rate: in bit/s.
        inside: the ranks on the side away from node 0 of the tree, as places in the order of
            :attr:`Cuts.order`.
        inward: whether the edge leads to that side.
    """

    edge: Edge
    rate: int
    inside: range
    inward: bool

    def clear(self, flags: npt.NDArray[np.bool_], beyond: bool) -> None:
        """Clear the flags of the ranks on the side that the edge leads to, or comes from.

        Args:
            flags: of all ranks, in the order of :attr:`Cuts.order`.
            beyond: True for the side that the edge leads to.
        """
        inside = slice(self.inside.start, self.inside.stop)
        if beyond == self.inward:
            flags[inside] = False
        else:
            flags[: inside.start] = False
            flags[inside.stop :] = False


@dataclass(frozen=True)
class Cuts:
    """All cuts of a cluster.

    Attributes:
        order: the ranks in depth-first order, so that either side of a cut is an interval.
        cuts: both directions of every link of the network that leads to a rank.
    """

    order: tuple[int, ...]
    cuts: tuple[Cut, ...]

    def sums(self, weights: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield for each cut the sums of the ranks' weights before and beyond it."""
        total = [0, *accumulate(weights[rank] for rank in self.order)]
        for cut in self.cuts:
            inside = total[cut.inside.stop] - total[cut.inside.start]
            outside = total[-1] - inside
            yield (outside, inside) if cut.inward else (inside, outside)

    def crossings(self, weights: Sequence[Sequence[int]]) -> Iterator[int]:
        """Yield for each cut the sum of the weights of all pairs from before it to beyond it.

        Args:
            weights: of each source and destination; int64.
        """
        table = np.asarray(weights, dtype=np.int64)[np.ix_(self.order, self.order)]
        total = np.zeros((len(self.order) + 1,) * 2, dtype=np.int64)
        total[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
        for cut in self.cuts:
            low, high = cut.inside.start, cut.inside.stop
            both = total[high, high] - total[low, high] - total[high, low] + total[low, low]
            ends = total[:, -1] if not cut.inward else total[-1]
            yield int(ends[high] - ends[low] - both)


def network_cuts(topology: Topology) -> Cuts:
    """Return the cuts of a cluster."""
    tree = topology.tree
    order, first = _places(tree)
    cuts = []
    for here, there in tree.links():
        for one, other in ((here, there), (there, here)):
            edge = tree.names[one], tree.names[other]
            if edge in topology.rates:
                inside = range(first[there], first[there] + tree.below[there])
                cuts.append(Cut(edge, topology.rates[edge], inside, inward=other == there))
    return Cuts(order, tuple(cuts))


def _places(tree: RankTree) -> tuple[tuple[int, ...], list[int]]:
    """Return the ranks in depth-first order from node 0, and the first place below each node."""
    order: list[int] = []
    first = [0] * len(tree.names)
    for node in tree.depth_first(0):
        first[node] = len(order)
        if tree.rank[node] >= 0:
            order.append(tree.rank[node])
    return tuple(order), first
