"""The values of a parameter that are worth trying, where they depend on the ranks and the size.

Faraj 2006, §4.1.1.3: N of "N MPI barriers" is from 1 to p - 2, a segment has 512 bytes or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from stagegen.catalogue.formula import Formula

#: The largest value: an int in C.
INT_MOST = 2**31 - 1

#: The names that the end of a range may use: bytes of a message, and ranks.
NAMES = ("n", "p")


@dataclass(frozen=True)
class ValueRange:
    """Values from ``first`` on, until one reaches ``until``; the first always belongs to it.

    Attributes:
        first: the least value.
        until: a formula of :data:`NAMES`; no value but the last is as large.
        times: each value is so many times the one before; if 1, it is one more.
    """

    first: int
    until: Formula
    times: int = 1

    def at(self, size: int, ranks: int) -> tuple[int, ...]:
        """Return the values for messages of ``size`` bytes on ``ranks`` ranks, ascending."""
        return _between(self, self._end(size, ranks))

    @property
    def most(self) -> int:
        """The largest value on any number of ranks, at any size."""
        end = self._end(inf, inf)
        return max(self.first, end) if self.times == 1 else _between(self, end)[-1]

    def holds(self, value: int) -> bool:
        """Whether it is a value on some number of ranks, at some size."""
        if not self.first <= value <= self.most:
            return False
        return self.times == 1 or value in _between(self, value)

    @property
    def text(self) -> str:
        """The values in words, such as ``512, 1024, 2048, … up to n``."""
        third = _next(self, _next(self, self.first))
        first = ", ".join(map(str, _between(self, third)))
        return f"{first}, … up to {self.until.text}"

    def _end(self, size: float, ranks: float) -> int:
        return int(min(INT_MOST, self.until.value({"n": size, "p": ranks})))


@lru_cache(maxsize=1024)
def _between(values: ValueRange, end: int) -> tuple[int, ...]:
    """Return the values of a range until one reaches ``end``."""
    return tuple(_until(values, end))


def _until(values: ValueRange, end: int) -> Iterator[int]:
    value = values.first
    while value < end and _next(values, value) <= INT_MOST:
        yield value
        value = _next(values, value)
    yield value


def _next(values: ValueRange, value: int) -> int:
    return value + 1 if values.times == 1 else value * values.times


def sample(values: Sequence[int]) -> tuple[int, ...]:
    """Return some of many values, in order: both ends, and ever fewer of those between.

    From the first on, the distance to it doubles. So a routine meets the shortest and the longest
    of what it may be given, and powers of two and others between.
    """
    places = {0, len(values) - 1}
    distance = 1
    while distance < len(values):
        places.add(distance)
        distance *= 2
    return tuple(values[place] for place in sorted(places))
