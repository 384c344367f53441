"""From choices at the measured sizes to rules: where between two sizes the choice changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from stagegen.measure.records import Candidate
from stagegen.tune.choose import crossover
from stagegen.tune.decision import Rule
from stagegen.tune.duels import Duels


@dataclass(frozen=True)
class Crossovers:
    """Finds the crossovers of one collective by duels.

    Attributes:
        duels: of the collective.
        handles: whether a candidate can do messages of a size.
    """

    duels: Duels
    handles: Callable[[Candidate, int], bool]

    def rules(self, choices: Mapping[int, Candidate]) -> Iterator[Rule]:
        """Yield the rules for the choices at each size.

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
            return self.duels.is_faster(size, upper, lower)

        return crossover(low, high, above_wins)
