"""The search over one collective on one communicator: tune parameters, choose algorithms.

The process follows Faraj 2006, Fig. 4.4, steps 3 and 4, with interleaved races in place of
single measurements and a statistical test in place of the smaller mean. It has passes, one for each
launch of the job: :meth:`Search.scout` in launch 0, :meth:`Search.confirm` in the launches that
decide, and :meth:`Search.conclude`. So a launch serves the searches of all collectives.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from stagegen.catalogue import Algorithm
from stagegen.measure.records import Candidate, CandidateFailed, Failure, Request
from stagegen.measure.source import Source
from stagegen.tune.candidates import algorithms_of, default_candidate, handles
from stagegen.tune.choose import Samples, fastest
from stagegen.tune.composing import Composing
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.decision import NATIVE_CANDIDATE, Table
from stagegen.tune.duels import Duels
from stagegen.tune.launches import name_finalists, run_launch
from stagegen.tune.plan import Outcome, Plan, unconverged
from stagegen.tune.point import Point, noise_of
from stagegen.tune.prediction import Prediction
from stagegen.tune.race import Field, Times, distinct, least
from stagegen.tune.rules import eligible, make_rules
from stagegen.tune.scouting import Scout, odd_middles

#: If the lower bound at the smallest size is above LADDER_SECONDS, sizes that are LADDER times
#: smaller tell which candidates may win there.
LADDER_SECONDS = 0.5
LADDER = (64, 16, 4)

__all__ = ["Outcome", "Plan", "Search", "default_candidate"]


class Search:
    """Tunes one collective on a source of measurements.

    Args:
        source: of the measurements.
        plan: what is tuned.
        collective: which one.
        algorithms: of the collective.
        others: algorithms that may serve the parts of compositions, by ``collective/name``.
    """

    def __init__(
        self,
        source: Source,
        plan: Plan,
        collective: str,
        algorithms: Sequence[Algorithm],
        others: Mapping[str, Algorithm] | None = None,
    ):
        self._source = source
        self._plan = plan
        self._collective = collective
        self._algorithms = {a.name: a for a in algorithms if a.works_for(plan.ranks)}
        self._known = ChainMap(self._algorithms, dict(others or {}))
        self._launch = 0
        self._scout = Scout(source, plan, self._request, self._field)
        self._composing = Composing(source, self._request, self._field, plan.protocol.gain)
        self._failures: list[Failure] = []
        self._points: dict[int, Point] = {}
        self._depth: dict[int, int] = {}
        self._quick: dict[int, Times] = {}
        self._compositions: Mapping[int, Mapping[Candidate, float]] = {}
        self._composed: set[int] = set()

    @property
    def compositions(self) -> tuple[Algorithm, ...]:
        """The algorithms with parts."""
        return tuple(algorithm for algorithm in self._algorithms.values() if algorithm.parts)

    @property
    def known(self) -> Mapping[str, Algorithm]:
        """All algorithms, as :func:`stagegen.tune.candidates.algorithms_of` needs them."""
        return self._known

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What ended or hung the job so far."""
        return tuple(self._failures)

    def run(self) -> Outcome:
        """Make all passes, each in a launch of its own.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self.scout()
        for launch in range(1, self._plan.protocol.launches + 1):
            self.confirm(launch)
        return self.conclude()

    def scout(self) -> Outcome:
        """Look at all sizes without compositions, in launch 0; the outcome is preliminary.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._until_none_fails(self._look_at_all)
        return self._outcome(None)

    def compose(self, compositions: Mapping[int, Mapping[Candidate, float]]) -> None:
        """After :meth:`scout`, look at these at each size, too; given are the parts' seconds.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._compositions = compositions
        self._until_none_fails(self._look_at_all)

    def confirm(self, launch: int) -> None:
        """Time the finalists of all sizes in one of the launches that decide.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._launch = launch
        self._until_none_fails(self._confirm_all)

    def conclude(self) -> Outcome:
        """Choose, and find the crossovers in the launch of the last pass.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        outcomes: list[Outcome] = []

        def end() -> None:
            self._confirm_all()
            duels = Duels(self._source, self._request, self._plan.progress)
            crossovers = Crossovers(duels, self._handles, self._plan.protocol.gain)
            outcomes.append(self._outcome(crossovers))

        self._until_none_fails(end)
        return outcomes[-1]

    def leave_out(self, names: Iterable[str]) -> None:
        """Go on without algorithms that failed elsewhere."""
        for name in set(names) & self._algorithms.keys():
            self._forget(name)

    def _until_none_fails(self, attempt: Callable[[], None]) -> None:
        """Try until no candidate fails any more; what was measured is not measured again."""
        while True:
            try:
                return attempt()
            except CandidateFailed as failed:
                self._failures.append(failed.failure)
                self._forget(failed.failure.candidate.algorithm)

    def _forget(self, name: str) -> None:
        """Go on without a routine; look again at sizes where others have lost to it."""
        del self._algorithms[name]
        for size, point in list(self._points.items()):
            theirs = [c for c in point.seen if c.algorithm == name]
            best = least(point.seen)
            led = any(min(group & best.keys(), key=best.__getitem__) in theirs
                      for group in point.field.groups)  # fmt: skip
            if led or any(candidate in point.finalists for candidate in theirs):
                del self._points[size]
                self._composed.discard(size)
            else:
                for candidate in theirs:
                    del point.seen[candidate]
                    point.tried.pop(candidate, None)
                point.field = self._field(point.seen)

    def _look_at_all(self) -> None:
        """Scout what was not scouted yet: the sizes, odd middles between them, compositions."""
        prediction = Prediction(self._plan.bound)
        for size in self._rungs():
            if size not in self._quick:
                able = [a for a in self._algorithms.values() if not a.parts and a.handles(size)]
                self._quick[size] = self._scout.quickly(size, able, prediction)
            prediction.observe(size, _by_algorithm(self._quick[size]))
        for size in self._plan.sizes:
            if size not in self._points:
                self._plan.progress(f"{self._collective} {size} B")
                able = [a for a in self._algorithms.values() if not a.parts and a.handles(size)]
                below = [self._points[s] for s in sorted(self._points) if s < size]
                self._points[size] = self._scout.at(size, able, prediction, below)
            prediction.observe(size, _by_algorithm(self._points[size].seen))
        while middles := self._middles():
            for size in middles:
                self._look_between(size)
        for size in sorted(self._points):
            if size not in self._composed and self._compositions:
                self._look_at_compositions(size)

    def _rungs(self) -> list[int]:
        """Return sizes below the smallest one, if that takes so long that predictions pay.

        A collective with one rule for all calls is tuned at one size, the largest.
        """
        first = self._plan.sizes[0]
        if self._plan.bound(first) <= LADDER_SECONDS:
            return []
        return [rung for share in LADDER if (rung := first // share) > 0]

    def _middles(self) -> list[int]:
        times = {size: point.fastest for size, point in self._points.items()}
        lost = [size for size in self._depth if size not in self._points]
        return lost or odd_middles(times, self._plan.bound, self._depth)

    def _look_between(self, size: int) -> None:
        """Look at a size between two others: at the best candidates of both."""
        self._plan.progress(f"{self._collective} {size} B, between")
        low = max(one for one in self._points if one < size)
        high = min(one for one in self._points if one > size)
        ends = [self._points[low], self._points[high]]
        deep = max(self._depth.get(low, 0), self._depth.get(high, 0))
        factor, most = (1.1, 2) if ends[0].is_long else (1.3, 4)
        near = chain.from_iterable(p.field.nearest(least(p.seen), factor, most) for p in ends)
        able = [c for c in distinct((NATIVE_CANDIDATE, *near)) if self._handles(c, size)]
        self._points[size] = self._scout.between(size, able)
        self._depth.setdefault(size, deep + 1)

    def _look_at_compositions(self, size: int) -> None:
        """Look at the compositions that are left, beside the best of the others."""
        self._composed.add(size)
        of_size = self._compositions.get(size, {})
        given = {c: s for c, s in of_size.items() if c.algorithm in self._algorithms}
        if given:
            self._plan.progress(f"{self._collective} {size} B: compositions")
            self._composing.look(size, self._points[size], given)

    def _confirm_all(self) -> None:
        """Time the finalists of each size in this launch, where that was not done."""
        self._look_at_all()
        sizes = sorted(self._points)
        for number, size in enumerate(sizes):
            point = self._points[size]
            if not point.finalists:
                around = [*sizes[max(0, number - 1) : number], *sizes[number + 1 : number + 2]]
                name_finalists(point, [c for one in around for c in self._leaders(one)])
            if self._launch not in point.launches:
                self._plan.progress(f"{self._collective} {size} B, launch {self._launch}")
                request = self._request(size, point.finalists)
                cap = self._plan.budget / self._plan.protocol.launches
                alike = [p for p in self._points.values() if p.is_long == point.is_long]
                noise = noise_of(alike)
                run_launch(self._source, request, point, self._plan.protocol, cap, noise)

    def _leaders(self, size: int) -> list[Candidate]:
        """Return what leads at a size by what was seen so far, of each kind."""
        samples = self._points[size].samples()
        return [fastest(self._of(kind, samples)) for kind in self._plan.kinds]

    def _of(self, kind: str, samples: Samples) -> Samples:
        """Return the samples of those that may serve a kind of communicators."""
        return {c: sample for c, sample in samples.items() if self._may_serve(kind, c)}

    def _may_serve(self, kind: str, candidate: Candidate) -> bool:
        algorithms = algorithms_of(candidate, self._known)
        return all(eligible(kind, algorithm) for algorithm in algorithms)

    def _field(self, candidates: Iterable[Candidate]) -> Field:
        """Return the race of these candidates, with a winner for each kind of tables."""
        everyone = tuple(candidates)
        groups = (
            frozenset(candidate for candidate in everyone if self._may_serve(kind, candidate))
            for kind in self._plan.kinds
        )
        return Field(everyone, tuple(group for group in groups if group))

    def _outcome(self, crossovers: Crossovers | None) -> Outcome:
        samples: dict[int, Samples] = {
            size: self._points[size].samples() for size in sorted(self._points)
        }
        tables = tuple(self._table(kind, samples, crossovers) for kind in self._plan.kinds)
        return Outcome(
            self._collective, self._plan.communicator, tables, samples, self.failures,
            self._plan.protocol.width,
        )  # fmt: skip

    def _table(
        self, kind: str, samples: Mapping[int, Samples], crossovers: Crossovers | None
    ) -> Table:
        """Choose among the algorithms that may serve a kind of communicators."""
        of_kind = {size: self._of(kind, given) for size, given in samples.items()}
        gain = self._plan.protocol.gain
        rules = tuple(make_rules(of_kind, self._known, gain, crossovers))
        ranks = self._plan.ranks
        table = Table.exactly(self._collective, kind, ranks, self._plan.hosts or ranks, rules)
        width = self._plan.protocol.width
        return replace(table, unconverged=unconverged(table, of_kind, width))

    def _handles(self, candidate: Candidate, size: int) -> bool:
        return handles(candidate, size, self._plan.ranks, self._known)

    def _request(self, size: int, candidates: tuple[Candidate, ...]) -> Request:
        """Return the request for one look at each candidate, in this launch."""
        timing = self._plan.timing
        return Request(
            self._collective, size, timing, False, timing.calls(size), 1, candidates,
            self._plan.communicator, self._launch,
        )  # fmt: skip


def _by_algorithm(times: Times) -> dict[str, float]:
    """Return the least seconds of each algorithm."""
    found: dict[str, float] = {}
    for candidate, seconds in times.items():
        found[candidate.algorithm] = min(found.get(candidate.algorithm, min(seconds)), *seconds)
    return found
