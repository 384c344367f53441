"""What a choice may lose: estimates from what is known of a size and of the sizes beside it.

The loss of a choice is its time over the time of the best candidate, less 1. What may be lost is
the largest loss that cannot be excluded:

- Where the launches timed the choice, its median is at most the upper end of its 95 % interval, and
  each rival's at least the lower end of its own. A few hiccups can be that upper end. So if less
  than :data:`stagegen.tune.launches.DISTURBED_SHARE` of the times are odd, these do not count.
- A time that only scouting saw is known to within :data:`LOOK`, or to within :data:`NOISES` times
  the difference between two looks at one candidate, whichever is more.
- At a size that was not looked at, a line through the times at the sizes on both sides tells the
  time of each candidate that both have. The model of :mod:`stagegen.tune.prediction` tells the
  times of the others. Both hold to within the error of the search's predictions.
- Where nothing was measured, the native routine serves, and the loss is unknown.

Values of parameters that were not tried at a size take no part. Those that were tried at other
sizes do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import summarize
from stagegen.tune.decision import Estimate
from stagegen.tune.field import best_of_algorithms, least
from stagegen.tune.launches import DISTURBED, DISTURBED_SHARE
from stagegen.tune.point import Point, noise_of
from stagegen.tune.prediction import ERROR_SECONDS, Prediction

#: A look tells a time to within this share at the best, or this many times the noise.
LOOK, NOISES = 0.05, 3

#: The factor that stands for a loss that is unknown. It only decides what comes first.
UNKNOWN = 2.0

#: The bases of estimates, the surest first.
LAUNCHES, SCOUTING, NEIGHBOURS, NOTHING = "launches", "scouting", "neighbours", "nothing"


@dataclass(frozen=True)
class Stakes:
    """What the choices of one search may lose.

    Attributes:
        points: what is known of each size.
        bound: the lower bound in seconds for a size.
        below: returns the prediction for a size from the smaller ones.
        belongs: whether a candidate competes; for one kind of tables, not all do.
    """

    points: Mapping[int, Point]
    bound: Callable[[int], float]
    below: Callable[[int], Prediction]
    belongs: Callable[[Candidate], bool] = lambda _: True

    def estimate(self, size: int, choice: Candidate) -> Estimate:
        """Return what may be lost at a size if ``choice`` serves."""
        if size in self.points:
            return self._looked_at(size, choice)
        if not self.points:
            return Estimate(size, None, NOTHING)
        return Estimate(size, self._between(size, choice), NEIGHBOURS)

    def factor(self, size: int, choice: Candidate) -> float:
        """Return what may be lost as a factor; :data:`UNKNOWN` where it is unknown."""
        loss = self.estimate(size, choice).loss
        return UNKNOWN if loss is None else 1 + loss

    def _looked_at(self, size: int, choice: Candidate) -> Estimate:
        point = self.points[size]
        off = self._off(point)
        known = {c: _interval(point, c, off) for c in point.seen if self.belongs(c)}
        if choice not in known:  # it serves from another size on, and cannot do this one
            return Estimate(size, None, NOTHING)
        rivals = [low for c, (low, _) in known.items() if c != choice]
        rivals += self._not_looked_at(size, point)
        best = max(min(rivals, default=math.inf), self.bound(size))
        basis = LAUNCHES if len(point.launches) > 1 else SCOUTING
        if best <= 0:  # looks differ by so much that a rival may take no time at all
            return Estimate(size, None, basis)
        return Estimate(size, max(0.0, known[choice][1] / best - 1), basis)

    def _not_looked_at(self, size: int, point: Point) -> list[float]:
        """Return the least times of algorithms that were seen at smaller sizes only."""
        prediction = self.below(size)
        there = {candidate.algorithm for candidate in point.seen}
        seen = {c.algorithm for p in self.points.values() for c in p.seen if self.belongs(c)}
        least_times = (prediction.least(name, size) for name in sorted(seen - there))
        return [seconds for seconds in least_times if seconds > 0]

    def _off(self, point: Point) -> float:
        alike = (p for p in self.points.values() if p.is_long == point.is_long)
        return max(LOOK, NOISES * noise_of(alike))

    def _between(self, size: int, choice: Candidate) -> float:
        """Return what may be lost at a size that was not looked at."""
        times = dict(self._expected(size))
        best = max(min((low for low, _ in times.values()), default=0.0), self.bound(size))
        high = times[choice.algorithm][1] if choice.algorithm in times else 0.0
        return max(0.0, high / best - 1) if high and best else UNKNOWN - 1

    def _expected(self, size: int) -> Iterator[tuple[str, tuple[float, float]]]:
        """Yield for each algorithm the interval of its time at a size that was not looked at."""
        low = max((s for s in self.points if s < size), default=None)
        high = min((s for s in self.points if s > size), default=None)
        prediction = self.below(size)
        above = best_of_algorithms(self._least(high)) if high is not None else {}
        below = best_of_algorithms(self._least(low)) if low is not None else {}
        for name in sorted({*above, *below}):
            if low is not None and high is not None and name in above and name in below:
                share = (size - low) / (high - low)
                time = below[name] + share * (above[name] - below[name])
                yield name, (time * (1 - prediction.error), time * (1 + prediction.error))
            elif name in below:
                yield name, (prediction.least(name, size), prediction.most(name, size))
            elif low is None:
                # The time falls with the size, at least as much as the bound does, or not at all.
                yield name, (above[name] / UNKNOWN, above[name])

    def _least(self, size: int) -> dict[Candidate, float]:
        seen = least(self.points[size].seen)
        return {c: seconds for c, seconds in seen.items() if self.belongs(c)}


def _interval(point: Point, candidate: Candidate, off: float) -> tuple[float, float]:
    """Return the ends of what the time of a candidate may be."""
    if pooled := point.pooled(candidate):
        return _interval_in_launches(pooled)
    seconds = min(*point.seen[candidate], *point.tried.get(candidate, ()), math.inf)
    error = max(off * seconds, ERROR_SECONDS)
    return max(0.0, seconds - error), seconds + error


def _interval_in_launches(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the median's interval, without times of hiccups if these are few."""
    summary = summarize(seconds)
    usual = [one for one in seconds if one <= DISTURBED * summary.median]
    if len(seconds) - len(usual) >= DISTURBED_SHARE * len(seconds):
        return summary.low, summary.high
    return summary.low, min(summary.high, max(usual))
