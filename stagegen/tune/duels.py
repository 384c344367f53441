"""Duels: two candidates timed in turn at one size, by measurements that served no choice before."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from stagegen.measure.measurer import Source
from stagegen.measure.records import Candidate, Request
from stagegen.measure.statistics import is_faster
from stagegen.tune.race import SETTLE_SECONDS, decisive

#: Repetitions of each of the two: of calls that take less than SETTLE_SECONDS, and of longer ones.
#: Short calls vary by more than what is at stake, and cost next to nothing.
SHORT_REPETITIONS, LONG_REPETITIONS = 10, 4

Times = dict[Candidate, tuple[float, ...]]


@dataclass(frozen=True)
class Duels:
    """The duels of one collective, each fought once.

    Attributes:
        source: of the measurements.
        scout: returns the request for one look at candidates at a size.
        progress: told of every duel.
    """

    source: Source
    scout: Callable[[int, tuple[Candidate, ...]], Request]
    progress: Callable[[str], None]
    _fought: dict[tuple[int, Candidate, Candidate], Times] = field(default_factory=dict)

    def is_faster(self, size: int, challenger: Candidate, holder: Candidate) -> bool:
        """Whether a candidate beats another by more than the noise.

        Raises:
            MeasurementError: the duel failed, or the log lacks it.
        """
        times = self._times(size, holder, challenger)
        return is_faster(times[challenger], times[holder])

    def keeps_up(self, size: int, holder: Candidate, challenger: Candidate) -> bool:
        """Whether the challenger has no lower median.

        Raises:
            MeasurementError: the duel failed, or the log lacks it.
        """
        times = self._times(size, challenger, holder)
        return statistics.median(times[holder]) <= statistics.median(times[challenger])

    def _times(self, size: int, first: Candidate, second: Candidate) -> Times:
        if (size, first, second) not in self._fought:
            request = self.scout(size, (first, second))
            self.progress(f"{request.collective} {size} B: {first.spec} or {second.spec}")
            fastest = min(map(min, self.source.measure(request).seconds))
            short = fastest < SETTLE_SECONDS
            request = decisive(request, fastest, SHORT_REPETITIONS if short else LONG_REPETITIONS)
            self._fought[size, first, second] = self.source.measure(request).by_candidate()
        return self._fought[size, first, second]
