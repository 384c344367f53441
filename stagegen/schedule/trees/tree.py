"""Broadcast trees for any root: linear, binary, k-ary, binomial, flat.

Source: Faraj (2006), section 3.4. The linear tree is Algorithm 4 (Theorem 4: the ranks in
depth-first order from the root, each sends to the next); binary and k-ary trees are made by
Algorithm 5 on several depth-first orders (:mod:`stagegen.schedule.trees.kary`). Those three, and
the flat tree with its one sender, have no contention; for the binomial tree it is counted. A
tree for a reduce is one of these, reversed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from stagegen.errors import InputError
from stagegen.schedule.model import TREE_CONSTRUCTIONS, Message, Tree, least_height
from stagegen.schedule.rings.ring import depth_first_ranks
from stagegen.schedule.trees.contention import senders_in_step, shared_edges
from stagegen.schedule.trees.edges import binomial_edges, flat_edges, height_of, in_sending_order
from stagegen.schedule.trees.kary import KaryTrees
from stagegen.schedule.trees.orders import ORDERS, depth_first_orders
from stagegen.topology import Topology

ARITY = 3
"""The default arity of a k-ary tree: the least that is neither linear nor binary."""


@dataclass(frozen=True)
class _Construction:
    """How to make a tree.

    Attributes:
        edges: makes the edges from topology, root, arity (0 for none) and number of orders.
        arity: the most children of a rank; None where there is no limit.
        aware: whether it is made for the network, and so has no contention.
    """

    edges: Callable[[Topology, int, int, int], tuple[Message, ...]]
    arity: int | None
    aware: bool = True


def _linear(topology: Topology, root: int, *_: int) -> tuple[Message, ...]:
    return tuple(Message(*pair) for pair in pairwise(depth_first_ranks(topology, root)))


def _kary(topology: Topology, root: int, arity: int, orders: int) -> tuple[Message, ...]:
    if arity == 1:
        return _linear(topology, root)
    least = least_height(topology.rank_count, arity)
    best: KaryTrees | None = None
    for order in depth_first_orders(topology.tree, root, orders):
        trees = KaryTrees(order, arity)
        if best is None or trees.height < best.height:
            best = trees
        if best.height == least:
            break
    return () if best is None else in_sending_order(root, best.messages())


_CONSTRUCTIONS = {
    "linear": _Construction(_linear, 1),
    "binary": _Construction(_kary, 2),
    "kary": _Construction(_kary, ARITY),
    "binomial": _Construction(
        lambda t, root, *_: binomial_edges(t.rank_count, root), None, aware=False
    ),
    "flat": _Construction(lambda t, root, *_: flat_edges(t.rank_count, root), None),
}


def broadcast_tree(
    topology: Topology,
    root: int = 0,
    construction: str = "linear",
    arity: int | None = None,
    orders: int = ORDERS,
) -> Tree:
    """Return the broadcast tree of a root.

    Args:
        topology: the cluster.
        root: the rank that has the data.
        construction: one of `TREE_CONSTRUCTIONS`.
        arity: the most children of a rank in a `kary` tree; `ARITY` unless given. Other
            constructions take None or their own arity.
        orders: how many depth-first orders to try for binary and k-ary trees, at most; the first
            of the lowest trees is taken. With 1 only the order of Algorithm 4, as published.

    Raises:
        InputError: there is no such rank or tree, or the arity does not fit.
    """
    if not 0 <= root < topology.rank_count:
        raise InputError(f"there is no rank {root}; ranks are 0 to {topology.rank_count - 1}")
    if construction not in _CONSTRUCTIONS:
        raise InputError(
            f"there is no tree {construction!r}; trees are {', '.join(TREE_CONSTRUCTIONS)}"
        )
    if not 1 <= orders <= ORDERS:
        raise InputError(f"{orders} depth-first orders are not possible; choose 1 to {ORDERS}")
    how, limit = _CONSTRUCTIONS[construction], _arity(construction, arity)
    edges = how.edges(topology, root, limit or 0, orders)
    shared = () if how.aware else shared_edges(topology, edges)
    return Tree(
        ranks=topology.ranks,
        construction=construction,
        root=root,
        edges=edges,
        height=height_of(root, edges),
        contention_free=not shared,
        arity=limit,
        contention=shared,
        in_step=min(1, len(edges)) if how.aware else senders_in_step(topology, edges),
    )


def reduce_tree(
    topology: Topology,
    root: int = 0,
    construction: str = "linear",
    arity: int | None = None,
    orders: int = ORDERS,
) -> Tree:
    """Return the tree on which all ranks reduce to a root: a broadcast tree, reversed.

    Arguments and errors are the same as for :func:`broadcast_tree`.
    """
    return broadcast_tree(topology, root, construction, arity, orders).reversed()


def _arity(construction: str, given: int | None) -> int | None:
    """Return the arity of a tree, checking the one given."""
    own = _CONSTRUCTIONS[construction].arity
    if given is None:
        return own
    if construction == "kary" and given < 1:
        raise InputError(f"arity {given} is too small; a rank needs at least 1 child")
    if construction != "kary" and given != own:
        raise InputError(f"a {construction} tree cannot have arity {given}; a kary tree can")
    return given
