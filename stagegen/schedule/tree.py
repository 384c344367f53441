"""Contention-free linear broadcast tree for any root.

Source: Faraj (2006), section 3.4.2.1, Algorithm 4 and Theorem 4: the machines in depth-first
order from the root's switch, the root first among its switch's machines; each sends to the
next.
"""

from __future__ import annotations

from itertools import pairwise

from stagegen.errors import InputError
from stagegen.schedule.model import Message
from stagegen.schedule.ring import depth_first_ranks
from stagegen.schedule.shapes import Tree
from stagegen.topology import Topology


def broadcast_tree(topology: Topology, root: int = 0, kind: str = "linear") -> Tree:
    """Return the broadcast tree of a root.

    Args:
        topology: the cluster.
        root: the rank that has the data.
        kind: one of `TREE_KINDS`.

    Raises:
        InputError: there is no such rank.
    """
    if not 0 <= root < topology.rank_count:
        raise InputError(f"there is no rank {root}; ranks are 0 to {topology.rank_count - 1}")
    order = depth_first_ranks(topology, root)
    edges = tuple(Message(*pair) for pair in pairwise(order))
    return Tree(topology.ranks, kind, root, edges, len(edges), contention_free=True)
