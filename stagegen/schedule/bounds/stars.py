"""A bound of allreduce that no single link shows: all links around some switches together.

Source: Patarasuk and Yuan, *Bandwidth optimal all-reduce algorithms for clusters of
workstations* (2009), for p machines on one switch: 2 (p - 1)/p of the message on every link.
Here the switch may be any connected set of switches, and links may have different rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from stagegen.topology import Edge, RankTree, Topology


@dataclass(frozen=True)
class Star:
    """A connected set of switches with the links around it.

    Attributes:
        switches: how many there are in the set.
        edges: the edges that lead to the set, one from each side that has ranks.
        rate: of all these edges together, in bit/s.
    """

    switches: int
    edges: tuple[Edge, ...]
    rate: int

    @property
    def density(self) -> Fraction:
        """The bytes that the links must carry, in units of 2 · size, per bit/s."""
        return Fraction(len(self.edges) - 1, self.rate)


def densest_star(topology: Topology) -> Star | None:
    """Return the set of switches with the greatest (links around it - 1) / (sum of rates).

    The ratio is maximised as by Dinkelbach (1967): one pass over the tree solves the linear
    problem of finding a set that is better than the last one; it ends when no set is better.
    """
    tree = topology.tree
    if not tree.is_switch[0]:  # a single host with several ranks
        return None
    star = _better_star(topology, Fraction(0))
    while True:
        better = _better_star(topology, star.density)
        if better.density <= star.density:
            return star
        star = better


def _better_star(topology: Topology, density: Fraction) -> Star:
    """Return the set with the greatest sum of (1 - density · rate) over the links around it."""
    tree = topology.tree
    gain = [Fraction(0)] * len(tree.names)  # of the link above a node
    best = [Fraction(0)] * len(tree.names)  # of a set whose uppermost switch is the node
    for node in range(1, len(tree.names)):
        if (edge := _upward(tree, node)) in topology.rates:
            gain[node] = 1 - density * topology.rates[edge]
    for node in sorted(range(1, len(tree.names)), key=lambda n: -tree.depth[n]):
        best[tree.parent[node]] += _most(tree, gain, best, node)
    switches = [node for node, switch in enumerate(tree.is_switch) if switch]
    top = max(switches, key=lambda node: best[node] + (gain[node] if node else 0))
    return _star(topology, top, gain, best)


def _most(tree: RankTree, gain: list[Fraction], best: list[Fraction], node: int) -> Fraction:
    """Return a node's gain to its parent's set: that of its link, or more if it joins the set."""
    return max(gain[node], best[node]) if tree.is_switch[node] else gain[node]


def _star(topology: Topology, top: int, gain: list[Fraction], best: list[Fraction]) -> Star:
    """Collect the set below its uppermost switch, and the links around it."""
    tree = topology.tree
    edges = []
    if top:
        edges.append((tree.names[tree.parent[top]], tree.names[top]))
    members = [top]
    for switch in members:
        for node in tree.neighbours[switch]:
            if node == tree.parent[switch]:
                continue
            if tree.is_switch[node] and best[node] > gain[node]:
                members.append(node)
            else:
                edges.append(_upward(tree, node))
    return Star(len(members), tuple(edges), sum(topology.rates[edge] for edge in edges))


def _upward(tree: RankTree, node: int) -> Edge:
    return tree.names[node], tree.names[tree.parent[node]]
