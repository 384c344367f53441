"""Tuning within a budget: time goes to the steps that reduce the possible loss most.

Every step that tuning can do next has a *worth*: what the choices of a table may lose at a size
(:mod:`stagegen.tune.stakes`), by the octaves that the size stands for. It is divided by the seconds
that the step is expected to take, and the largest quotient comes first. Steps belong to
launches of the job, so they come in stages:

1. In launch 0, looks at sizes and, where more bytes take less time, at what leads with them: for
   the first communicator of each collective, and then for all. After them, looks at
   compositions. They may take :data:`SCOUTING` of the budget; the first look of a search, without
   which its table is native, may begin until :data:`UNKNOWN` of it is spent.
2. In the launches after it, the finalists of sizes, as many as there is time for. A size that was
   begun is timed in all launches. There are fewer launches if their starts alone would take more
   than :data:`STARTS` of the budget.
3. Duels for the crossovers, in the last launch.

What is left over goes to the next stage. A routine is checked right before it is timed for the
first time, so none is checked that is never timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagegen.measure.records import Candidate
from stagegen.tune.compositions import Compositions, LeastSeconds
from stagegen.tune.field import least
from stagegen.tune.further import further_launches
from stagegen.tune.look_cost import LATENCY, cost_of_first_look, cost_of_look
from stagegen.tune.plan import Outcome
from stagegen.tune.protocol import Protocol
from stagegen.tune.purse import BudgetSpent, Purse
from stagegen.tune.sizes import octaves
from stagegen.tune.stated import estimated
from stagegen.tune.subject import Subject

#: The share of the budget for launch 0; the share of that for first communicators alone, if
#: there are others; and the share of the budget for compositions.
SCOUTING, FIRST, COMPOSED = 0.6, 0.6, 0.1

#: The share of the time for looks that first looks may take if they tune the parameters of all
#: algorithms. If they would take more, only algorithms near the best one are tuned.
BEGUN = 0.4

#: First looks may begin until this share of the budget is spent.
UNKNOWN = 0.95

#: The share of the time left after launch 0 that the first of the other launches may take: it times
#: all finalists, and later launches only the sizes that are still open. Each of the later ones may
#: take this many times its equal share of the time left, so that the last one has some.
FIRST_LAUNCH, LATER = 0.4, 1.5

#: The share of the budget that starts of launches may take, and that duels have.
STARTS, DUELS = 0.25, 0.06

#: A look at a size also tells of sizes near it; half as much for every OCTAVES octaves of distance.
OCTAVES = 2.0

#: What may be lost at a size that was confirmed as well as can be: the noise.
SETTLED = 1.03


@dataclass(frozen=True)
class _Step:
    """Something to do next.

    Attributes:
        worth: the most by which it reduces the possible loss, as a logarithm over all sizes of a
            table.
        seconds: that it is expected to take.
        subject: the search.
        size: in bytes.
        given: the compositions to look at, if it is such a look.
        is_longer: whether it is a look at what takes less time with more bytes.
    """

    worth: float
    seconds: float
    subject: Subject
    size: int
    given: Mapping[Candidate, float] = field(default_factory=dict)
    is_longer: bool = False

    @property
    def quotient(self) -> float:
        """The worth of a second."""
        return self.worth / self.seconds


def _look(step: _Step) -> None:
    one = step.subject
    one.search.look_at(step.size, one.hints(), thrifty=one.thrifty)


def _look_at_longer(step: _Step) -> None:
    step.subject.search.look_at_longer(step.size)


class Spender:
    """Tunes several subjects within a budget.

    Args:
        subjects: the searches, in the order of the options.
        purse: the time.
        protocol: how often to measure if there is time enough.
        least: the lower bounds of calls.
    """

    def __init__(
        self,
        subjects: Sequence[Subject],
        purse: Purse,
        protocol: Protocol,
        least: LeastSeconds,
    ):
        self._subjects = subjects
        self._purse = purse
        self._spent_before = purse.spent  # what is not for looks; the first look may take all else
        self._least = least
        self._protocol = protocol

    def run(self) -> tuple[Outcome, ...]:
        """Do what there is time for; return the outcomes, in the order of the subjects.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        total = self._purse.total
        first = [one for one in self._subjects if one.first is None]
        share = FIRST if len(first) < len(self._subjects) else 1.0
        self._scout(first, SCOUTING * share * total)
        self._scout(self._subjects, SCOUTING * total)
        limit = (SCOUTING + COMPOSED) * total
        lost = self._compose(limit, self._points())
        while lost:  # the leader there failed beside compositions
            self._scout(self._subjects, limit)
            lost = self._compose(limit, lost)
        self._confirm()
        return self._conclude()

    def _scout(self, subjects: Sequence[Subject], limit: float) -> None:
        while steps := [step for one in subjects for step in self._looks(one, limit)]:
            step = max(steps, key=lambda step: step.quotient)
            if step.is_longer:
                if not self._do(step, _look_at_longer):
                    return
                continue
            begin, step.subject.thrifty = self._purse.spent, self._is_thrifty(subjects, limit)
            if not self._do(step, _look):
                return
            step.subject.costs[step.size] = self._purse.spent - begin

    def _is_thrifty(self, subjects: Sequence[Subject], limit: float) -> bool:
        """Whether tuning the parameters of all algorithms would take too much of the time."""
        left = (one for one in subjects if not one.search.points or one.thrifty)
        looks = (cost_of_first_look(one, self._subjects) for one in left)
        return sum(looks) > BEGUN * (limit - self._purse.spent)

    def _looks(self, subject: Subject, limit: float) -> Iterator[_Step]:
        """Yield the looks that there is time for."""
        worths = subject.pending()
        for size in filter(subject.is_near, worths):
            near = (worth * 2 ** (-octaves(size, s) / OCTAVES) for s, worth in worths.items())
            seconds = cost_of_look(subject, size, self._subjects)
            most = limit if subject.search.points else max(limit, UNKNOWN * self._purse.total)
            if self._purse.spent + seconds <= most or self._purse.spent == self._spent_before:
                yield _Step(sum(near), seconds, subject, size)
        for size, factor in subject.gains_of_longer().items():
            seconds = LATENCY + min(least(subject.search.points[size].seen).values()) / factor
            if self._purse.spent + seconds <= limit:
                worth = subject.weight(size) * math.log(factor)
                yield _Step(worth, seconds, subject, size, is_longer=True)

    def _points(self) -> frozenset[tuple[int, int]]:
        """Return the places that were looked at: the number of the subject, and the size."""
        return frozenset((n, s) for n, one in enumerate(self._subjects) for s in one.search.points)

    def _compose(
        self, limit: float, wanted: frozenset[tuple[int, int]]
    ) -> frozenset[tuple[int, int]]:
        """Look at compositions; those whose parts promise the largest gain come first.

        Args:
            limit: seconds of the budget after which no further look begins.
            wanted: where to look, as :meth:`_points` says it.

        Returns:
            The places to look at again, as their leaders have failed meanwhile.
        """
        before = self._points()
        for step in sorted(self._compositions(wanted), key=lambda step: -step.quotient):
            if self._purse.spent >= limit or not self._do(
                step, lambda s: s.subject.search.compose_at(s.size, s.given)
            ):
                return frozenset()
        return before - self._points()

    def _compositions(self, wanted: frozenset[tuple[int, int]]) -> list[_Step]:
        """Return the looks at compositions that are wanted."""
        looked_at = [one for one in self._subjects if one.search.points]
        outcomes = [one.search.outcome() for one in looked_at]
        found = Compositions(outcomes, self._least)
        steps: list[_Step] = []
        for one, outcome in zip(looked_at, outcomes, strict=True):
            if one.is_part:
                continue
            by_size = found.of(outcome, one.search.compositions, one.search.known)
            for size, given in by_size.items():
                if given and (self._subjects.index(one), size) in wanted:
                    point = one.search.points[size]
                    best = min(least(point.seen).values())
                    # Parts of collectives that are not tuned count as 0 s: they were not timed.
                    told = min((s for s in given.values() if s > 0), default=best)
                    gain = max(math.log(best / told), 0.0) + math.log(SETTLED)
                    seconds = 2 * len(given) * (max(told, LATENCY) + point.late)
                    steps.append(_Step(one.weight(size) * gain, seconds, one, size, given))
        return steps

    def _confirm(self) -> None:
        """Time finalists in launches: the sizes that are worth most, and these to the end."""
        purse = self._purse
        starts = purse.start * self._protocol.launches
        share = 1.0 if starts <= STARTS * purse.total else STARTS * purse.total / starts
        launches = max(1, math.floor(share * self._protocol.launches))
        reserved = DUELS * purse.total
        steps = sorted(self._to_confirm(), key=lambda step: -step.quotient)
        planned = range(1, launches + 1)
        for launch in (*planned, *further_launches(replace(self._protocol, launches=launches))):
            equal = 1 / max(1, launches + 1 - launch)
            share = FIRST_LAUNCH if launch == 1 < launches else min(1.0, LATER * equal)
            limit = purse.spent + share * (purse.left - reserved)

            def time(step: _Step, launch: int = launch) -> None:
                step.subject.search.confirm_at(step.size, launch, launches)

            for step in steps:
                search = step.subject.search
                point = search.points.get(step.size)
                begun = point is not None and point.launches
                asks = launch in planned or step.size in search.asks_for_more()
                if (launch == 1 or (begun and asks)) and (
                    purse.spent >= limit or not self._do(step, time)
                ):
                    break
        last = max(one.search.launch for one in self._subjects)
        if last not in planned:  # else duels would go back and forth between launches
            for one in self._subjects:
                one.search.join(last)

    def _to_confirm(self) -> Iterator[_Step]:
        for one in self._subjects:
            if one.is_part or not one.search.points:
                continue
            if one.plan.one_rule and not set(one.plan.sizes) <= one.search.points.keys():
                continue  # the native routine serves, whatever launches say
            table = one.choices()
            stakes = one.search.stakes(one.plan.kinds[0])
            for size, point in one.search.points.items():
                factor = stakes.factor(size, table.choice(size))
                worth = one.weight(size) * max(0.0, math.log(factor / SETTLED))
                yield _Step(worth, LATENCY + point.lasts, one, size)

    def _conclude(self) -> tuple[Outcome, ...]:
        """Fight the duels that there is time for."""
        outcomes: dict[int, Outcome] = {}
        left = list(range(len(self._subjects)))
        while left:
            late: set[int] = set()
            for place in left:
                late.discard(place)
                one = self._subjects[place]
                outcome = one.search.outcome(duels=not one.is_part)
                tables = tuple(map(estimated(one), outcome.tables))
                outcomes[place] = replace(outcome, tables=tables)
                late |= self._leave_out_what_failed(one)
            # A routine that fails in a duel may serve in an outcome from before.
            left = sorted(late)
        return tuple(outcomes[place] for place in range(len(self._subjects)))

    def _do(self, step: _Step, work: Callable[[_Step], None]) -> bool:
        """Do a step; return whether there was time for all of it."""
        try:
            work(step)
        except BudgetSpent:
            return False
        finally:
            step.subject.forget()
            self._leave_out_what_failed(step.subject)
        return True

    def _leave_out_what_failed(self, subject: Subject) -> set[int]:
        """Take a routine that failed out of all searches; it may serve a part in any of them.

        Returns the places of the searches in which it was timed.
        """
        failed = {(subject.collective, f.candidate.algorithm) for f in subject.search.failures}
        touched = {p for p, one in enumerate(self._subjects) if one.search.leave_out(failed)}
        for place in touched:
            self._subjects[place].forget()
        return touched
