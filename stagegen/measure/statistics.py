"""Robust statistics: medians, their confidence intervals, and when a difference is real.

Times are skewed and have outliers (a TCP retransmission costs 200 ms), so nothing here
assumes a distribution: the median with its order-statistics interval (Hoefler and Belli
2015, rule 5 ff.) and the Mann-Whitney U test.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import scipy  # which loads its parts at their first use: scipy.stats takes half a second

CONFIDENCE = 0.95

#: A winner must be faster by this share of the other's median: a gain below it is not worth
#: a rule (Intel's mpitune dropped settings under its noise in the same way).
MARGIN = 0.03

#: The probability of such samples without a real difference must be below this.
SIGNIFICANCE = 0.05


#: By default, a median is known if its interval is within this share of it on both sides.
WIDTH = 0.05

#: Fewer values have no interval of CONFIDENCE: least and greatest miss the median of n values with
#: a probability of 2 in 2^n.
LEAST_COUNT = 6

#: With fewer launches no rank test on their medians alone can reach SIGNIFICANCE: its least
#: probability is 1 in 2^n.
LAUNCHES_LEAST = 5

#: Times of repetitions, by launch.
Launches = Mapping[int, Sequence[float]]


@dataclass(frozen=True)
class Summary:
    """A sample, in its own unit: median, ends of its interval, and number of values."""

    median: float
    low: float
    high: float
    count: int

    @property
    def width(self) -> float:
        """The longer side of the interval, as a share of the median."""
        return max(self.high - self.median, self.median - self.low) / self.median

    def is_within(self, width: float) -> bool:
        """Whether it is an interval of :data:`CONFIDENCE`, and no wider than this share."""
        return self.count >= LEAST_COUNT and self.width <= width


def summarize(seconds: Sequence[float]) -> Summary:
    """Return median and 95 % interval from order statistics; min and max if n is small.

    Raises:
        ValueError: there is no value.
    """
    if not seconds:
        raise ValueError("a summary needs at least one value")
    ordered = sorted(seconds)
    n = len(ordered)
    rank = _rank_of_the_end(n)
    return Summary(statistics.median(ordered), ordered[rank], ordered[n - 1 - rank], n)


@cache
def _rank_of_the_end(count: int) -> int:
    """Return how many of so many values are below the interval, and as many are above it.

    P(the k smallest all lie below the median) is binomial; half the risk is cut on each side.
    """
    below = scipy.special.bdtr(np.arange(count), count, 0.5)
    rank = int(np.searchsorted(below, (1 - CONFIDENCE) / 2))
    return max(0, min(rank - 1, (count - 1) // 2))


def paired_ratio(seconds: Sequence[float], reference: Sequence[float]) -> Summary:
    """Return the ratio of two samples that were taken in turn, from the ratio of each pair.

    Whatever slows the machine down for a while slows both times of a pair, so the ratios of pairs
    tell more than the ratio of the medians.

    Raises:
        ValueError: the samples differ in length, or are empty.
    """
    return summarize([a / b for a, b in zip(seconds, reference, strict=True)])


def is_lower(challenger: Sequence[float], incumbent: Sequence[float], gain: float = MARGIN) -> bool:
    """Whether the challenger's median is below the incumbent's by more than ``gain``."""
    if not challenger or not incumbent:
        return False
    return statistics.median(challenger) < (1 - gain) * statistics.median(incumbent)


def is_faster(
    challenger: Sequence[float], incumbent: Sequence[float], gain: float = MARGIN
) -> bool:
    """Whether the challenger beats the incumbent by more than the noise.

    The test: the challenger's median is below the incumbent's by more than ``gain``, and a
    one-sided Mann-Whitney U test on the raw repetitions rejects "not faster" at
    :data:`SIGNIFICANCE`. Three repetitions on each side can never pass it: the chance that all
    of one are below all of the other is 1 in 20. For four it is 1 in 70.
    """
    if not is_lower(challenger, incumbent, gain):
        return False
    test = scipy.stats.mannwhitneyu(challenger, incumbent, alternative="less")
    return round(float(test.pvalue), 9) < SIGNIFICANCE  # 1/20 is not 0.05 in floating point


def launch_ratios(challenger: Launches, incumbent: Launches) -> list[float]:
    """Return the challenger's time over the incumbent's in each launch that timed both.

    Of a launch it is the median of the ratios of its rounds.
    """
    shared = sorted(challenger.keys() & incumbent.keys())
    return [statistics.median(_rounds(challenger[n], incumbent[n])) for n in shared]


def launch_mean_ratios(challenger: Launches, incumbent: Launches) -> list[float]:
    """Return the challenger's mean over the incumbent's in each launch that timed both.

    Only rounds that timed both count. Programs pay the mean: an incumbent that is far slower in
    some of the calls has a good median.
    """
    shared = sorted(challenger.keys() & incumbent.keys())
    rounds = [list(zip(challenger[n], incumbent[n], strict=False)) for n in shared]
    return [sum(a for a, _ in made) / sum(b for _, b in made) for made in rounds]


def _rounds(challenger: Sequence[float], incumbent: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(challenger, incumbent, strict=False)]


def is_faster_in_launches(challenger: Launches, incumbent: Launches, gain: float = MARGIN) -> bool:
    """Whether the challenger beats the incumbent in several launches of the job.

    A launch has its own luck: where memory lies, which connections share a queue. So launches are
    what is counted (Hunold and Carpen-Amarie 2016), and the two are compared within each. Two
    conditions must hold:

    - The median of the launches' ratios is below 1 by at least ``gain``.
    - A one-sided Wilcoxon signed-rank test on the ratios of the launches rejects "not faster" at
      :data:`SIGNIFICANCE`. With fewer than :data:`LAUNCHES_LEAST` launches it cannot. Then all
      launches must agree, and the test is on the ratios of all rounds.
    """
    ratios = launch_ratios(challenger, incumbent)
    if not ratios or statistics.median(ratios) > 1 - gain:
        return False
    if len(ratios) >= LAUNCHES_LEAST:
        return signed_rank(ratios) < SIGNIFICANCE
    return max(ratios) < 1 and is_faster_in_rounds(challenger, incumbent)


def is_faster_in_rounds(challenger: Launches, incumbent: Launches) -> bool:
    """Whether the signed-rank test on the ratios of all rounds rejects "not faster".

    It finds smaller differences than the test on launches, and takes a launch's own luck for one.
    """
    shared = challenger.keys() & incumbent.keys()
    rounds = [ratio for n in shared for ratio in _rounds(challenger[n], incumbent[n])]
    return signed_rank(rounds) < SIGNIFICANCE


def is_faster_in_the_mean(challenger: Launches, incumbent: Launches, gain: float = MARGIN) -> bool:
    """Whether the means of the launches say that the challenger is faster, by ``gain`` in the mean.

    The test is that of :func:`is_faster_in_launches`, on the ratios of the launches' means.
    """
    ratios = launch_mean_ratios(challenger, incumbent)
    if not ratios or statistics.fmean(ratios) > 1 - gain:
        return False
    if len(ratios) >= LAUNCHES_LEAST:
        return signed_rank(ratios) < SIGNIFICANCE
    return max(ratios) < 1 and is_faster_in_rounds(challenger, incumbent)


def may_be_faster(ratios: Sequence[float], launches: int, gain: float = MARGIN) -> bool:
    """Whether ratios of the first launches leave it open that a challenger wins after all.

    It is asked with the luckiest ratios in the launches to come, so giving up a challenger for
    which it is false changes no decision.
    """
    lucky = [*ratios, *[0.0] * (launches - len(ratios))]
    if statistics.median(lucky) > 1 - gain:
        return False
    if launches >= LAUNCHES_LEAST:
        return signed_rank(lucky) < SIGNIFICANCE
    return max(lucky) < 1


def signed_rank(ratios: Sequence[float]) -> float:
    """Return the exact probability of such ratios if above and below 1 were alike.

    It is that of Wilcoxon's signed-rank test, one-sided, on the logarithms. What is ambiguous
    counts against the challenger: ratios of 1 are above it, and of equal distances those above
    rank higher.
    """
    logs = [math.log(ratio) if ratio > 0 else -math.inf for ratio in ratios]
    order = sorted(logs, key=lambda value: (abs(value), value >= 0))
    above = sum(rank for rank, value in enumerate(order, start=1) if value >= 0)
    counts = _rank_sums(len(order))
    return sum(counts[: above + 1]) / float(2 ** len(order))


@lru_cache
def _rank_sums(count: int) -> tuple[int, ...]:
    """Return how many subsets of the ranks 1 to ``count`` have each sum, from 0 upwards."""
    sums = [1]
    for rank in range(1, count + 1):
        longer = [*sums, *[0] * rank]
        for total, ways in enumerate(sums):
            longer[total + rank] += ways
        sums = longer
    return tuple(sums)
