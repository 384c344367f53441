"""Lower bounds: no algorithm can take less time on a cluster.

Every edge of the network must carry what has to get from its one side to its other
(Faraj, 2006, section 3.2.1 for alltoall, equation at the start of section 3.3 for allgather,
section 3.4.1 for broadcast, here with the rate of every single link). What header bytes and
start-ups add is left out. Ranks of the same host exchange data without the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stagegen.errors import InputError
from stagegen.topology import Edge, Topology


@dataclass(frozen=True)
class Bound:
    """A lower bound on the time of a collective.

    Attributes:
        collective: `alltoall`, `allgather` or `bcast`.
        size: bytes for each pair of ranks (alltoall), from each rank (allgather), in the
            buffer (bcast).
        seconds: for the data to cross the limiting edge.
        latency_seconds: for one bit between the two ranks furthest apart (bcast: from the root
            to the furthest rank; without a root, from the rank for which that is least). It
            is a bound of its own, not to be added to `seconds`.
        formula: its name; link (u, v) has |M_u| ranks on the side of u.
        edge: the limiting edge, None where nothing crosses the network.
        edge_bytes: what must cross that edge.
    """

    collective: str
    size: int
    seconds: float
    latency_seconds: float
    formula: str
    edge: Edge | None
    edge_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return a JSON form."""
        return {
            "size": self.size,
            "seconds": self.seconds,
            "latency_seconds": self.latency_seconds,
            "formula": self.formula,
            "edge": None if self.edge is None else list(self.edge),
            "edge_bytes": self.edge_bytes,
        }


_Blocks = Callable[[int, int], int]
"""How many blocks must cross an edge, from the ranks before it and the ranks beyond it."""

_FORMULAS: dict[str, tuple[str, _Blocks]] = {
    "alltoall": ("bottleneck link: |M_u| * |M_v| * size / rate", lambda a, b: a * b),
    "allgather": ("bottleneck link: |M_u| * size / rate", lambda a, _: a),
    "bcast": ("slowest link: size / rate", lambda _a, _b: 1),
}
COLLECTIVES = tuple(_FORMULAS)


def physical_edges(topology: Topology) -> Iterator[tuple[Edge, int, int]]:
    """Yield (directed edge, ranks before it, ranks beyond it) of the network's edges in use."""
    tree = topology.tree
    for one, other in tree.links():
        for here, there in ((one, other), (other, one)):
            edge = tree.names[here], tree.names[there]
            if edge in topology.rates:
                beyond = tree.ranks_beyond(here, there)
                yield edge, tree.rank_count - beyond, beyond


def lower_bound(topology: Topology, collective: str, size: int, root: int | None = None) -> Bound:
    """Return the lower bound of a collective.

    Args:
        topology: the cluster.
        collective: one of `COLLECTIVES`.
        size: in bytes; see :class:`Bound` for what it counts.
        root: of a bcast, where only that one is meant; it changes the latency only.

    Raises:
        InputError: a collective that there is no bound for.
    """
    if collective not in _FORMULAS:
        known = ", ".join(COLLECTIVES)
        raise InputError(f"there is no lower bound for {collective!r}; there is for {known}")
    formula, blocks = _FORMULAS[collective]
    limit, edge, edge_bytes = Fraction(0), None, 0
    for candidate, before, beyond in physical_edges(topology):
        carried = blocks(before, beyond) * size
        time = Fraction(8 * carried, topology.rates[candidate])
        if edge is None or time > limit:
            limit, edge, edge_bytes = time, candidate, carried
    latency = _bcast_latency(topology, root) if collective == "bcast" else _diameter(topology)
    return Bound(collective, size, float(limit), latency, formula, edge, edge_bytes)


def _distances(topology: Topology, rank: int) -> list[float]:
    """Return the latency of the path from a rank to every rank."""
    tree = topology.tree
    distance = {tree.leaf[rank]: 0.0}
    for node in tree.depth_first(tree.leaf[rank]):
        for neighbour in tree.neighbours[node]:
            if neighbour not in distance:
                edge = tree.names[node], tree.names[neighbour]
                distance[neighbour] = distance[node] + topology.latencies.get(edge, 0.0)
    return [distance[leaf] for leaf in tree.leaf]


def _furthest_pair(topology: Topology) -> tuple[list[float], list[float]]:
    """Return the distances from each of two ranks that are furthest apart."""
    start = _distances(topology, 0)
    one = _distances(topology, start.index(max(start)))
    return one, _distances(topology, one.index(max(one)))


def _diameter(topology: Topology) -> float:
    return max(_furthest_pair(topology)[1])


def _bcast_latency(topology: Topology, root: int | None) -> float:
    """Return how far the furthest rank is from the root, or from the most central rank."""
    if root is not None:
        return max(_distances(topology, root))
    # In a tree the furthest rank from anywhere is one end of a longest path.
    return min(map(max, zip(*_furthest_pair(topology), strict=True)))
