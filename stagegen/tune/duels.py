"""Duels: two candidates timed in turn at one size, by measurements that no choice has used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import MARGIN, is_faster, is_lower
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.race import SETTLE_SECONDS, decisive

#: Repetitions of each of the two: of calls that take less than SETTLE_SECONDS, and of longer ones.
#: Short calls vary by more than the difference at stake, and cost next to nothing.
SHORT_REPETITIONS, LONG_REPETITIONS = 5, 4

#: A duel that noise leaves open goes on once, with PROLONGED times the repetitions. A false
#: difference has the probability that both tests show it.
PROLONGED = 2

Times = dict[Candidate, tuple[float, ...]]


@dataclass(frozen=True)
class Duels:
    """The duels of one collective, each fought once.

    Attributes:
        source: of the measurements.
        scout: returns the request for one look at candidates at a size.
        progress: told of every duel.
        gain: by how much of the time a challenger must be faster, as in the choice at a size.
    """

    source: Source
    scout: Callable[[int, tuple[Candidate, ...]], Request]
    progress: Callable[[str], None]
    gain: float = MARGIN
    _fought: dict[tuple[int, Candidate, Candidate], Times] = field(default_factory=dict)
    _asked: dict[tuple[int, Candidate, Candidate], Request] = field(default_factory=dict)

    def is_faster(self, size: int, challenger: Candidate, holder: Candidate) -> bool:
        """Whether a candidate beats another by more than the noise.

        Raises:
            MeasurementError: the duel failed, or the log lacks it.
        """
        times = self._times(size, holder, challenger)
        return self._beats(challenger, holder, times, (size, holder, challenger))

    def stays_faster(self, size: int, holder: Candidate, challenger: Candidate) -> bool:
        """Whether the candidate for smaller messages still beats another by more than the noise.

        Raises:
            MeasurementError: the duel failed, or the log lacks it.
        """
        times = self._times(size, holder, challenger)
        return self._beats(holder, challenger, times, (size, holder, challenger))

    def _beats(
        self, one: Candidate, other: Candidate, times: Times, key: tuple[int, Candidate, Candidate]
    ) -> bool:
        """Whether one is faster; if its lead counts but may be chance, after more repetitions."""
        # For native, any gain that shows is enough: a slower routine must not serve.
        gain = min(self.gain, MARGIN) if one == NATIVE_CANDIDATE else self.gain
        if is_lower(times[one], times[other], gain) and not is_faster(
            times[one], times[other], gain
        ):
            times = self._prolonged(*key)
        return is_faster(times[one], times[other], gain)

    def _times(self, size: int, first: Candidate, second: Candidate) -> Times:
        key = (size, first, second)
        if key not in self._fought:
            request = self.scout(size, (first, second))
            self.progress(f"{request.collective} {size} B: {first.spec} or {second.spec}")
            fastest = min(map(min, self.source.measure(request).seconds))
            short = fastest < SETTLE_SECONDS
            request = decisive(request, fastest, SHORT_REPETITIONS if short else LONG_REPETITIONS)
            self._asked[key] = request
            self._fought[key] = self.source.measure(request).by_candidate()
        return self._fought[key]

    def _prolonged(self, size: int, first: Candidate, second: Candidate) -> Times:
        """Go on with an open duel, once."""
        key = (size, first, second)
        if key in self._asked:
            request = self._asked.pop(key)
            request = replace(request, repetitions=PROLONGED * request.repetitions)
            more = self.source.measure(request).by_candidate()
            self._fought[key] = {one: self._fought[key][one] + more[one] for one in more}
        return self._fought[key]
