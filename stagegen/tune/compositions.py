"""Compositions: candidates that are made of calls of other collectives, or of shorter calls.

All collectives are searched without compositions first. Then the routines that serve the parts are
known, so the order of the collectives does not matter. No part is a composition itself. The MPI
library serves parts of a collective that is not tuned. How long they take is unknown, but not less
than their lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from stagegen.catalogue import Algorithm, Part
from stagegen.measure.records import Bound, Candidate
from stagegen.tune.candidates import handles, part_size
from stagegen.tune.choose import median
from stagegen.tune.decision import NATIVE_CANDIDATE, Table
from stagegen.tune.plan import Outcome

#: The lower bound in seconds of a call, by communicator, collective and size in bytes; or 0.
LeastSeconds: TypeAlias = Callable[[str, str, int], float]

#: A composition is not measured if its parts, timed separately, took together more than TOO_SLOW
#: times as long as the routine that serves there without compositions. For parts that were not
#: timed, their lower bound counts.
TOO_SLOW = 1.2


class Compositions:
    """Binds parts to the routines that searches without compositions chose.

    Args:
        outcomes: of these searches.
        least: the lower bounds of calls.
    """

    def __init__(self, outcomes: Iterable[Outcome], least: LeastSeconds):
        self._least = least
        self._outcomes = {(one.collective, one.communicator): one for one in outcomes}

    def of(
        self,
        outcome: Outcome,
        compositions: Sequence[Algorithm],
        algorithms: Mapping[str, Algorithm],
    ) -> dict[int, dict[Candidate, float]]:
        """Return the compositions that may win, at each size, with the seconds of timed parts.

        A composition is bound once for each kind of tables: a routine that serves a part on
        the whole cluster may not serve it on other communicators.

        Args:
            outcome: of the collective on a communicator.
            compositions: algorithms with parts.
            algorithms: these and those that may serve parts, as for
                :func:`stagegen.tune.candidates.algorithms_of`.
        """
        return {
            size: {
                candidate: seconds
                for table in outcome.tables
                for algorithm in compositions
                for candidate, seconds in self._of_table(outcome, table, algorithm, size)
                if handles(candidate, size, table.ranks or 1, algorithms)
            }
            for size in outcome.samples
        }

    def _of_table(
        self, outcome: Outcome, table: Table, algorithm: Algorithm, size: int
    ) -> Iterator[tuple[Candidate, float]]:
        """Yield the composition for a kind of communicators, unless its parts are too slow.

        The seconds are those of all timed parts together.
        """
        bound = tuple(self._bind(outcome, table, part, size) for part in algorithm.parts)
        timed = sum(self._seconds(outcome, table, part, size) for part in algorithm.parts)
        others = sum(self._least_of(outcome, table, part, size) for part in algorithm.parts)
        if timed + others <= TOO_SLOW * _seconds_of(outcome, table, size):
            yield Candidate(algorithm.name, (), bound), timed

    def _bind(self, outcome: Outcome, table: Table, part: Part, size: int) -> Bound:
        """Return the routine of a part: what the search of its collective chose at its size."""
        found = self._table_of(outcome, table, part)
        if found is None:
            return Bound(part.collective, NATIVE_CANDIDATE)
        return Bound(part.collective, found.choice(part_size(part, size, table.ranks or 1)))

    def _seconds(self, outcome: Outcome, table: Table, part: Part, size: int) -> float:
        """Return the seconds of a part: by the line through the measured sizes around its own.

        For a collective that is not tuned, nothing is known: 0.
        """
        found = self._table_of(outcome, table, part)
        if found is None:
            return 0.0
        measured = self._outcomes[part.collective, outcome.communicator]
        times = {one: _seconds_of(measured, found, one) for one in sorted(measured.samples)}
        return on_line(times, part_size(part, size, table.ranks or 1))

    def _least_of(self, outcome: Outcome, table: Table, part: Part, size: int) -> float:
        """Return the least seconds of a part of a collective that is not tuned; 0 if it is.

        Links may be faster than their nominal rates. So if the call itself took less than its own
        bound, the bound of the part is scaled down by the same factor.
        """
        if self._table_of(outcome, table, part) is not None:
            return 0.0
        own = self._least(outcome.communicator, outcome.collective, size)
        served = _seconds_of(outcome, table, size)
        kept = served / own if served < own else 1.0
        part_bytes = part_size(part, size, table.ranks or 1)
        return kept * self._least(outcome.communicator, part.collective, part_bytes)

    def _table_of(self, outcome: Outcome, table: Table, part: Part) -> Table | None:
        """Return the table of a part's collective for the same communicators."""
        found = self._outcomes.get((part.collective, outcome.communicator))
        tables = found.tables if found else ()
        return next((one for one in tables if one.communicator == table.communicator), None)


def _seconds_of(outcome: Outcome, table: Table, size: int) -> float:
    """Return the median seconds of the routine that serves a measured size."""
    return median(outcome.samples[size][table.choice(size)])


def on_line(times: Mapping[int, float], size: int) -> float:
    """Return the seconds at a size by the line through two of the times: around it, or the last.

    Below the first size, a call takes no longer than there, but how long is unknown: 0 is the
    least.

    Args:
        times: seconds by size in bytes, ascending; at least one.
        size: in bytes.
    """
    if size in times:
        return times[size]
    sizes = list(times)
    if size < sizes[0]:
        return 0.0
    if len(sizes) == 1:
        return times[sizes[0]]
    place = min(sum(one < size for one in sizes), len(sizes) - 1)
    low, high = sizes[place - 1], sizes[place]
    slope = (times[high] - times[low]) / (high - low)
    return max(times[low], times[low] + slope * (size - low))
