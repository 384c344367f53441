"""Which patterns are so alike that one routine serves them (Faraj 2006, section 4.1.1.4).

"Before a tuned routine is generated for a pattern, the pattern is compared with other patterns
whose routines have been generated. If the difference is under a threshold value, the old tuned
routine will be used for the new pattern." The dissertation does not say what the difference is.
Here it is the bytes that differ as a part of all bytes of both patterns: 0 for equal patterns, 1
for patterns that have no byte in common.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stagegen.patterns.model import Pattern

Array = npt.NDArray[Any]

#: The thresholds whose effect is shown.
SHOWN = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Merged:
    """Patterns that one of them stands for.

    Attributes:
        pattern: the first one, with the calls of all.
        members: how many there are.
        farthest: the greatest difference from the first one.
    """

    pattern: Pattern
    members: int
    farthest: float


def difference(one: Pattern, other: Pattern) -> float:
    """Return the bytes that differ as a part of all bytes of two patterns, from 0 to 1.

    Patterns of different collectives, or on different numbers of ranks, have nothing in common.
    """
    if (one.collective, one.ranks) != (other.collective, other.ranks):
        return 1.0
    blocks, totals = one.array.reshape(1, -1), np.array([one.total])
    return float(_differences(blocks, totals, other)[0])


def _differences(blocks: Array, totals: Array, pattern: Pattern) -> Array:
    """Return the difference of a pattern from each of several, all on as many ranks.

    Args:
        blocks: [pattern, block], in bytes.
        totals: [pattern], of all its blocks.
        pattern: the one that is compared with each.
    """
    both = totals + pattern.total
    differ = np.abs(blocks - pattern.array.ravel()).sum(axis=1)
    return np.where(both > 0, differ / np.maximum(both, 1), 0.0)


@dataclass
class _Group:
    """A pattern, and what has joined it so far; `number` is its place among all patterns."""

    number: int
    pattern: Pattern
    calls: set[int]
    members: int = 1
    farthest: float = 0.0

    def join(self, pattern: Pattern, apart: float) -> None:
        self.calls.update(pattern.calls)
        self.members += 1
        self.farthest = max(self.farthest, apart)

    def end(self) -> Merged:
        if self.members == 1:
            return Merged(self.pattern, 1, 0.0)
        calls = tuple(sorted(self.calls))
        return Merged(replace(self.pattern, calls=calls), self.members, self.farthest)


def merged(patterns: Sequence[Pattern], threshold: float) -> tuple[Merged, ...]:
    """Return the distinct patterns, in the order of their first appearance.

    A pattern joins the first of the distinct ones of its call site and communicator from which it
    differs by at most the threshold. Classes join only classes.
    """
    return merged_at(patterns, (threshold,))[threshold]


def merged_at(
    patterns: Sequence[Pattern], thresholds: Iterable[float]
) -> dict[float, tuple[Merged, ...]]:
    """Return what :func:`merged` does at several thresholds; no two patterns are compared twice."""
    every = tuple(dict.fromkeys(thresholds))
    places: dict[Hashable, _Place] = {}
    for number, pattern in enumerate(patterns):
        place = places.setdefault(_place(pattern), _Place(every))
        place.add(number, pattern)
    groups = {at: [g for one in places.values() for g in one.groups[at].values()] for at in every}
    return {
        at: tuple(one.end() for one in sorted(found, key=lambda one: one.number))
        for at, found in groups.items()
    }


class _Place:
    """The patterns of one place: those that are the first of a group, at any threshold.

    All that are kept are compared with a new pattern at once: programs with thousands of patterns
    would wait for hours otherwise.

    Attributes:
        groups: at each threshold, by the index of their first patterns among those kept.
    """

    def __init__(self, thresholds: Sequence[float]):
        self.groups: dict[float, dict[int, _Group]] = {at: {} for at in thresholds}
        self._firsts = {at: np.zeros(1, bool) for at in thresholds}
        self._blocks = np.zeros((1, 0), np.int64)
        self._totals = np.zeros(1, np.int64)
        self._kept = 0

    def add(self, number: int, pattern: Pattern) -> None:
        """Add the next pattern to its group at each threshold, or begin one with it."""
        apart = self._apart(pattern)
        is_new = False
        for at, groups in self.groups.items():
            near = self._firsts[at][: self._kept] & (apart <= at)
            if near.any():
                first = int(near.argmax())
                groups[first].join(pattern, float(apart[first]))
                continue
            groups[self._kept] = _Group(number, pattern, set(pattern.calls))
            is_new = True
        if is_new:
            self._keep(pattern)

    def _apart(self, pattern: Pattern) -> Array:
        """Return the difference of a pattern from each that is kept."""
        if not self._kept:
            return np.zeros(0)
        kept = slice(self._kept)
        return _differences(self._blocks[kept], self._totals[kept], pattern)

    def _keep(self, pattern: Pattern) -> None:
        """Keep a pattern; its groups have the index that it gets."""
        blocks = pattern.array.ravel()
        if self._kept == 0:
            self._blocks = np.zeros((1, len(blocks)), np.int64)
        if self._kept == len(self._totals):
            self._blocks = np.concatenate([self._blocks, np.zeros_like(self._blocks)])
            self._totals = np.concatenate([self._totals, np.zeros_like(self._totals)])
            self._firsts = {
                at: np.concatenate([firsts, np.zeros_like(firsts)])
                for at, firsts in self._firsts.items()
            }
        self._blocks[self._kept], self._totals[self._kept] = blocks, pattern.total
        for at, groups in self.groups.items():
            self._firsts[at][self._kept] = self._kept in groups
        self._kept += 1


def _place(pattern: Pattern) -> Hashable:
    return (
        pattern.collective, pattern.ranks, pattern.is_class, pattern.scales, pattern.site,
        pattern.communicator, pattern.ordinal, pattern.is_blocking,
    )  # fmt: skip
