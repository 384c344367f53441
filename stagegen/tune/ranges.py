"""From measured numbers of ranks to all: which measurements serve a number that was not measured.

The measured number that is nearest by ratio serves (the smaller of two equally near ones), up to a
factor of :data:`REACH` in either direction. Beyond that nothing is known, and the native routine
serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isqrt

from stagegen.tune.decision import GENERIC, NATIVE_CANDIDATE, ONE_HOST, Rule, Table

#: The largest factor, up or down, from a measured number of ranks to one that it decides for.
REACH = 2


@dataclass(frozen=True)
class Range:
    """Numbers of ranks from ``first`` to ``last``, both included; None means no end.

    Attributes:
        measured: the number of ranks whose measurements serve them; None for the native routine.
    """

    first: int
    last: int | None
    measured: int | None


def ranges(measured: Iterable[int]) -> tuple[Range, ...]:
    """Return disjoint ranges, ascending, of all numbers from 1 upwards.

    Args:
        measured: numbers of ranks, of at least 1.
    """
    return tuple(_without_gaps(_near(sorted(set(measured)))))


def _near(measured: list[int]) -> Iterator[Range]:
    """Yield for each measured number the numbers that are nearest to it, within reach."""
    if not measured:
        return
    between = [isqrt(low * high) for low, high in pairwise(measured)]
    firsts = [1, *(last + 1 for last in between)]
    lasts = [*between, None]
    for count, first, last in zip(measured, firsts, lasts, strict=True):
        reach = count * REACH
        yield Range(
            max(first, -(-count // REACH)), reach if last is None else min(last, reach), count
        )


def _without_gaps(near: Iterable[Range]) -> Iterator[Range]:
    """Yield the ranges, and between them those of which nothing is known."""
    begin = 1
    for one in near:
        if begin < one.first:
            yield Range(begin, one.first - 1, None)
        yield one
        begin = (one.last or one.first) + 1
    yield Range(begin, None, None)


def of_all_ranks(collective: str, measured: Sequence[Table]) -> Iterator[Table]:
    """Yield the tables of a collective for any number of ranks, the most special ones first.

    Args:
        collective: which one.
        measured: tables for exactly the measured numbers of ranks.
    """
    yield from (table for table in measured if table.communicator not in GENERIC)
    for kind in GENERIC:
        of_kind = {table.ranks: table for table in measured if table.communicator == kind}
        if kind == ONE_HOST and not of_kind:
            continue
        for one in ranges(table.ranks_from for table in of_kind.values()):
            if one.measured is None:
                native = (Rule(0, NATIVE_CANDIDATE),)
                yield Table(collective, kind, None, native, one.first, one.last)
            else:
                table = of_kind[one.measured]
                yield replace(table, ranks_from=one.first, ranks_to=one.last)
