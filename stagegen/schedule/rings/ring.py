"""Contention-free logical rings.

Source: Faraj (2006), section 3.3.2. LR1 is Algorithm 1 and Theorem 2: step 1 numbers the
switches in depth-first order, step 2 puts the machines of each switch in that order; both steps
are one depth-first search of the whole tree that visits a switch's machines before its switches.
LR2 and LR3 have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stagegen.schedule.model import RING_CONSTRUCTIONS, Ring
from stagegen.schedule.rings.optimal import optimal_order
from stagegen.schedule.rings.two_hop import two_hop_order
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


_ORDERS: Mapping[str, Callable[[Topology], tuple[int, ...]]] = dict(
    zip(RING_CONSTRUCTIONS, (depth_first_ranks, two_hop_order, optimal_order), strict=True)
)


def logical_ring(topology: Topology, construction: str = "lr1") -> Ring:
    """Return a ring on which every network edge is used at most once (Theorem 2).

    Args:
        topology: the cluster.
        construction: one of `RING_CONSTRUCTIONS`: `lr1` depth-first, `lr2` with at most two hops,
            `lr3` with as few hops as possible.

    Raises:
        NotFoundError: `lr2`, if a switch has more neighbour switches than machines.
    """
    order = _ORDERS[construction](topology)
    return Ring(topology.ranks, construction, order, _most_hops(topology, order))


def _most_hops(topology: Topology, order: tuple[int, ...]) -> int:
    """Return the most hops between neighbours.

    A contention-free ring passes every link twice, so all its paths together are as long as the
    tree has links, and walking along them is linear however deep the tree is.
    """
    if len(order) == 1:
        return 0
    pairs = zip(order, order[1:] + order[:1], strict=True)
    return max(topology.hops(one, other) for one, other in pairs)
