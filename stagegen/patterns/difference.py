"""Which patterns are so alike that one routine serves them (Faraj 2006, section 4.1.1.4).

"Before a tuned routine is generated for a pattern, the pattern is compared with other patterns
whose routines have been generated. If the difference is under a threshold value, the old tuned
routine will be used for the new pattern." The dissertation does not say what the difference is.
Here it is the bytes that differ as a part of all bytes of both patterns: 0 for equal patterns, 1
for patterns that have no byte in common.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def merged(patterns: Sequence[Pattern], threshold: float) -> tuple[Merged, ...]:
    """Return the distinct patterns, in the order of their first appearance.

    A pattern joins the first of the distinct ones of its call site and communicator from which it
    differs by at most the threshold. Classes join only classes.
    """
    found: list[Merged] = []
    for pattern in patterns:
        for place, own in enumerate(found):
            if _place(own.pattern) != _place(pattern):
                continue
            apart = difference(own.pattern, pattern)
            if apart <= threshold:
                calls = tuple(sorted({*own.pattern.calls, *pattern.calls}))
                found[place] = Merged(
                    replace(own.pattern, calls=calls), own.members + 1, max(own.farthest, apart)
                )
                break
        else:
            found.append(Merged(pattern, 1, 0.0))
    return tuple(found)


def _place(pattern: Pattern) -> tuple[str, bool, str | None, tuple[int, ...] | None]:
    return pattern.collective, pattern.is_class, pattern.site, pattern.communicator
