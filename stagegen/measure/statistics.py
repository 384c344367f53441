"""Robust statistics: medians, their confidence intervals, and when a difference is real.

Times are skewed and have outliers (a TCP retransmission costs 200 ms), so nothing here
assumes a distribution: the median with its order-statistics interval (Hoefler and Belli
2015, rule 5 ff.) and the Mann-Whitney U test.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

CONFIDENCE = 0.95

#: A winner must be faster by this share of the other's median: a gain below it is not worth
#: a rule (Intel's mpitune dropped settings under its noise in the same way).
MARGIN = 0.03

#: The probability of such samples without a real difference must be below this.
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Summary:
    """A sample in three numbers, in its own unit: the median and the ends of its interval."""

    median: float
    low: float
    high: float
    count: int

    @property
    def converged(self) -> bool:
        """Whether the interval is within 5 % of the median on both sides."""
        return self.high - self.median <= 0.05 * self.median >= self.median - self.low


def summarize(seconds: Sequence[float]) -> Summary:
    """Return median and 95 % interval from order statistics; min and max if n is small.

    Raises:
        ValueError: there is no value.
    """
    if not seconds:
        raise ValueError("a summary needs at least one value")
    ordered = sorted(seconds)
    n = len(ordered)
    # P(the k smallest all lie below the median) is binomial; cut half the risk on each side.
    rank = int(stats.binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    rank = max(0, min(rank - 1, (n - 1) // 2))
    return Summary(statistics.median(ordered), ordered[rank], ordered[n - 1 - rank], n)


def paired_ratio(seconds: Sequence[float], reference: Sequence[float]) -> Summary:
    """Return the ratio of two samples that were taken in turn, from the ratio of each pair.

    Whatever slows the machine down for a while slows both times of a pair, so the ratios of pairs
    tell more than the ratio of the medians.

    Raises:
        ValueError: the samples differ in length, or are empty.
    """
    return summarize([a / b for a, b in zip(seconds, reference, strict=True)])


def is_lower(challenger: Sequence[float], incumbent: Sequence[float]) -> bool:
    """Whether the challenger's median is below the incumbent's by more than :data:`MARGIN`."""
    if not challenger or not incumbent:
        return False
    return statistics.median(challenger) < (1 - MARGIN) * statistics.median(incumbent)


def is_faster(challenger: Sequence[float], incumbent: Sequence[float]) -> bool:
    """Whether the challenger beats the incumbent by more than the noise.

    The test: the challenger's median is below the incumbent's by more than :data:`MARGIN`,
    and a one-sided Mann-Whitney U test on the raw repetitions rejects "not faster" at
    :data:`SIGNIFICANCE`. Three repetitions on each side can never pass it: the chance that all
    of one are below all of the other is 1 in 20. For four it is 1 in 70.
    """
    if not is_lower(challenger, incumbent):
        return False
    test = stats.mannwhitneyu(challenger, incumbent, alternative="less")
    return round(float(test.pvalue), 9) < SIGNIFICANCE  # 1/20 is not 0.05 in floating point
