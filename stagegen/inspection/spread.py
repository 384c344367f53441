"""Distributions of times, as in Table 2 of Bongo et al."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Percentiles of Table 2.
_PERCENTILES = (10, 90)


@dataclass(frozen=True)
class Spread:
    """A distribution of times in seconds; ``low`` and ``high`` are percentiles 10 and 90."""

    mean: float
    median: float
    stdev: float
    least: float
    greatest: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the distribution of values; its deviation is of all of them, not of a sample."""
        array = np.asarray(values, float)
        low, high = np.percentile(array, _PERCENTILES)
        return cls(
            float(array.mean()),
            float(np.median(array)),
            float(array.std()),
            float(array.min()),
            float(array.max()),
            float(low),
            float(high),
        )

    def to_json(self) -> dict[str, float]:
        """Return all values, in seconds."""
        return {
            "mean_s": self.mean,
            "median_s": self.median,
            "stdev_s": self.stdev,
            "min_s": self.least,
            "max_s": self.greatest,
            "p10_s": self.low,
            "p90_s": self.high,
        }
