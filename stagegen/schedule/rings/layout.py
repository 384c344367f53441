"""A cluster's tree rooted at a switch, and the ring that an order of its branches makes.

A ring is contention-free exactly when the ranks beyond every link are consecutive on it (Faraj,
2006, Lemma 8): it follows the order in which some depth-first search meets the ranks. So a ring is
defined by the order of the branches of every switch, and by which of them are passed backwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stagegen.topology import Topology
from stagegen.topology.tree import RankTree


class Branch(NamedTuple):
    """A branch of a switch on its way through the ring.

    Attributes:
        node: the host or switch that it starts with.
        backwards: whether its ranks come in the reverse of their own order.
    """

    node: int
    backwards: bool = False


@dataclass(frozen=True)
class HungTree:
    """A rank tree rooted at one of its switches.

    Attributes:
        tree: the rank tree.
        switches: from the root downwards; a switch comes before those below it. Empty where
            all ranks are on one host.
        children: hosts and switches right below each switch, in depth-first order.
    """

    tree: RankTree
    switches: tuple[int, ...]
    children: Mapping[int, tuple[int, ...]]

    @property
    def root(self) -> int:
        """The switch that the tree is rooted at."""
        return self.switches[0]

    def ring_order(self, orders: Mapping[int, Sequence[Branch]]) -> tuple[int, ...]:
        """Return the ranks of the ring that the branches of each switch make, from rank 0 on.

        The ranks of a host come together, in ascending order.
        """
        ranks: list[int] = []
        stack = [Branch(self.root)] if self.switches else []
        while stack:
            node, backwards = stack.pop()
            if node in self.children:
                order = orders[node] if backwards else reversed(orders[node])
                stack += [Branch(child, turned != backwards) for child, turned in order]
            else:
                ranks += self._ranks_of(node)
        ranks = ranks or sorted(self.tree.rank[leaf] for leaf in self.tree.leaf)
        first = ranks.index(0)
        return tuple(ranks[first:] + ranks[:first])

    def _ranks_of(self, host: int) -> list[int]:
        if self.tree.rank[host] >= 0:
            return [self.tree.rank[host]]
        slots = (self.tree.rank[near] for near in self.tree.neighbours[host])
        return sorted(rank for rank in slots if rank >= 0)


def hung_up(topology: Topology, root: int | None = None) -> HungTree:
    """Root a cluster's tree at a switch, by default the one with the most neighbour switches."""
    tree = topology.tree
    switches = [node for node, is_switch in enumerate(tree.is_switch) if is_switch]
    if root is None and switches:
        root = max(switches, key=lambda node: len(switch_neighbours(tree, node)))
    children: dict[int, tuple[int, ...]] = {}
    order, above = ([], {}) if root is None else ([root], {root: -1})
    for node in order:
        children[node] = tuple(n for n in tree.neighbours[node] if n != above[node])
        below = [child for child in children[node] if tree.is_switch[child]]
        above |= dict.fromkeys(below, node)
        order += below
    return HungTree(tree, tuple(order), children)


def switch_neighbours(tree: RankTree, switch: int) -> list[int]:
    """Return the switches that are linked to a switch."""
    return [near for near in tree.neighbours[switch] if tree.is_switch[near]]
