"""Looks at compositions beside the best of the other routines.

The time of a composition is predicted from the times of its parts, which were timed separately, and
from the error of such predictions at the sizes before. Where calls are long, only compositions that
may win by this prediction are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.tune.field import Field, Times, distinct, least
from stagegen.tune.point import Point
from stagegen.tune.prediction import REMEMBERED, usual_error
from stagegen.tune.race import SHORT_SECONDS, look_at_few, try_short
from stagegen.tune.sizes import octaves

#: If a prediction is from looks on another communicator, its error counts this many times.
ELSEWHERE = 2.0

#: The most compositions of a group that are looked at, by the seconds that a call takes at the
#: most. All are looked at where calls are short.
COMPOSED = ((SHORT_SECONDS, 1000), (1.0, 2), (inf, 1))


@dataclass
class Composing:
    """Looks at the compositions of one collective on one communicator.

    Attributes:
        source: of the measurements.
        request: returns the request for one look at candidates at a size.
        make_field: returns the race of candidates, with their groups.
        gain: the least share by which a composition must be faster to go on.
    """

    source: Source
    request: Callable[[int, tuple[Candidate, ...]], Request]
    make_field: Callable[[Iterable[Candidate]], Field]
    gain: float
    _ratios: dict[str, dict[int, float]] = field(default_factory=dict)
    _errors: list[float] = field(default_factory=list)
    _told_ratios: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    _told_errors: Sequence[float] = ()

    def learn_from(self, other: Composing) -> None:
        """Predict from looks on another communicator; the errors of such predictions count more."""
        names = {*other._told_ratios, *other._ratios}
        self._told_ratios = {name: other._known(name) for name in names}
        more = (ELSEWHERE * error for error in other._errors)
        self._told_errors = (*other._told_errors, *more)

    def look(self, size: int, point: Point, given: Mapping[Candidate, float]) -> None:
        """Look at compositions; only those that beat the others go on.

        A table with fewer routines is better, and among many candidates, one may just be lucky.

        Args:
            size: in bytes.
            point: what is known of the size; learns more.
            given: the compositions, each with the seconds that its parts take together.
        """
        scouted = least(point.seen)
        uncomposed = distinct(point.field.leaders(least(point.tried)))
        race = self.make_field((*uncomposed, *given)).without_dear(scouted)
        short = point.fastest < SHORT_SECONDS
        few = self._promising(size, race, scouted, given)
        if not few:
            return
        seen: Times = {}
        if short:
            race = self.make_field((*uncomposed, *few))
            request = self.request(size, race.candidates)
            look_at_few(self.source, request, race.candidates, seen)
            scores = least(try_short(self.source, request, race, seen))
        else:
            rival = min(scouted[c] for c in uncomposed)
            look_at_few(self.source, self.request(size, few), few, seen, rival)
            scores = {**{c: scouted[c] for c in uncomposed}, **least(seen)}
        for candidate in few:
            self._learn(size, candidate, min(seen[candidate]), given[candidate])
            point.seen[candidate] = seen[candidate]
            rivals = _rival(race, {c: scores.get(c, inf) for c in uncomposed}, candidate)
            if scores.get(candidate, inf) < (1 - self.gain) * rivals:
                point.tried[candidate] = [scores[candidate]]
        if short:
            for candidate in uncomposed:
                if candidate in scores and candidate in point.tried:
                    point.tried[candidate] = [scores[candidate]]
        point.field = self.make_field(point.seen)

    def _promising(
        self,
        size: int,
        race: Field,
        scouted: Mapping[Candidate, float],
        given: Mapping[Candidate, float],
    ) -> tuple[Candidate, ...]:
        """Return the compositions whose prediction, less its error, beats a group's best."""
        uncomposed = {c: scouted[c] for c in race.candidates if c not in given}
        expected = {c: self._ratio(c, size) * seconds for c, seconds in given.items()}
        error = usual_error([*self._told_errors, *self._errors][-REMEMBERED:])
        possible = {
            c: seconds
            for c, seconds in expected.items()
            if (1 - error) * seconds < (1 - self.gain) * _rival(race, uncomposed, c)
        }
        most = next(count for limit, count in COMPOSED if min(uncomposed.values()) <= limit)
        return tuple(race.nearest(possible, inf, most))

    def _ratio(self, candidate: Candidate, size: int) -> float:
        """Return how many times as long as its parts a composition is expected to take.

        The look at the nearest size says it, here or on another communicator.
        """
        known = self._known(candidate.algorithm) or {size: 1.0}
        return known[min(known, key=lambda one: (octaves(one, size), -one))]

    def _known(self, algorithm: str) -> dict[int, float]:
        """Return the ratios of a composition that were told or seen, by size."""
        return {**self._told_ratios.get(algorithm, {}), **self._ratios.get(algorithm, {})}

    def _learn(self, size: int, candidate: Candidate, seconds: float, predicted: float) -> None:
        """Take in the times of a composition and of its parts."""
        if predicted > 0:
            ratio = seconds / predicted
            self._errors.append(abs(ratio / self._ratio(candidate, size) - 1))
            self._ratios.setdefault(candidate.algorithm, {})[size] = ratio


def _rival(race: Field, seconds: Mapping[Candidate, float], candidate: Candidate) -> float:
    """Return the time that a composition must beat to win in some group; 0 if it may serve none."""
    groups = (group for group in race.groups if candidate in group)
    return max((min((seconds[c] for c in group if c in seconds), default=inf) for group in groups),
               default=0.0)  # fmt: skip
