"""The looks of one search: which sizes and candidates launch 0 looks at, and in which order.

A look is scouting at one size (:mod:`stagegen.tune.scouting`). The results are kept here: a
:class:`stagegen.tune.point.Point` for each size. The launches that decide go on with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from stagegen.catalogue import Algorithm
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.tune.candidates import at_size, handles, routines_of
from stagegen.tune.composing import Composing
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.field import Times, best_of_algorithms, distinct, least
from stagegen.tune.kinds import TableKinds
from stagegen.tune.one_rule import foremost, slower_than_native
from stagegen.tune.plan import Plan
from stagegen.tune.point import Point
from stagegen.tune.prediction import Prediction
from stagegen.tune.purse import BudgetSpent
from stagegen.tune.scouting import Scout, odd_middles

#: If a call of the smallest size takes more than LADDER_SECONDS, with the wait for late ranks,
#: smaller sizes tell which candidates may win there. Each is STEP times smaller than the next one.
#: At the smallest, a call takes RUNG_SECONDS or less, if LADDER is long enough: at much smaller
#: sizes, latency alone would decide.
LADDER_SECONDS = 0.5
RUNG_SECONDS = 0.15
STEP = 4

#: How many candidates of a group are looked at there, whatever their predictions, from the smallest
#: size on. At the smallest size there are no predictions, so all are looked at.
LADDER = (0, 24, 8)


class Looks:
    """Looks at the sizes of one collective on one communicator.

    Args:
        source: of the measurements.
        plan: what is tuned.
        collective: which one.
        algorithms: that compete, by name; those that fail are taken out.
        kinds: the kinds of tables.
        request: returns the request for one look at candidates at a size, in the current launch.

    Attributes:
        points: what is known of each size.
        compositions: those to look at, by size, with the seconds of their parts.
        banned: the algorithms that are left out, each with its collective.
    """

    def __init__(
        self,
        source: Source,
        plan: Plan,
        collective: str,
        algorithms: dict[str, Algorithm],
        kinds: TableKinds,
        request: Callable[[int, tuple[Candidate, ...]], Request],
    ):
        self._plan = plan
        self._collective = collective
        self._algorithms = algorithms
        self._kinds = kinds
        self._scout = Scout(source, plan, request, kinds.field)
        self._composing = Composing(source, request, kinds.field, plan.protocol.gain)
        self.points: dict[int, Point] = {}
        self.compositions: Mapping[int, Mapping[Candidate, float]] = {}
        self.banned: set[tuple[str, str]] = set()
        self._depth: dict[int, int] = {}
        self._quick: dict[int, Times] = {}
        self._composed: set[int] = set()

    def take(self, hints: Mapping[int, tuple[Candidate, ...]], *, thrifty: bool) -> None:
        """Take in what other searches say of the candidates, and whether to be thrifty."""
        self._scout.plan = replace(self._scout.plan, hints=hints, thrifty=thrifty)

    def learn_from(self, other: Looks) -> None:
        """Predict the times of compositions from those on another communicator."""
        self._composing.learn_from(other._composing)

    def at(self, size: int) -> None:
        """Look at one of the sizes that are pending."""
        if size in self._plan.sizes:
            self._at(size)
        else:
            self._between(size)

    def pending(self) -> tuple[int, ...]:
        """Return the sizes that may be worth a look: of the plan, and middles of odd ones."""
        left = [size for size in self._plan.sizes if size not in self.points]
        known = sorted(self.points)
        middles = [m for m in self._middles() if known and known[0] < m < known[-1]]
        ends = {m: (max(s for s in known if s < m), min(s for s in known if s > m))
                for m in middles}  # fmt: skip
        free = (m for m, (low, high) in ends.items() if not any(low < s < high for s in left))
        return (*left, *free)

    def forget(self, collective: str, name: str) -> bool:
        """Go on without a routine, and without the compositions in which it serves a part.

        Sizes where these led are looked at again, as others have lost to them. At other sizes, what
        is known of the others stays. Returns whether any was timed.
        """
        known = [*self._quick.values(), *(point.seen for point in self.points.values())]
        self.banned.add((collective, name))
        if collective == self._collective:
            self._algorithms.pop(name, None)
        timed = any(self._banned_of(times) for times in known)
        for times in self._quick.values():
            for candidate in self._banned_of(times):
                del times[candidate]
        for size, point in list(self.points.items()):
            theirs = self._banned_of(point.seen)
            if any(point.has_led(candidate) for candidate in theirs):
                del self.points[size]
                self._composed.discard(size)
            else:
                for candidate in theirs:
                    point.forget(candidate)
                point.field = self._kinds.field(point.seen)
        return timed

    def _banned_of(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return the candidates that are left out, because of themselves or of a part."""
        return [c for c in candidates if routines_of(self._collective, c) & self.banned]

    def all(self) -> None:
        """Scout what was not scouted yet: the sizes, odd middles between them, compositions."""
        for size in self._plan.sizes:
            if size not in self.points:
                self._at(size)
        if self._plan.one_rule:
            self._at_all_sizes()
        while middles := self._middles():
            for size in middles:
                self._between(size)
        while gains := self.gains_of_longer():
            self.at_longer(max(gains))
        for size in sorted(self.points):
            if size not in self._composed and self.compositions:
                self.at_compositions(size)

    def _at(self, size: int) -> None:
        """Look at all that may win at a size of the plan.

        If the time ends before any candidate had a look, the largest smaller size says what serves.
        """
        try:
            self._climb_to(size)
        except BudgetSpent:
            if self._quick and not self.points:
                rung = max(self._quick)
                self.points[rung] = self._scout.as_seen(rung, self._quick[rung])
            raise

    def _climb_to(self, size: int) -> None:
        """Look at the smaller sizes that predict the first one, then at a size of the plan."""
        for rung, many in self.rungs().items():
            if rung not in self._quick:
                known = self.below(rung)
                self._quick[rung] = self._scout.quickly(rung, self._able(rung), known, many)
        if self._plan.one_rule and size == self._plan.sizes[-1]:
            self._tune_before(size)
        self._plan.progress(f"{self._collective} {size} B")
        below = [self.points[s] for s in sorted(self.points) if s < size]
        # One rule for all sizes may choose a routine that is the best at no single size.
        known = Prediction(self._plan.bound) if self._plan.one_rule else self.below(size)
        seen: Times = {}
        try:
            self.points[size] = self._scout.at(size, self._able(size), known, below, seen)
        except BudgetSpent:
            if NATIVE_CANDIDATE in seen:
                self.points[size] = self._scout.as_seen(size, seen)
            raise
        if self._plan.one_rule:
            self._at_all_sizes()

    def _tune_before(self, size: int) -> None:
        """Tune the parameters of one rule for all sizes, if calls of the largest are dear.

        If one of the hinted routines is faster than native there, no other is looked at.
        """
        tuned = self._plan.tuning_size
        if tuned == size:
            return
        if self._hinted and not self._leads_as_hinted(tuned):
            self._go_on_without_hints(tuned)
        if tuned not in self._quick:
            self._quick[tuned] = self._look_at_all(tuned, self._able(tuned))

    def _leads_as_hinted(self, tuned: int) -> bool:
        """Look at the hinted routines and native; return whether a hinted one is faster."""
        named = [a for a in self._able(tuned) if a.name in self._hinted | {NATIVE}]
        if len(named) == 1:
            return False
        if tuned not in self._quick:
            self._quick[tuned] = self._look_at_all(tuned, named)
        best = least(self._quick[tuned])
        return min(best, key=best.__getitem__) != NATIVE_CANDIDATE

    def _go_on_without_hints(self, tuned: int) -> None:
        """Drop the hints, and look at all routines at the sizes that were looked at.

        The hints are dropped last: if a routine fails in these looks, the looks begin again.
        """
        for size in sorted(self.points):
            self._scout.also_all(size, self.points[size], self._able(size))
        self.take({}, thrifty=self._scout.plan.thrifty)
        self._quick.pop(tuned, None)

    def _look_at_all(self, size: int, algorithms: Sequence[Algorithm]) -> Times:
        """Look at algorithms at a size that is not tuned itself, whatever their predictions."""
        nothing = Prediction(self._plan.bound)
        return self._scout.quickly(size, algorithms, nothing, len(algorithms))

    @property
    def _hinted(self) -> set[str]:
        """The algorithms that hints name at any size."""
        return {c.algorithm for few in self._scout.plan.hints.values() for c in few}

    def _at_all_sizes(self) -> None:
        """Look at all candidates of the longest messages with shorter ones, too."""
        *smaller, largest = self._plan.sizes
        if set(self._plan.sizes) <= self.points.keys():
            for size in smaller:
                point = self.points[size]
                if more := [c for c in self.points[largest].seen if c not in point.seen]:
                    self._scout.also(size, point, more)

    def _able(self, size: int) -> list[Algorithm]:
        """Return the algorithms without parts that can do a size.

        With one rule for all sizes, only those count that are not slower than native at smaller
        sizes. If calls of this size are dear, they are the best few at smaller sizes, and those
        that hints name.
        """
        able = [a for a in self._algorithms.values() if not a.parts and a.handles(size)]
        if not self._plan.one_rule:
            return able
        seen = {**self._quick, **{s: point.seen for s, point in self.points.items()}}
        known = [times for smaller, times in sorted(seen.items()) if smaller < size]
        slower = {name for times in known for name in slower_than_native(times)}
        is_dear = size in self._plan.sizes and self._plan.tuning_size < size
        wanted = foremost(known, self._kinds) | self._hinted if is_dear else {a.name for a in able}
        return [a for a in able if a.name in wanted - slower or a.name == NATIVE]

    def below(self, size: int) -> Prediction:
        """Return the prediction for a size from the smaller ones that were looked at."""
        prediction = Prediction(self._plan.bound)
        planned = {s: self.points[s].seen for s in self._plan.sizes if s in self.points}
        for smaller, times in sorted({**self._quick, **planned}.items()):
            if smaller < size:
                prediction.observe(smaller, best_of_algorithms(least(times)))
        return prediction

    def rungs(self) -> Mapping[int, int]:
        """Return sizes below the smallest one, if its calls take so long that predictions pay.

        The values are how many candidates of a group are looked at, whatever their predictions. A
        size does not pay if its calls take more than half as long as at the next one: delays that
        are given as times are as long there.
        """
        sizes = [self._plan.sizes[0]]
        if self._seconds(sizes[0]) <= LADDER_SECONDS:
            return {}
        while len(sizes) <= len(LADDER) and self._seconds(sizes[-1]) > RUNG_SECONDS:
            smaller = sizes[-1] // STEP
            if smaller == 0 or self._seconds(smaller) > self._seconds(sizes[-1]) / 2:
                break
            sizes.append(smaller)
        return dict(zip(reversed(sizes[1:]), LADDER, strict=False))

    def _seconds(self, size: int) -> float:
        """Return how long a call takes at least, with the wait for late ranks."""
        return self._plan.bound(size) + self._plan.late(size)

    def _middles(self) -> list[int]:
        if self._plan.one_rule:
            return []
        times = {size: point.fastest for size, point in self.points.items()}
        lost = [size for size in self._depth if size not in self.points]
        return lost or odd_middles(times, self._plan.bound, self._depth)

    def _between(self, size: int) -> None:
        """Look at a size between two others: at the best candidates of both."""
        self._plan.progress(f"{self._collective} {size} B, between")
        low = max(one for one in self.points if one < size)
        high = min(one for one in self.points if one > size)
        ends = [self.points[low], self.points[high]]
        deep = max(self._depth.get(low, 0), self._depth.get(high, 0))
        factor, most = (1.1, 2) if ends[0].is_long else (1.3, 4)
        near = chain.from_iterable(p.field.nearest(least(p.seen), factor, most) for p in ends)
        able = [
            c
            for c in distinct((NATIVE_CANDIDATE, *near))
            if handles(c, size, self._plan.ranks, self._kinds.known)
        ]
        self.points[size] = self._scout.between(size, able)
        self._depth.setdefault(size, deep + 1)

    def gains_of_longer(self) -> dict[int, float]:
        """Return the sizes at which more bytes take less time, and by which factor at the most.

        No call should take longer than one with more bytes (Träff, Gropp and Thakur 2010). Where
        one does, what leads at the next size is worth a look, if it had none.
        """
        return {size: max(gains.values()) for size in self.points if (gains := self._longer(size))}

    def at_longer(self, size: int) -> None:
        """Look at the candidates that take less time with more bytes."""
        self._plan.progress(f"{self._collective} {size} B, as with more bytes")
        self._scout.also(size, self.points[size], list(self._longer(size)))

    def _longer(self, size: int) -> dict[Candidate, float]:
        """Return what leads at the next size, takes less time there, and had no look at this one.

        The values are by which factor it takes less time than the best one of a group here.
        """
        after = min((one for one in self.points if one > size), default=None)
        if after is None or self._plan.one_rule:
            return {}
        here, there = (least(self.points[one].seen) for one in (size, after))
        looked_at = {candidate.algorithm for candidate in here}
        able = {algorithm.name: algorithm for algorithm in self._able(size)}
        groups = zip(self.points[size].field.groups, self.points[after].field.groups, strict=False)
        found: dict[Candidate, float] = {}
        for ours, theirs in groups:
            best = min((here[c] for c in here if c in ours), default=math.inf)
            timed = ((there[c], c) for c in there if c in theirs and c.algorithm in able)
            time, leader = min(timed, default=(math.inf, NATIVE_CANDIDATE))
            is_new = leader.algorithm not in looked_at
            if is_new and best > (1 + self._plan.protocol.gain) * time:
                candidate = at_size(able[leader.algorithm], leader, size, self._plan.ranks)
                found[candidate] = best / time
        return found

    def at_compositions(self, size: int) -> None:
        """Look at the compositions that are left, beside the best of the others."""
        of_size = self.compositions.get(size, {})
        banned = self._banned_of(of_size)
        given = {c: s for c, s in of_size.items() if c not in banned}
        if given:
            self._plan.progress(f"{self._collective} {size} B: compositions")
            self._composing.look(size, self.points[size], given)
        self._composed.add(size)
