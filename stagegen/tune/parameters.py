"""Tunes the parameters of one algorithm at one size, before it races against the others.

Faraj 2006, §4.1.1.3: a linear search of one parameter after the other, as if they were independent.
Where a range is long, the search is a coarse one first, and then linear around the best. Where
calls are long, it is local, from the value of the size before. Where they take seconds, that value
stays. Some sizes are looked at only for the sake of larger ones. There, of several numbers of bytes
that take the same time, the largest is taken, because the best segment grows with the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stagegen.catalogue import Algorithm, Parameter
from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import MARGIN
from stagegen.tune.candidates import with_value
from stagegen.tune.field import LONG_SECONDS
from stagegen.tune.race import SHORT_SECONDS, decisive
from stagegen.tune.refine import between, coarse

#: Repetitions of short calls with each value; longer ones have one look, and the two best have two.
#: If calls are long, only other values than the algorithm's own are looked at, once.
REPETITIONS = 2

#: An algorithm that was tuned before tries only the next values in either direction if a call takes
#: longer than LOCAL_SECONDS, and goes on while that pays. It tries none if a call takes longer than
#: KEPT_SECONDS; one that was not tuned before tries the next values then.
LOCAL_SECONDS, KEPT_SECONDS = 0.02, 1.0


def choices(algorithm: Algorithm, size: int, ranks: int) -> list[Parameter]:
    """Return the parameters with more than one value that makes a difference there."""
    return [p for p in algorithm.parameters if len(p.values_at(size, ranks)) > 1]


@dataclass(frozen=True)
class Tuner:
    """Tunes parameters on a source of measurements.

    Attributes:
        source: of the measurements.
        scout: returns the request for one look at candidates at a size.
        size: in bytes.
        ranks: of the communicator.
        late: the most seconds by which ranks come late to a call.
        for_larger: whether the size is looked at for the sake of larger ones.
    """

    source: Source
    scout: Callable[[int, tuple[Candidate, ...]], Request]
    size: int
    ranks: int
    late: float = 0.0
    for_larger: bool = False

    def tune(
        self, algorithm: Algorithm, best: Candidate, seconds: float, *, is_first: bool
    ) -> tuple[Candidate, list[float]]:
        """Try values of one parameter after the other.

        Args:
            algorithm: one that has several values of some parameter there.
            best: the candidate to improve.
            seconds: that it takes.
            is_first: whether it was not tuned at any size before.

        Returns:
            The best candidate, and its measured seconds; none if nothing was tried.
        """
        times: list[float] = []
        if not is_first and seconds + self.late > KEPT_SECONDS:
            return best, times
        local = seconds + self.late > (KEPT_SECONDS if is_first else LOCAL_SECONDS)
        for parameter in choices(algorithm, self.size, self.ranks):
            values = parameter.values_at(self.size, self.ranks)
            own = dict(best.parameters)[parameter.name]
            fastest = seconds
            tried: tuple[int, ...] = (own,)
            more = _beside(values, tried, own) if local else coarse(values)
            while more:
                tried += more
                found = self._time(best, parameter.name, more, seconds)
                fastest = min(fastest, *map(min, found.values()))
                best = self._best_of(best, parameter, found, fastest)
                times = found[best]
                seconds = min(times)
                own = dict(best.parameters)[parameter.name]
                more = _beside(values, tried, own) if local else between(values, tried, own)
        return best, times

    def _time(
        self, best: Candidate, name: str, values: Iterable[int], seconds: float
    ) -> dict[Candidate, list[float]]:
        """Return the seconds of ``best`` with its own and with other values of a parameter."""
        own = dict(best.parameters)[name]
        lasts = seconds + self.late
        is_short, is_long = lasts < SHORT_SECONDS, lasts > LONG_SECONDS
        tried = sorted({*values} - {own} if is_long else {own, *values})
        everyone = tuple(with_value(best, name, value) for value in tried)
        times: dict[Candidate, list[float]] = {best: [seconds]} if is_long else {}
        if not everyone:
            return times
        request = self.scout(self.size, everyone)
        if is_short:
            request = decisive(request, seconds, REPETITIONS)
        for candidate, more in self.source.measure(request).by_candidate().items():
            times[candidate] = list(more)
        quickest = _quickest(times)
        if not is_short and not is_long and quickest != best:
            both = replace(request, candidates=(quickest, best))
            for candidate, more in self.source.measure(both).by_candidate().items():
                times[candidate] += more
        return times

    def _best_of(
        self,
        best: Candidate,
        parameter: Parameter,
        times: Mapping[Candidate, Sequence[float]],
        fastest: float,
    ) -> Candidate:
        """Return the candidate that replaces ``best``, or ``best``.

        Args:
            best: the candidate so far.
            parameter: the one whose values were tried.
            times: seconds of ``best`` and of the candidates with these values.
            fastest: the least seconds with any value of the parameter so far.
        """
        if self.for_larger and parameter.in_bytes:
            as_fast = [c for c in times if min(times[c]) <= (1 + MARGIN) * fastest]
            return max(as_fast, key=lambda c: dict(c.parameters)[parameter.name], default=best)
        quickest = _quickest(times)
        return quickest if min(times[quickest]) < (1 - MARGIN) * min(times[best]) else best


def _quickest(times: Mapping[Candidate, Sequence[float]]) -> Candidate:
    """Return the candidate with the least seconds, the first one if there are several."""
    return min(sorted(times), key=lambda candidate: min(times[candidate]))


def _beside(values: Sequence[int], tried: Sequence[int], own: int) -> tuple[int, ...]:
    """Return the values next to one that were not tried, ascending."""
    place = values.index(own)
    return tuple(v for v in values[max(0, place - 1) : place + 2] if v not in tried)
