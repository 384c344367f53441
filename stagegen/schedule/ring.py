"""Contention-free logical ring LR1.

Source: Faraj (2006), section 3.3.2.1, Algorithm 1 and Theorem 2. Step 1 numbers the switches
in depth-first order, step 2 puts the machines of each switch in that order; both steps are
one depth-first search of the whole tree that visits a switch's machines before its switches.
"""

from __future__ import annotations

from stagegen.schedule.shapes import Ring
from stagegen.topology import Topology


def depth_first_ranks(topology: Topology, start: int = 0) -> tuple[int, ...]:
    """Return all ranks in depth-first order of the tree, from rank `start`.

    At a switch its hosts come first, by their lowest rank (ranks of one host together), then
    its neighbour switches in the order of the links in the file.
    """
    tree = topology.tree
    visited = tree.depth_first(tree.leaf[start])
    return tuple(tree.rank[node] for node in visited if tree.rank[node] >= 0)


def depth_first_positions(topology: Topology, start: int = 0) -> tuple[int, ...]:
    """Return the position of every rank in the depth-first order from rank `start`."""
    positions = [0] * topology.rank_count
    for position, rank in enumerate(depth_first_ranks(topology, start)):
        positions[rank] = position
    return tuple(positions)


def logical_ring(topology: Topology, kind: str = "lr1") -> Ring:
    """Return a ring on which every network edge is used at most once (Theorem 2).

    Args:
        topology: the cluster.
        kind: one of `RING_KINDS`.
    """
    order = depth_first_ranks(topology)
    pairs = zip(order, order[1:] + order[:1], strict=True) if len(order) > 1 else ()
    hops = max((topology.hops(one, other) for one, other in pairs), default=0)
    return Ring(topology.ranks, kind, order, hops)
