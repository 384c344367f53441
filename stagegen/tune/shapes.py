"""Shapes of communicators: on how many hosts the ranks are, and how many are on each.

Rules are keyed by shapes, because 32 ranks on 2 hosts and 32 ranks on 32 hosts have little in
common: the links between hosts carry other loads, and ranks of one host share memory.

If hosts have different numbers of ranks, the mean counts, rounded up. Hosts times ranks per host is
then as near to the number of ranks as it can be, and the steps and bytes of a collective follow
from that number. The shape has 1 rank per host only if no host has several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt, log


@dataclass(frozen=True, order=True)
class Shape:
    """How the ranks of a communicator are spread.

    Attributes:
        hosts: on how many hosts they are.
        ranks_per_host: how many are on each: the mean, rounded up.
    """

    hosts: int
    ranks_per_host: int

    @classmethod
    def of(cls, hosts: int, ranks: int) -> Shape:
        """Return the shape of ``ranks`` ranks on ``hosts`` hosts."""
        return cls(hosts, -(-ranks // hosts))

    @property
    def ranks(self) -> int:
        """How many ranks there are if all hosts have equally many."""
        return self.hosts * self.ranks_per_host

    def distance(self, other: Shape) -> tuple[float, float]:
        """Return how far two shapes are apart: by ratio in hosts, then in ranks per host."""
        per_host = abs(log(self.ranks_per_host / other.ranks_per_host))
        return abs(log(self.hosts / other.hosts)), per_host

    def __str__(self) -> str:
        return f"{self.hosts}x{self.ranks_per_host}"


@dataclass(frozen=True)
class Range:
    """Numbers from ``first`` to ``last``, both included; None means no end."""

    first: int
    last: int | None

    def __contains__(self, number: int) -> bool:
        return self.first <= number and (self.last is None or number <= self.last)

    def within(self, first: int, last: int | None) -> Range:
        """Return the part that it shares with another range; there must be one."""
        ends = [end for end in (self.last, last) if end is not None]
        return Range(max(self.first, first), min(ends, default=None))


def nearest(measured: Iterable[int]) -> Iterator[tuple[int, Range]]:
    """Yield each measured number, ascending, with the numbers that are nearest to it by ratio.

    Of two measured numbers that are equally near, the smaller one counts. The ranges are disjoint
    and hold all numbers from 1 upwards.

    Args:
        measured: numbers of at least 1.
    """
    numbers = sorted(set(measured))
    between = [isqrt(low * high) for low, high in pairwise(numbers)]
    firsts = [1, *(last + 1 for last in between)]
    lasts = [*between, None]
    for number, first, last in zip(numbers, firsts, lasts, strict=False):
        yield number, Range(first, last)


def nearest_shape(measured: Iterable[Shape], shape: Shape) -> Shape | None:
    """Return the measured shape that serves another one: the rule of the decision table.

    It is the one that is nearest by ratio in hosts, then in ranks per host. One host is nothing
    like several, and serves only one host; so there may be none.
    """
    alike = [one for one in measured if (one.hosts == 1) == (shape.hosts == 1)]
    for hosts, range_ in nearest(one.hosts for one in alike):
        if shape.hosts in range_:
            on_these = (one.ranks_per_host for one in alike if one.hosts == hosts)
            for ranks, per_host in nearest(on_these):
                if shape.ranks_per_host in per_host:
                    return Shape(hosts, ranks)
    return None
