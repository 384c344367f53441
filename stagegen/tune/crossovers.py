"""From choices at the measured sizes to rules: where between two sizes the choice changes.

Binary search assumes one change. So the sizes between are bracketed first, an octave at a time, and
each bracket at whose ends different choices win is searched: several changes make several rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from stagegen.measure.records import Candidate
from stagegen.tune.choose import RESOLUTION, Samples, crossover, median
from stagegen.tune.decision import Rule
from stagegen.tune.duels import Duels
from stagegen.tune.purse import BudgetSpent

#: If calls take longer than this many seconds at the upper size, no duels are fought between the
#: two: the place of the crossover follows from the times at both, and costs nothing. A wrong place
#: costs little, as the two are nearly equal around it.
DUEL_SECONDS = 0.05

#: The resolution of crossovers on communicators that others tell of. If both routines can do both
#: sizes, no duels are fought there, however short the calls are.
OCTAVE = 1.0


@dataclass(frozen=True)
class Crossovers:
    """Finds the crossovers of one collective.

    Attributes:
        duels: of the collective.
        handles: whether a candidate can do messages of a size.
        gain: a smaller difference is none.
        resolution: a crossover is known when its interval is this share of its lower end.
        longest: no duels are fought if calls take longer than this many seconds at the upper size.
    """

    duels: Duels
    handles: Callable[[Candidate, int], bool]
    gain: float
    resolution: float = RESOLUTION
    longest: float = DUEL_SECONDS

    def rules(
        self, choices: Mapping[int, Candidate], samples: Mapping[int, Samples]
    ) -> Iterator[Rule]:
        """Yield the rules for the choices at each size.

        Raises:
            MeasurementError: a duel failed, or the log lacks it.
        """
        sizes = list(choices)
        yield Rule(0, choices[sizes[0]])
        for low, high in pairwise(sizes):
            lower, upper = choices[low], choices[high]
            if lower == upper:
                continue
            if median(samples[high][upper]) > self.longest and self._can_both(low, high, choices):
                first = _crossing(low, high, lower, upper, samples, self.gain)
                yield Rule(first, upper, (low, high))
                continue
            try:
                yield from list(self._between(low, high, lower, upper))
            except BudgetSpent:
                can = self._can_both(low, high, choices)
                first = _crossing(low, high, lower, upper, samples, self.gain) if can else high
                yield Rule(first, upper, (low, high))

    def _can_both(self, low: int, high: int, choices: Mapping[int, Candidate]) -> bool:
        return self.handles(choices[low], high) and self.handles(choices[high], low)

    def _between(self, low: int, high: int, lower: Candidate, upper: Candidate) -> Iterator[Rule]:
        def above_wins(size: int) -> bool:
            for candidate, wins in ((lower, True), (upper, False)):
                if not self.handles(candidate, size):
                    return wins
            return self.duels.is_faster(size, upper, lower)

        inner = [size for k in range(1, 64) if low < (size := 2 * low << (k - 1)) < high]
        wins = {low: False, **{size: above_wins(size) for size in inner}, high: True}
        for one, next_one in pairwise(wins):
            if wins[one] == wins[next_one]:
                continue
            if wins[next_one]:
                interval = crossover(one, next_one, above_wins, self.resolution)
                yield Rule(interval[1], upper, interval)
            else:
                interval = crossover(
                    one, next_one, lambda size: not above_wins(size), self.resolution
                )
                yield Rule(interval[1], lower, interval)


def _crossing(
    low: int,
    high: int,
    lower: Candidate,
    upper: Candidate,
    samples: Mapping[int, Samples],
    gain: float,
) -> int:
    """Return the first size at which the upper choice's gain counts, by lines through the times.

    If one of the two was not timed at both sizes, it is the upper size.
    """
    if upper not in samples[low] or lower not in samples[high]:
        return high
    here, there = (
        median(samples[size][upper]) - (1 - gain) * median(samples[size][lower])
        for size in (low, high)
    )
    if here <= 0:
        return low + 1
    if there >= 0:
        return high
    return min(high, max(low + 1, round(low + (high - low) * here / (here - there))))
