"""Tunes the parameters of one algorithm at one size, before it races against the others.

Faraj 2006, §4.1.1.3: a linear search of one parameter after the other, as if they were independent.
Where a range is long, the search is a coarse one first, and then linear around the best. Where
calls are long, it is local, from the value of the size before. Where they take seconds, that value
stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from stagegen.catalogue import Algorithm, Parameter
from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import MARGIN
from stagegen.tune.candidates import useful_values, with_value
from stagegen.tune.race import SHORT_SECONDS, decisive
from stagegen.tune.refine import between, coarse

#: Repetitions of short calls with each value; longer ones have one look, and the two best have two.
REPETITIONS = 3

#: An algorithm that was tuned before tries only the next values in either direction if a call takes
#: longer than LOCAL_SECONDS. It tries none if a call takes longer than KEPT_SECONDS.
LOCAL_SECONDS, KEPT_SECONDS = 0.1, 2.0


def choices(algorithm: Algorithm, size: int, ranks: int) -> list[Parameter]:
    """Return the parameters with more than one value that makes a difference there."""
    return [p for p in algorithm.parameters if len(useful_values(p, size, ranks)) > 1]


@dataclass(frozen=True)
class Tuner:
    """Tunes parameters on a source of measurements.

    Attributes:
        source: of the measurements.
        scout: returns the request for one look at candidates at a size.
        size: in bytes.
        ranks: of the communicator.
    """

    source: Source
    scout: Callable[[int, tuple[Candidate, ...]], Request]
    size: int
    ranks: int

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
        if not is_first and seconds > KEPT_SECONDS:
            return best, times
        for parameter in choices(algorithm, self.size, self.ranks):
            name, values = parameter.name, useful_values(parameter, self.size, self.ranks)
            own = dict(best.parameters)[name]
            if not is_first and seconds > LOCAL_SECONDS:
                place = values.index(own)
                near = values[max(0, place - 1) : place + 2]
                best, times = self._best_of(best, name, near, seconds)
                continue
            tried: tuple[int, ...] = ()
            more = tuple(sorted({own, *coarse(values)}))
            while more:
                tried += more
                best, times = self._best_of(best, name, more, seconds)
                more = between(values, tried, dict(best.parameters)[name])
        return best, times

    def _best_of(
        self, best: Candidate, name: str, values: Iterable[int], seconds: float
    ) -> tuple[Candidate, list[float]]:
        """Return the candidate that replaces ``best``, or ``best``, and its seconds."""
        own = dict(best.parameters)[name]
        everyone = tuple(with_value(best, name, value) for value in sorted({own, *values}))
        request = self.scout(self.size, everyone)
        is_short = seconds < SHORT_SECONDS
        if is_short:
            request = decisive(request, seconds, REPETITIONS)
        times = {c: list(s) for c, s in self.source.measure(request).by_candidate().items()}
        quickest = min(sorted(times), key=lambda candidate: min(times[candidate]))
        if not is_short and quickest != best:
            both = replace(request, candidates=(quickest, best))
            for candidate, more in self.source.measure(both).by_candidate().items():
                times[candidate] += more
        if min(times[quickest]) < (1 - MARGIN) * min(times[best]):
            best = quickest
        return best, times[best]
