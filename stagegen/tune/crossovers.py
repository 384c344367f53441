"""From choices at the measured sizes to rules: where between two sizes the choice changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from stagegen.measure.measurer import Source
from stagegen.measure.records import Candidate, Request
from stagegen.measure.statistics import is_faster
from stagegen.tune.choose import crossover
from stagegen.tune.decision import Rule
from stagegen.tune.race import ROUNDS, decisive

#: Repetitions of two candidates that were timed in turn.
Times = Mapping[Candidate, tuple[float, ...]]


@dataclass(frozen=True)
class Crossovers:
    """Finds the crossovers of one collective by duels, each measured once.

    Attributes:
        source: of the measurements.
        scout: returns the request for one look at candidates at a size.
        handles: whether a candidate can do messages of a size.
        progress: told of every duel.
    """

    source: Source
    scout: Callable[[int, tuple[Candidate, ...]], Request]
    handles: Callable[[Candidate, int], bool]
    progress: Callable[[str], None]
    _duels: dict[tuple[int, Candidate, Candidate], Times] = field(default_factory=dict)

    def rules(self, choices: Mapping[int, Candidate]) -> Iterator[Rule]:
        """Yield the rules for what was chosen at each size.

        Raises:
            MeasurementError: a duel failed, or the log lacks it.
        """
        sizes = list(choices)
        yield Rule(0, choices[sizes[0]])
        for low, high in pairwise(sizes):
            if choices[low] != choices[high]:
                interval = self._between(low, high, choices[low], choices[high])
                yield Rule(interval[1], choices[high], interval)

    def _between(self, low: int, high: int, lower: Candidate, upper: Candidate) -> tuple[int, int]:
        def above_wins(size: int) -> bool:
            for candidate, wins in ((lower, True), (upper, False)):
                if not self.handles(candidate, size):
                    return wins
            times = self._duel(size, lower, upper)
            return is_faster(times[upper], times[lower])

        return crossover(low, high, above_wins)

    def _duel(self, size: int, lower: Candidate, upper: Candidate) -> Times:
        """Time two candidates in turn."""
        if (size, lower, upper) not in self._duels:
            request = self.scout(size, (lower, upper))
            self.progress(f"{request.collective} {size} B: {lower.spec} or {upper.spec}")
            fastest = min(map(min, self.source.measure(request).seconds))
            request = decisive(request, fastest, ROUNDS[0])
            self._duels[size, lower, upper] = self.source.measure(request).by_candidate()
        return self._duels[size, lower, upper]
