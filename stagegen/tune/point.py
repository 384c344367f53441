"""What is known at one size: what scouting saw, and what the launches that decide timed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as made

from stagegen.measure.records import Candidate
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.field import DEAR_SECONDS, LONG_SECONDS, Field, Sample, Times, least


@dataclass
class Point:
    """What is known at one size.

    Attributes:
        field: the candidates that were scouted, and their groups.
        seen: what looks saw of each.
        tried: the times that rank them.
        late: the most seconds by which ranks come late to a call.
        told: the algorithms that were faster than native on another communicator at such a size, if
            one of them had the best look here.
        named: the first times of the candidates that predictions named before any call of this
            size, if calls are dear and the native routine lost clearly, as it was predicted to.
        finalists: the candidates that are timed in the launches that decide.
        holders: the finalists that stay unless a difference counts: those that may be chosen at the
            neighbouring sizes, and the native routine.
        raced: the times of each finalist, by launch.
        out: finalists that are no longer timed and cannot be chosen.
        launches: the ones that are done with this size.
        ranks: what scouting saw of each finalist, the least seconds.
        settles_from: the first launch with an untimed call of the same candidate before each call,
            though calls are long, as what was called before may decide; None if there is none.
    """

    field: Field
    seen: Times
    tried: Times
    late: float = 0.0
    told: frozenset[str] = frozenset()
    named: Times = made(default_factory=dict)
    finalists: tuple[Candidate, ...] = ()
    holders: frozenset[Candidate] = frozenset()
    raced: dict[Candidate, dict[int, list[float]]] = made(default_factory=dict)
    out: set[Candidate] = made(default_factory=set)
    launches: list[int] = made(default_factory=list)
    ranks: dict[Candidate, float] = made(default_factory=dict)
    settles_from: int | None = None

    @property
    def running(self) -> tuple[Candidate, ...]:
        """The finalists that may still be chosen."""
        return tuple(candidate for candidate in self.finalists if candidate not in self.out)

    @property
    def fastest(self) -> float:
        """The least seconds that anything took."""
        return min(least(self.seen).values())

    @property
    def lasts(self) -> float:
        """The most seconds that the fastest call lasts, with the wait for late ranks."""
        return self.fastest + self.late

    def pooled(self, candidate: Candidate) -> list[float]:
        """Return the times of a finalist in all launches."""
        launches = self.raced.get(candidate, {})
        return [seconds for number in sorted(launches) for seconds in launches[number]]

    def median(self, candidate: Candidate) -> float:
        """Return the median seconds of a finalist."""
        return statistics.median(self.pooled(candidate))

    def samples(self) -> dict[Candidate, Sample]:
        """Return the sample of each candidate; before any launch, those of scouting."""
        return {candidate: self._sample(candidate) for candidate in self.seen}

    def _sample(self, candidate: Candidate) -> Sample:
        looks = tuple(self.seen[candidate])
        if not self.launches:
            return Sample(tuple(self.tried.get(candidate, looks)), candidate not in self.tried)
        if candidate not in self.raced:
            return Sample(tuple(self.tried.get(candidate, looks)), dropped=True)
        launches = {n: tuple(seconds) for n, seconds in sorted(self.raced[candidate].items())}
        pooled = tuple(self.pooled(candidate))
        rank = self.ranks.get(candidate, math.inf)
        return Sample(pooled, candidate in self.out, looks, launches, rank)

    def challenger(self, group: frozenset[Candidate]) -> Candidate | None:
        """Return the finalist of a group that is tested against the native routine first."""
        others = [c for c in self.finalists if c in group and c != NATIVE_CANDIDATE]
        return min(others, key=lambda c: (self.ranks[c], c), default=None)

    def has_led(self, candidate: Candidate) -> bool:
        """Whether a candidate led a group: in looks, in launches, or as the first to be tested.

        Others may have lost to it.
        """
        timed = {one: self.median(one) for one in self.running if one in self.raced}
        return candidate in (
            *self.field.leaders(least(self.seen)),
            *self.field.leaders(least(self.tried)),
            *self.field.leaders(timed),
            *(self.challenger(group) for group in self.field.groups),
        )

    def forget(self, candidate: Candidate) -> None:
        """Go on without a candidate; its place in the field stays."""
        del self.seen[candidate]
        for known in (self.tried, self.named, self.raced, self.ranks):
            known.pop(candidate, None)
        self.finalists = tuple(one for one in self.finalists if one != candidate)
        self.holders -= {candidate}
        self.out.discard(candidate)

    @property
    def is_told(self) -> bool:
        """Whether each group tests a challenger that was faster than native elsewhere."""
        tested = [self.challenger(group) for group in self.field.groups]
        return all(
            first is not None and first.algorithm in self.told and not first.bound
            for first in tested
        )

    @property
    def is_dear(self) -> bool:
        """Whether calls take so long that launches are for the first group alone."""
        return self.fastest > DEAR_SECONDS

    @property
    def is_long(self) -> bool:
        """Whether calls take so long that noise and hiccups are small beside them."""
        return self.fastest > LONG_SECONDS


def noise_of(points: Iterable[Point]) -> float:
    """Return by how much two looks at one candidate differ, in the median.

    It is the logarithm of their ratio, and 0 if nothing was looked at twice.
    """
    twice = (looks for point in points for looks in point.seen.values() if len(looks) > 1)
    found = [abs(math.log(looks[0] / looks[1])) for looks in twice]
    return statistics.median(found) if found else 0.0
