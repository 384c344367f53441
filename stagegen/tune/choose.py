"""From samples to choices: which candidate replaces another one, and between which sizes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import is_faster
from stagegen.tune.race import Sample

Samples = Mapping[Candidate, Sample]

#: A crossover is known when its interval is this share of its lower end, or one byte.
RESOLUTION = 1 / 8


def median(sample: Sample) -> float:
    """Return the median in seconds."""
    return statistics.median(sample.seconds)


def fastest(samples: Samples) -> Candidate:
    """Return the candidate with the least median; of equals the first by name."""
    running = {c: s for c, s in samples.items() if not s.dropped}
    return min(sorted(running), key=lambda candidate: median(running[candidate]))


def choose(samples: Samples, incumbent: Candidate | None, native: Candidate) -> Candidate:
    """Return the choice for a size, given the choice for the size before it.

    The incumbent stays unless the fastest beats it by more than the noise
    (:func:`stagegen.measure.statistics.is_faster`). If the incumbent fell behind while
    scouting, the fastest must beat the native routine in the same way instead, unless that fell
    behind, too. The incumbent also gives way to a native routine with a lower median:
    keeping a rule must never cost more than doing nothing.
    """
    best = fastest(samples)
    if incumbent is None or not _runs(samples, incumbent):
        incumbent = native
    if not _runs(samples, incumbent):
        return best
    if is_faster(samples[best].seconds, samples[incumbent].seconds):
        return best
    if _runs(samples, native) and median(samples[native]) < median(samples[incumbent]):
        return native
    return incumbent


def _runs(samples: Samples, candidate: Candidate) -> bool:
    """Whether a candidate was timed to the end."""
    return candidate in samples and not samples[candidate].dropped


def crossover(
    low: int,
    high: int,
    above_wins: Callable[[int], bool],
    resolution: float = RESOLUTION,
) -> tuple[int, int]:
    """Find by binary search where the choice of ``low`` gives way to that of ``high``.

    Args:
        low: a size in bytes at which the lower choice serves.
        high: a larger one at which the upper choice serves.
        above_wins: measures at a size whether the upper choice is faster there.
        resolution: the search ends when the interval is within this share of its lower end.

    Returns:
        The interval: the last size where the lower choice was kept, the first of the upper.
        One change is assumed between them (Faraj 2006, §4.1.1.4).
    """
    while high - low > max(1, low * resolution):
        middle = max(low + 1, min(high - 1, round(math.sqrt(max(low, 1) * high))))
        if above_wins(middle):
            high = middle
        else:
            low = middle
    return low, high
