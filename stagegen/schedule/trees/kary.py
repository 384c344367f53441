"""Contention-free k-ary trees of least height on a depth-first order.

Source: Faraj (2006), section 3.4.2.2, Algorithm 5 (binary) and the paragraph after Theorem 5
(k-ary), computed from how far a height reaches instead of the height that an interval needs.

Rank i of the order is the root of an interval [i, j]; its children start the consecutive parts
of [i + 1, j]. Only the message from i to a child c can meet messages of the parts before c, and
then it does whatever the trees inside are (``docs/theory.md``). So c may follow the child p iff

- the group of c starts at p or before (no subtree that c lies in is entered from its middle);
- c is at most one beyond L, the last position of the smallest subtree that holds i and p (no
  subtree that i lies in is left from the middle of a part).

Steps, for heights h = 0, 1, … until all is reached from position 0:

1. ``reach[i]`` is the last j such that [i, j] has a tree of height h; for h = 0 it is i.
2. The last child p of a parent reaches ``reach[p]``; an earlier child p lets the next child c
   start anywhere up to ``reach[p]`` + 1, and the best c is the maximum of a few ranges.
3. ``reach[i]`` for h + 1 is what the k children from i + 1 on reach.

The subtree that ends at L is the group of p, or the group of the start of that group, and so on:
the *level*. One level is enough for k = 2; there are at most min(k - 1, depth of the tree).
Time O(height · k · levels² · P log P), memory O(height · P).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stagegen.schedule.model import Message
from stagegen.schedule.trees.orders import DepthFirstOrder
from stagegen.schedule.trees.range_max import Integers, RangeMax

Arc = tuple[int, int]
"""A parent and a child, by their positions in the order."""


@dataclass(frozen=True)
class _Choice:
    """For every position p of a child: how far it and the children after it can reach.

    Attributes:
        reach: the last position.
        then: the next child; the number of positions if there is none.
        level: of the next child.
    """

    reach: Integers
    then: Integers
    level: Integers


class KaryTrees:
    """The contention-free k-ary trees of one depth-first order."""

    def __init__(self, order: DepthFirstOrder, arity: int):
        count = len(order.ranks)
        self._ranks = order.ranks
        self._count = count
        self._arity = min(arity, count - 1)
        self._last = order.last
        self._places = np.arange(count, dtype=np.int64)
        # starts[t][p]: the start of the group, t times over.
        self._starts = [self._places]
        while len(self._starts) <= self._arity and self._starts[-1].any():
            self._starts.append(order.first[self._starts[-1]])
        # Children by the start of their group, then by position.
        self._keys = np.sort(order.first * count + self._places)
        self._children = self._keys % count
        self.reach_of_height = list(self._grow())

    @property
    def height(self) -> int:
        """The height of the lowest tree."""
        return len(self.reach_of_height) - 1

    def _grow(self) -> Iterator[Integers]:
        """Yield `reach` for heights 0, 1, … until position 0 reaches all."""
        reach = self._places
        yield reach
        while reach[0] < self._count - 1:
            best = self._choices(reach)[-1][0].reach
            reach = np.append(best[1:], self._count - 1)
            yield reach

    def _choices(self, reach: Integers) -> list[list[_Choice]]:
        """Return the best choices by [children left - 1][level], for parts that reach so far."""
        by_left = [[self._alone(reach)]]
        for left in range(2, self._arity + 1):
            after = by_left[-1]
            tables = [self._table(choice) for choice in after]
            levels = min(self._arity - left + 1, len(self._starts) - 1)
            by_left.append(
                [self._better(reach, after[0], tables, level) for level in range(levels)]
            )
        return by_left

    def _alone(self, reach: Integers) -> _Choice:
        """Return the choice of no further child."""
        return _Choice(reach.copy(), np.full_like(reach, self._count), np.zeros_like(reach))

    def _table(self, choice: _Choice) -> RangeMax:
        """Return a table of what each child reaches, with the child in the last digits."""
        return RangeMax((choice.reach * self._count + self._places)[self._children])

    def _better(
        self, reach: Integers, after: _Choice, tables: Sequence[RangeMax], level: int
    ) -> _Choice:
        """Return the best choice among no further child and every next child, at a level.

        Args:
            reach: what each child's own part reaches.
            after: what the next child and those after it reach, at level 0.
            tables: the same by level, for children in order of their groups.
            level: of the child.
        """
        last = self._last[self._starts[level]]
        within = np.minimum(reach + 1, last)
        best = self._alone(reach)
        for up, start in enumerate(self._starts[: level + 2]):
            next_level = max(level - up + 1, 0)
            found = tables[min(next_level, len(tables) - 1)].query(
                np.searchsorted(self._keys, start * self._count + self._places, "right"),
                np.searchsorted(self._keys, start * self._count + within, "right"),
            )
            _take(best, found // self._count, found % self._count, next_level)
        beyond = np.minimum(last + 1, self._count - 1)
        possible = (reach >= last) & (last < self._count - 1)
        _take(best, np.where(possible, after.reach[beyond], -1), beyond, 0)
        return best

    def messages(self) -> list[Message]:
        """Return the lowest tree by ranks."""
        return [Message(self._ranks[one], self._ranks[other]) for one, other in self.arcs()]

    def arcs(self) -> list[Arc]:
        """Return the lowest tree by positions; every subtree of it is the lowest for its interval.

        The choices of a height are computed again when its subtrees are cut, rather than kept.
        """
        heights = np.stack(self.reach_of_height, axis=1)
        waiting: list[list[Arc]] = [[] for _ in self.reach_of_height]
        waiting[self.height].append((0, self._count - 1))
        arcs: list[Arc] = []
        for height in range(self.height, 0, -1):
            if not waiting[height]:
                continue
            choices = self._choices(self.reach_of_height[height - 1])
            for root, end in waiting[height]:
                for child, child_end in self._parts(choices, root, end):
                    arcs.append((root, child))
                    lowest = int(np.searchsorted(heights[child], child_end))
                    waiting[lowest].append((child, child_end))
        return arcs

    def _parts(self, choices: list[list[_Choice]], root: int, end: int) -> Iterator[Arc]:
        """Yield the children of a root, each with the last position of its part."""
        child, level = root + 1, 0
        for left in reversed(choices):
            choice = left[min(level, len(left) - 1)]
            then, level = int(choice.then[child]), int(choice.level[child])
            if then > end:
                yield child, end
                return
            yield child, then - 1
            child = then


def _take(best: _Choice, reach: Integers, then: Integers, level: int) -> None:
    """Update the best choices where another one reaches further."""
    better = reach > best.reach
    best.reach[better] = reach[better]
    best.then[better] = then[better]
    best.level[better] = level
