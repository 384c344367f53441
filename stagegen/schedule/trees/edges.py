"""Shapes of broadcast trees for any network: flat, binomial, and the order of sending."""

from __future__ import annotations

from collections.abc import Iterable

from stagegen.schedule.model import Message


def flat_edges(count: int, root: int) -> tuple[Message, ...]:
    """Return the tree in which the root sends to all others, in the order of their ranks.

    Source: Faraj (2006), section 3.4.1.
    """
    return tuple(Message(root, rank) for rank in range(count) if rank != root)


def binomial_edges(count: int, root: int) -> tuple[Message, ...]:
    """Return the binomial tree as MPI libraries build it, whatever the network.

    With places counted from the root, the parent of a place lacks its lowest set bit, and
    children with a higher bit come first: in step s of ⌈log₂ count⌉, every rank that has the
    data sends it. Source: Thakur and Gropp (2003), section 5; Faraj (2006), section 3.4.1.
    """
    top = 1 << (count - 1).bit_length()
    edges = []
    places = [0]
    for place in places:
        bit = (place & -place or top) >> 1
        while bit:
            if place + bit < count:
                edges.append(Message((root + place) % count, (root + place + bit) % count))
                places.append(place + bit)
            bit >>= 1
    return tuple(edges)


def in_sending_order(root: int, arcs: Iterable[Message]) -> tuple[Message, ...]:
    """Return the edges of a tree, each parent's children in the order of sending.

    A parent sends a segment to one child after the other, so its q-th child has it q steps
    later. The child whose subtree takes longest from then on is served first: exchanging two
    neighbours in that order never lets the parent's subtree end sooner. Parents come in
    breadth-first order.

    Args:
        root: of the tree.
        arcs: the edges in any order; children that take equally long keep it.
    """
    children: dict[int, list[int]] = {root: []}
    for parent, child in arcs:
        children.setdefault(parent, []).append(child)
    order = [root]
    for rank in order:
        order += children.get(rank, ())
    steps: dict[int, int] = {}
    for rank in reversed(order):
        below = children.get(rank, [])
        below.sort(key=lambda child: -steps[child])
        steps[rank] = max((q + steps[child] for q, child in enumerate(below, 1)), default=0)
    # Sorting the children has changed the breadth-first order.
    order, edges = [root], []
    for rank in order:
        order += children.get(rank, ())
        edges += [Message(rank, child) for child in children.get(rank, ())]
    return tuple(edges)


def height_of(root: int, edges: Iterable[Message]) -> int:
    """Return the most edges from the root to a rank; every parent comes before its children."""
    depth = {root: 0}
    for parent, child in edges:
        depth[child] = depth[parent] + 1
    return max(depth.values())
