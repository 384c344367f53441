"""From samples to choices: who replaces whom, and where between two sizes."""

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
    """Return who serves a size, given who serves the size before it.

    The incumbent stays unless the fastest beats it by more than the noise
    (:func:`stagegen.measure.statistics.is_faster`) or it fell behind while scouting. It also
    gives way to the native routine when that has the lower median: keeping a rule must not
    cost anything against doing nothing.
    """
    best = fastest(samples)
    if incumbent is None:
        incumbent = native
    if incumbent not in samples or samples[incumbent].dropped:
        return best
    if is_faster(samples[best].seconds, samples[incumbent].seconds):
        return best
    if incumbent != native and median(samples[native]) < median(samples[incumbent]):
        return native
    return incumbent


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
        above_wins: measures at a size whether the upper choice is the faster there.
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
