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
    sides likewise. Cuts between phases that are alike in the end are left out.
    """
    cuts = _apart(values, sorted(_cuts(values, 0, len(values))))
    return tuple(
        Phase(first, end - 1, float(np.median(values[first:end])))
        for first, end in pairwise([0, *cuts, len(values)])
        if end > first
    )


def _apart(values: Array, cuts: list[int]) -> list[int]:
    """Return the cuts without those whose sides differ by less than the factor, the least first."""
    while cuts:
        ends = [0, *cuts, len(values)]
        medians = [float(np.median(values[first:end])) for first, end in pairwise(ends)]
        ratios = [max(pair) / max(min(pair), 1e-300) for pair in pairwise(medians)]
        least = min(range(len(cuts)), key=ratios.__getitem__)
        if ratios[least] >= FACTOR:
            break
        cuts = [cut for place, cut in enumerate(cuts) if place != least]
    return cuts


def _cuts(values: Array, first: int, end: int) -> list[int]:
    places = range(first + SHORTEST, end - SHORTEST + 1)
    step = max(1, len(places) // PLACES)
    if not places or np.ptp(values[first:end]) == 0:
        return []
    tests = {at: _test(values[first:at], values[at:end]) for at in places[::step]}
    coarse = max(tests, key=lambda at: tests[at].distance)
    near = range(max(places[0], coarse - step + 1), min(places[-1], coarse + step - 1) + 1)
    tests |= {at: _test(values[first:at], values[at:end]) for at in near if at not in tests}
    at = max(tests, key=lambda at: tests[at].distance)
    medians = np.median(values[first:at]), np.median(values[at:end])
    if tests[at].chance * len(tests) > SIGNIFICANCE or max(medians) < FACTOR * min(medians):
        return []
    return [*_cuts(values, first, at), at, *_cuts(values, at, end)]


@dataclass(frozen=True)
class _Test:
    """A rank test: its probability, which may be too small for a number, and the distance.

    The distance is that of U from its mean, in standard deviations.
    """

    chance: float
    distance: float


def _test(before: Array, after: Array) -> _Test:
    step = max(1, (len(before) + len(after)) // LOOKED_AT)
    one, other = (side[::step] for side in (before, after))
    found = scipy.stats.mannwhitneyu(one, other, method="asymptotic")
    pairs = len(one) * len(other)
    deviation = (pairs * (len(one) + len(other) + 1) / 12) ** 0.5
    return _Test(float(found.pvalue), abs(float(found.statistic) - pairs / 2) / deviation)
