"""Predicts the times of algorithms at the next size from those at the sizes before.

A call of n bytes takes about α + βn. Each algorithm's α and β follow from its last two sizes. What
is certain is less: more bytes take more time, and at least as much more as the lower bound grows.
The bound is of the links' nominal rates. If a machine is faster than these, the bound is scaled
down to what was measured.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Mapping

#: Lines rule out candidates up to this factor beyond the last size; farther, only what is certain
#: does: protocols change between short and long messages, and slopes with them.
NEAR = 8

#: The error of predictions, as a share, is taken for at least the first and at most the second.
ERROR_LEAST, ERROR_MOST = 0.05, 0.4

#: How many of the last predictions tell the error.
REMEMBERED = 60


class Prediction:
    """The times of the algorithms of one collective.

    Args:
        bound: the lower bound in seconds for a size in bytes.
    """

    def __init__(self, bound: Callable[[int], float]):
        self._bound = bound
        self._holds = 1.0
        self._last = 0
        self._seen: dict[str, list[tuple[int, float]]] = {}
        self._errors: deque[float] = deque(maxlen=REMEMBERED)

    def observe(self, size: int, seconds: Mapping[str, float]) -> None:
        """Take in the times of algorithms at the next larger size."""
        bound = self._bound(size)
        self._last = size
        for name, time in seconds.items():
            expected = self.expected(name, size)
            if expected is not None:
                self._errors.append(abs(time / expected - 1))
            self._seen.setdefault(name, []).append((size, time))
            if bound > 0:
                self._holds = min(self._holds, time / bound)

    def is_fresh(self, name: str) -> bool:
        """Whether an algorithm was seen at the last size; predictions from farther are hopes."""
        return name in self._seen and self._seen[name][-1][0] == self._last

    @property
    def error(self) -> float:
        """The share by which predictions were off, for three of four."""
        known = statistics.quantiles(self._errors, n=4)[2] if len(self._errors) > 3 else ERROR_MOST
        return min(ERROR_MOST, max(ERROR_LEAST, known))

    def expected(self, name: str, size: int) -> float | None:
        """Return the predicted seconds; None if the algorithm was not seen yet."""
        if name not in self._seen:
            return None
        last, seconds = self._seen[name][-1]
        return seconds + max(self._slope(name) * (size - last), self._growth(last, size))

    def least(self, name: str, size: int) -> float:
        """Return the predicted seconds less their error; 0 if the algorithm was not seen yet."""
        if name not in self._seen:
            return 0.0
        last, seconds = self._seen[name][-1]
        certain = (1 - self.error) * seconds + self._growth(last, size)
        line = seconds + self._slope(name) * (size - last)
        return max(certain, (1 - self.error) * line if size <= NEAR * last else 0.0)

    def is_above(self, name: str, size: int, seconds: float) -> bool:
        """Whether a time is above its prediction by more than the error, or has none."""
        expected = self.expected(name, size)
        return expected is None or seconds > (1 + self.error) * expected

    def _slope(self, name: str) -> float:
        """Return the seconds per byte between the last two sizes."""
        if len(self._seen[name]) < 2:
            return 0.0
        (low, before), (high, after) = self._seen[name][-2:]
        return max(0.0, (after - before) / (high - low))

    def _growth(self, low: int, high: int) -> float:
        """Return by how many seconds the lower bound grows."""
        return self._holds * max(0.0, self._bound(high) - self._bound(low))
