"""Maxima of many ranges of one array at once.

A sparse table holds the maximum of every range whose length is a power of two; two of them cover
any range. Source: Bender and Farach-Colton (2000), *The LCA Problem Revisited*, section 3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


class RangeMax:
    """Answers range maxima over n values: O(n log n) to build, O(1) each."""

    def __init__(self, values: Integers):
        count = len(values)
        levels = [values]
        for level in range(1, count.bit_length()):
            # No query asks for a range that would leave the array, so its entry does not matter.
            half, below = 1 << (level - 1), levels[-1]
            row = below.copy()
            np.maximum(below[:-half], below[half:], out=row[:-half])
            levels.append(row)
        self._levels = np.array(levels)
        # The exponent e of v = m · 2^e with 1/2 ≤ m < 1 is the bit length of v.
        self._bits = np.frexp(np.arange(count + 1))[1].astype(np.int64)

    def query(self, start: Integers, stop: Integers) -> Integers:
        """Return the maximum of `values[start:stop]` for each pair; -1 for an empty range."""
        best = np.full(len(start), -1, dtype=np.int64)
        asked = np.flatnonzero(start < stop)
        first, beyond = start[asked], stop[asked]
        level = self._bits[beyond - first] - 1
        best[asked] = np.maximum(
            self._levels[level, first], self._levels[level, beyond - (1 << level)]
        )
        return best
