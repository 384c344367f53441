"""All contention-free trees of small clusters, by plain definition."""

from __future__ import annotations

import functools
import itertools

from stagegen.schedule import Message
from tests.schedule.oracle import Oracle


def free_of_contention(oracle: Oracle, edges, peer: int = 0) -> bool:
    """Whether messages of different senders (peer 0) or to different receivers (1) never meet."""
    return not any(
        one[peer] != other[peer] and oracle.clash(one, other)
        for one, other in itertools.combinations(edges, 2)
    )


def interval_trees(oracle: Oracle, ranks: tuple[int, ...], arity: int):
    """Return a function of positions i and j: all trees that Algorithm 5 could choose for [i, j].

    Those are the contention-free trees with root i in which every subtree is an interval, as
    pairs (height, set of arcs by positions).
    """

    def free(arcs) -> bool:
        return free_of_contention(oracle, [Message(ranks[a], ranks[b]) for a, b in arcs])

    @functools.cache
    def trees(i: int, j: int):
        found = {(0, frozenset())} if i == j else set()
        for parts in range(1, min(arity, j - i) + 1):
            for cuts in itertools.combinations(range(i + 2, j + 1), parts - 1):
                starts, ends = (i + 1, *cuts), (*(cut - 1 for cut in cuts), j)
                for below in itertools.product(*map(trees, starts, ends)):
                    arcs = frozenset((i, start) for start in starts).union(*(t[1] for t in below))
                    if free(arcs):
                        found.add((1 + max(t[0] for t in below), arcs))
        return found

    return trees


def figure_3_28(oracle: Oracle, ranks: tuple[int, ...], arity: int):
    """Return the least height of every interval by the dissertation's own way, for any arity.

    It keeps one tree for each interval and looks for contention with the messages of that tree.
    Unlike the figure, it tries fewer children than the arity, too.
    """
    height, arcs = {}, {}
    places = range(len(ranks))
    path = {(a, b): oracle.paths[ranks[a], ranks[b]] for a in places for b in places if a != b}
    for i, j in sorted(
        itertools.combinations_with_replacement(places, 2), key=lambda p: p[1] - p[0]
    ):
        height[i, j], arcs[i, j] = (0 if i == j else len(ranks)), []
        for parts in range(1, min(arity, j - i) + 1):
            for cuts in itertools.combinations(range(i + 2, j + 1), parts - 1):
                below = list(zip((i + 1, *cuts), (*(cut - 1 for cut in cuts), j), strict=True))
                high = 1 + max(height[part] for part in below)
                inner = [arc for part in below for arc in arcs[part]]
                own = [(i, start) for start, _ in below]
                used = set().union(*(path[arc] for arc in own))
                if high < height[i, j] and not any(used & path[arc] for arc in inner):
                    height[i, j], arcs[i, j] = high, own + inner
    return height


def least_height_of_any(oracle: Oracle, root: int, arity: int) -> int:
    """Return the least height of all contention-free trees of an arity, in no order at all."""
    best = oracle.ranks - 1

    def grow(waiting, left, user, height):
        nonlocal best
        if not left:
            best = min(best, height)
        if not left or not waiting or waiting[0][1] + 1 >= best:
            return
        (parent, depth), *others = waiting
        for children in itertools.chain.from_iterable(
            itertools.combinations(sorted(left), count) for count in range(arity + 1)
        ):
            used = {edge for child in children for edge in oracle.paths[parent, child]}
            if used.isdisjoint(user):
                later = [*others, *((child, depth + 1) for child in children)]
                deepest = max(height, depth + 1) if children else height
                grow(later, left - set(children), user | used, deepest)

    grow([(root, 0)], frozenset(range(oracle.ranks)) - {root}, frozenset(), 0)
    return best
