"""Phases of a series: spans of calls whose values are alike (Faraj 2006, §4.2.2.4, Fig. 4.15)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy

from stagegen.recording.model import Array

#: A phase has at least so many calls.
SHORTEST = 8

#: Two neighbouring phases differ with at most this probability of an error; for each cut, it is
#: divided by the number of places that were tried.
SIGNIFICANCE = 0.01

#: Their medians differ by at least this factor.
FACTOR = 1.5

#: So many places are tried for a cut.
PLACES = 64

#: Of more values, each test looks at about so many, evenly spread.
LOOKED_AT = 2000


@dataclass(frozen=True)
class Phase:
    """A span of calls.

    Attributes:
        first: its first call.
        last: its last call.
        median: of the values, in their unit.
    """

    first: int
    last: int
    median: float


def phases_of(values: Array) -> tuple[Phase, ...]:
    """Return the phases of a series, in order; one if its values are alike throughout.

    The series is cut where the rank test of Mann and Whitney tells both sides apart best, then both
    sides likewise.
    """
    cuts = [0, *sorted(_cuts(values, 0, len(values))), len(values)]
    return tuple(
        Phase(first, end - 1, float(np.median(values[first:end])))
        for first, end in pairwise(cuts)
        if end > first
    )


def _cuts(values: Array, first: int, end: int) -> list[int]:
    places = range(first + SHORTEST, end - SHORTEST + 1)
    tried = places[:: max(1, len(places) // PLACES)]
    if not tried or np.ptp(values[first:end]) == 0:
        return []
    chances = [_chance(values[first:at], values[at:end]) for at in tried]
    best = int(np.argmin(chances))
    at = tried[best]
    medians = np.median(values[first:at]), np.median(values[at:end])
    if chances[best] * len(tried) > SIGNIFICANCE or max(medians) < FACTOR * min(medians):
        return []
    return [*_cuts(values, first, at), at, *_cuts(values, at, end)]


def _chance(before: Array, after: Array) -> float:
    step = max(1, (len(before) + len(after)) // LOOKED_AT)
    sides = (side[::step] for side in (before, after))
    return float(scipy.stats.mannwhitneyu(*sides, method="asymptotic").pvalue)
