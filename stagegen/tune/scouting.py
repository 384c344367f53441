"""Scouting one collective, size by size: parameters, looks, and the middles between odd sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise, takewhile
from math import sqrt

from stagegen.catalogue import Algorithm
from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.tune.candidates import at_size, default_candidate
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.field import LONG_SECONDS, Field, Times, distinct, least
from stagegen.tune.parameters import KEPT_SECONDS, Tuner, choices
from stagegen.tune.plan import Plan
from stagegen.tune.point import Point
from stagegen.tune.prediction import Prediction
from stagegen.tune.race import (
    NEAR_FACTOR,
    NEAREST,
    in_random_order,
    look,
    look_at_few,
    look_quickly,
    try_short,
)
from stagegen.tune.sizes import octaves

#: Few candidates confirm a size if the same algorithm won at this many sizes before it, by a margin
#: that grew from each to the next.
STEADY_SIZES = 3

#: The middle of two sizes is measured if the winner's time at one is above the line through its
#: neighbours, or grows between them against the bound, by more than this factor. A time below the
#: line adds no middle: then the growth to the next size is odd, and the bound shows that.
ODD = 1.25

#: Sizes nearer to each other than this factor have no middle; the test by the bound needs more.
APART = 1.9
APART_BY_BOUND = 2.1

#: A dear native routine needs no launch if it was predicted to be slower than another routine by
#: this factor, and one look at both shows the same.
CLEARLY = 1.5

#: If a hinted routine has the best look, no trial follows, unless the shortest call takes less than
#: this many seconds: there, one lucky look can be half of a call's usual time.
CONFIRMED_SECONDS = 0.01

#: No size is put between others more often than this, as halves of halves.
DEPTH = 3


@dataclass
class Scout:
    """Scouts the sizes of one collective on one communicator.

    Attributes:
        source: of the measurements.
        plan: what is tuned.
        request: returns the request for one look at candidates at a size.
        make_field: returns the race of candidates, with their groups.
        parameters: each algorithm with the values that the last size left.
        tuned: the algorithms whose parameters were searched at some size.
        on_rungs: whether smaller sizes than those of the plan were looked at first.
    """

    source: Source
    plan: Plan
    request: Callable[[int, tuple[Candidate, ...]], Request]
    make_field: Callable[[Iterable[Candidate]], Field]
    parameters: dict[str, Candidate] = field(default_factory=dict)
    tuned: set[str] = field(default_factory=set)
    on_rungs: bool = False

    def at(
        self,
        size: int,
        algorithms: Sequence[Algorithm],
        prediction: Prediction,
        below: Sequence[Point],
        seen: Times,
    ) -> Point:
        """Look at all that may win at a size, and tune their parameters.

        Args:
            size: in bytes.
            algorithms: that can do the size.
            prediction: from the sizes below.
            below: what is known of these, ascending.
            seen: empty; gets each time as soon as it is measured.
        """
        everyone = self._everyone(size, algorithms)
        hinted = self._hinted(size, everyone)
        expected = hinted or steady_winners(size, everyone, below, prediction)
        named: Times = {}
        if expected:
            few = [c for c in distinct((*expected, NATIVE_CANDIDATE)) if c in everyone.candidates]
            named = look_at_few(self.source, self._asked(size, everyone), few, seen)
        holds = bool(expected) and self._holds(everyone, hinted or expected[:1], seen)
        if not holds:
            late = self.plan.late(size)
            asked, gain = self._asked(size, everyone), self.plan.protocol.gain
            named = look(self.source, asked, everyone, prediction, seen, late, gain)
            self._look_at_defaults(size, algorithms, seen)
        if self.plan.tunes(size) and not (holds and self._has_values_of(size, hinted, seen)):
            self._tune(size, algorithms, everyone, seen)
        told = self._told(size, hinted, seen) if holds else frozenset()
        point = self._point(size, self.make_field(seen), seen, told)
        left = {candidate: times for candidate, times in named.items() if candidate in seen}
        if point.is_dear and _has_lost_as_foreseen(left, prediction, size):
            point.named = left
        return point

    def _look_at_defaults(self, size: int, algorithms: Sequence[Algorithm], seen: Times) -> None:
        """Look at routines with their defaults, too, where all long calls are far above the bound.

        The values that are best for short messages may lose frames with long ones, such as many
        messages in flight. Then a look with them says nothing of the algorithm.
        """
        best = min(least(seen).values())
        if self.plan.one_rule or best <= max(LONG_SECONDS, ODD * self.plan.bound(size)):
            return
        for algorithm in algorithms:
            known = self.parameters[algorithm.name]
            usual = at_size(algorithm, default_candidate(algorithm), size, self.plan.ranks)
            if known not in seen or known == usual:
                continue
            alone = self.make_field((usual,))
            look_at_few(self.source, self._asked(size, alone), (usual,), seen, best)
            slower = max((known, usual), key=lambda one: min(seen[one]))
            self.parameters[algorithm.name] = usual if slower == known else known
            del seen[slower]

    def as_seen(self, size: int, seen: Times) -> Point:
        """Return what is known of a size if there was no time to look at all candidates."""
        return Point(self.make_field(seen), seen, dict(seen), self.plan.late(size))

    def _point(
        self, size: int, found: Field, seen: Times, told: frozenset[str] = frozenset()
    ) -> Point:
        confirmed = told and min(least(seen).values()) >= CONFIRMED_SECONDS
        tried = seen if confirmed else try_short(self.source, self._asked(size, found), found, seen)
        return Point(found, seen, dict(tried), self.plan.late(size), told)

    def quickly(
        self, size: int, algorithms: Sequence[Algorithm], prediction: Prediction, many: int
    ) -> Times:
        """Look once at all that may win at a size that is not tuned itself, at least at ``many``.

        Their parameters are tuned here, where that takes less time than at the sizes above.
        """
        everyone = self._everyone(size, algorithms)
        late = self.plan.late(size)
        asked = self._asked(size, everyone)
        seen = look_quickly(self.source, asked, everyone, prediction, many, late)
        self.on_rungs |= not self.plan.one_rule
        if self.plan.tunes(size):
            self._tune(size, algorithms, everyone, seen, quick=True)
        return seen

    def _everyone(self, size: int, algorithms: Sequence[Algorithm]) -> Field:
        """Return the race of algorithms with the parameters that the last size left.

        An algorithm that was not tuned here has the values of the hints. Where one rule serves all
        sizes, its values are the same at each.
        """
        told = self._values_told(size)
        usual = self.plan.tuning_size if self.plan.one_rule else size
        for algorithm in algorithms:
            left = self.parameters.get(algorithm.name, default_candidate(algorithm))
            known = told.get(algorithm.name, left)
            self.parameters[algorithm.name] = at_size(algorithm, known, usual, self.plan.ranks)
        return self.make_field(self.parameters[a.name] for a in algorithms)

    def also(self, size: int, point: Point, candidates: Sequence[Candidate]) -> None:
        """Look at more candidates at a size that was looked at."""
        found = self.make_field((*point.seen, *candidates))
        look_at_few(self.source, self._asked(size, found), candidates, point.seen)
        point.tried |= {candidate: point.seen[candidate] for candidate in candidates}
        point.field = found

    def also_all(self, size: int, point: Point, algorithms: Sequence[Algorithm]) -> None:
        """At a size, look at the algorithms that had no look there."""
        everyone = self._everyone(size, algorithms).candidates
        if more := [candidate for candidate in everyone if candidate not in point.seen]:
            self.also(size, point, more)

    def between(self, size: int, candidates: Sequence[Candidate]) -> Point:
        """Look at some candidates at a size between two others."""
        found = self.make_field(candidates)
        seen: Times = {}
        look_at_few(self.source, self._asked(size, found), candidates, seen)
        return self._point(size, found, seen)

    def _asked(self, size: int, found: Field) -> Request:
        return in_random_order(self.request(size, found.candidates), self.plan.protocol.seed)

    def _hinted(self, size: int, everyone: Field) -> list[Candidate]:
        """Return the two best of the plan's hints for a size that can run here.

        There are none if only the native routine is left of them: it would have no rival.
        """
        names = [candidate.algorithm for candidate in self._hints(size)]
        by_name = {candidate.algorithm: candidate for candidate in everyone.candidates}
        hinted = [by_name[name] for name in names if name in by_name][:2]
        return [] if set(hinted) == {NATIVE_CANDIDATE} else hinted

    def _values_told(self, size: int) -> dict[str, Candidate]:
        """Return the candidates of hints within an octave, except what was tuned here."""
        hints = self._hints(size) if self._is_told_near(size) else ()
        return {one.algorithm: one for one in hints if one.algorithm not in self.tuned}

    def _has_values_of(self, size: int, hinted: Sequence[Candidate], seen: Times) -> bool:
        """Whether the best look is of a hinted routine, with the values that were best elsewhere.

        Where native is the best one, other values might beat it.
        """
        best = least(seen)
        leader = min(best, key=best.__getitem__)
        is_told = leader in hinted and leader != NATIVE_CANDIDATE and self._is_told_near(size)
        return is_told and leader.algorithm not in self.tuned

    def _hints(self, size: int) -> tuple[Candidate, ...]:
        """Return the plan's hints for a size.

        If there are none for the size, those for the nearest one count: the size of the longest
        messages differs with the number of ranks.
        """
        return self.plan.hints.get(self._nearest_hint(size), ())

    def _nearest_hint(self, size: int) -> int:
        return min(self.plan.hints, key=lambda one: (octaves(one, size), one), default=size)

    def _told(self, size: int, hinted: Sequence[Candidate], seen: Times) -> frozenset[str]:
        """Return the hinted algorithms that are ahead of native, if one of them had the best look.

        Their size must be within an octave. One rule must hold for sizes that differ by more.
        """
        ahead = list(takewhile(lambda candidate: candidate != NATIVE_CANDIDATE, hinted))
        names = frozenset(candidate.algorithm for candidate in ahead)
        best = least(seen)
        leads = min(best, key=best.__getitem__).algorithm in names
        is_told = leads and self._is_told_near(size) and not self.plan.one_rule
        return names if is_told else frozenset()

    def _is_told_near(self, size: int) -> bool:
        """Whether hints are for a size within an octave."""
        return octaves(self._nearest_hint(size), size) < 1 + 1e-9  # the logarithms are rounded

    @staticmethod
    def _holds(everyone: Field, expected: Sequence[Candidate], seen: Times) -> bool:
        """Whether one of the expected winners won, and each group has a candidate."""
        best = least(seen)
        if any(not group & best.keys() for group in everyone.groups):
            return False
        return min(best, key=best.__getitem__) in expected

    def _tune(
        self,
        size: int,
        algorithms: Sequence[Algorithm],
        everyone: Field,
        seen: Times,
        *,
        quick: bool = False,
    ) -> None:
        """Tune the parameters of those that may win; their best values take part from then on.

        The parameters of an earlier size are a good guess: an algorithm that is behind with them is
        not tuned again, as that takes as long as several races. It is not tuned at all on the
        rungs, within a small budget, or where its calls take seconds. One rule for all sizes is
        different: it is tuned at one size alone, so there long calls are tuned, too.

        An algorithm with the values of hints counts as tuned before.
        """
        told = self._values_told(size)
        contenders = set(everyone.nearest(least(seen), NEAR_FACTOR, NEAREST))
        for algorithm in algorithms:
            known = self.parameters[algorithm.name]
            first = algorithm.name not in self.tuned and algorithm.name not in told
            if known not in seen or not choices(algorithm, size, self.plan.ranks):
                continue
            seconds = min(seen[known])
            late = self.plan.late(size)
            is_long = seconds + late > KEPT_SECONDS and not self.plan.one_rule
            if known not in contenders and (
                not first or is_long or self.on_rungs or self.plan.thrifty
            ):
                continue
            self.tuned.add(algorithm.name)
            tuner = Tuner(self.source, self.request, size, self.plan.ranks, late, quick)
            is_first = first and (quick or not self.on_rungs)
            best, times = tuner.tune(algorithm, known, seconds, is_first=is_first)
            self.parameters[algorithm.name] = best
            if times and best != known:
                if not self.plan.one_rule:  # else the other value may suit smaller sizes
                    del seen[known]
                seen[best] = times


def _has_lost_as_foreseen(named: Times, prediction: Prediction, size: int) -> bool:
    """Whether native clearly lost to the best named candidate, as predicted."""
    first = least(named)
    native = first.pop(NATIVE_CANDIDATE, 0.0)
    if not first:
        return False
    best = min(first, key=first.__getitem__)
    of_best = prediction.expected(best.algorithm, size)
    of_native = prediction.expected(NATIVE_CANDIDATE.algorithm, size)
    if of_best is None or of_native is None:
        return False
    return native > CLEARLY * first[best] and of_native > CLEARLY * of_best


def steady_winners(
    size: int, everyone: Field, below: Sequence[Point], prediction: Prediction
) -> list[Candidate]:
    """Return for each group the winner by a growing margin at the last sizes, and a challenger.

    A challenger has the best prediction after the winner's, if this does not rule it out. The list
    is empty if some group has no such winner.
    """
    last = below[-STEADY_SIZES:]
    named: list[Candidate] = []
    for number, group in enumerate(everyone.groups):
        ranked = [_ranking(point, number) for point in last]
        winners = {one[0][1].algorithm for one in ranked if one}
        margins = [one[1][0] / one[0][0] for one in ranked if len(one) > 1]
        if len(margins) < STEADY_SIZES or len(winners) > 1:
            return []
        if sorted(margins) != margins or margins[0] <= 1:
            return []
        predicted = sorted(
            (seconds, candidate)
            for candidate in group
            if (seconds := prediction.expected(candidate.algorithm, size)) is not None
        )
        winner = [entry for entry in predicted if entry[1].algorithm in winners]
        if not winner:
            return []
        others = [c for _, c in predicted if c != winner[0][1]]
        rivals = (c for c in others if prediction.least(c.algorithm, size) <= winner[0][0])
        named += [winner[0][1], *islice(rivals, 1)]
    return list(distinct(named))


def _ranking(point: Point, number: int) -> list[tuple[float, Candidate]]:
    """Return the least times of a group, the best first, each algorithm once."""
    if number >= len(point.field.groups):
        return []
    best = least(point.seen)
    ranked = sorted((best[c], c) for c in point.field.groups[number] if c in best)
    first: dict[str, tuple[float, Candidate]] = {}
    for entry in ranked:
        first.setdefault(entry[1].algorithm, entry)
    return list(first.values())


def odd_middles(
    times: Mapping[int, float], bound: Callable[[int], float], depth: Mapping[int, int]
) -> list[int]:
    """Return the sizes to measure between others, as the winners' times there are odd.

    Args:
        times: the winner's seconds at each size.
        bound: the lower bound in seconds for a size.
        depth: how often each size was put between others.
    """
    sizes = sorted(times)
    odd: set[tuple[int, int]] = set()
    for low, here, high in zip(sizes, sizes[1:], sizes[2:], strict=False):
        share = (here - low) / (high - low)
        line = times[low] + share * (times[high] - times[low])
        if times[here] > ODD * line:
            odd |= {(low, here), (here, high)}
    odd = {pair for pair in odd if pair[1] >= APART * pair[0]}
    for low, high in pairwise(sizes):
        growth = bound(high) - bound(low)
        if (
            growth > 0
            and high > APART_BY_BOUND * low
            and times[high] > 2 * times[low]
            and times[high] - times[low] > ODD * growth
        ):
            odd.add((low, high))
    middles = {
        round(sqrt(low * high)): 1 + max(depth.get(low, 0), depth.get(high, 0))
        for low, high in odd
        if low > 0
    }
    return sorted(
        middle for middle, deep in middles.items() if deep <= DEPTH and middle not in times
    )
