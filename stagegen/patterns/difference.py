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

import numpy as np

from stagegen.patterns.model import Pattern

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
    both = one.total + other.total
    return float(np.abs(one.array - other.array).sum() / both) if both else 0.0


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
    groups: dict[float, dict[Hashable, list[_Group]]] = {at: {} for at in thresholds}
    for number, pattern in enumerate(patterns):
        place = _place(pattern)
        apart: dict[int, float] = {}
        for threshold, by_place in groups.items():
            found = by_place.setdefault(place, [])
            for group in found:
                if group.number not in apart:
                    apart[group.number] = difference(group.pattern, pattern)
                if apart[group.number] <= threshold:
                    group.join(pattern, apart[group.number])
                    break
            else:
                found.append(_Group(number, pattern, set(pattern.calls)))
    return {at: _in_order(by_place.values()) for at, by_place in groups.items()}


def _in_order(groups: Iterable[Iterable[_Group]]) -> tuple[Merged, ...]:
    """Return the groups of all places, in the order of their first patterns."""
    ordered = sorted((one for of_place in groups for one in of_place), key=lambda one: one.number)
    return tuple(one.end() for one in ordered)


def _place(pattern: Pattern) -> Hashable:
    return (
        pattern.collective, pattern.is_class, pattern.scales, pattern.site, pattern.communicator
    )  # fmt: skip
