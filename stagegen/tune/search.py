"""The search over one collective on one communicator: tune parameters, choose algorithms.

The process follows Faraj 2006, Fig. 4.4, steps 3 and 4, with interleaved races in place of
single measurements and a statistical test in place of the smaller mean. It has passes, one for each
launch of the job: :meth:`Search.scout` in launch 0, :meth:`Search.confirm` in the launches that
decide, and :meth:`Search.conclude`. So a launch serves the searches of all collectives.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial

from stagegen.catalogue import Algorithm
from stagegen.measure.records import Candidate, CandidateFailed, Failure, Request
from stagegen.measure.source import Source
from stagegen.tune.candidates import default_candidate, handles
from stagegen.tune.choose import fastest, noise_among
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.duels import Duels
from stagegen.tune.further import asks_for_more, further_launches
from stagegen.tune.kinds import TableKinds
from stagegen.tune.launches import name_finalists, run_launch
from stagegen.tune.looks import Looks
from stagegen.tune.one_rule import name_finalists_of_all
from stagegen.tune.outcomes import outcome_of
from stagegen.tune.plan import Outcome, Plan
from stagegen.tune.point import Point, noise_of
from stagegen.tune.stakes import Stakes

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
        self._kinds = TableKinds(plan.kinds, self._known)
        self._looks = Looks(source, plan, collective, self._algorithms, self._kinds, self._look)
        self._failures: list[Failure] = []

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

    @property
    def points(self) -> Mapping[int, Point]:
        """What is known of each size so far."""
        return self._looks.points

    def run(self) -> Outcome:
        """Make all passes, each in a launch of its own.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self.scout()
        for launch in range(1, self._plan.protocol.launches + 1):
            self.confirm(launch)
        for launch in further_launches(self._plan.protocol):
            if self.asks_for_more():
                self.confirm(launch)
        return self.conclude()

    def scout(self) -> Outcome:
        """Look at all sizes without compositions, in launch 0; the outcome is preliminary.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._until_none_fails(self._looks.all)
        return self._outcome(None)

    def compose(self, compositions: Mapping[int, Mapping[Candidate, float]]) -> None:
        """After :meth:`scout`, look at compositions by size; each comes with its parts' seconds.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._looks.compositions = compositions
        self._until_none_fails(self._looks.all)

    def learn_from(self, other: Search) -> None:
        """Predict the times of compositions from those on another communicator."""
        self._looks.learn_from(other._looks)

    def confirm(self, launch: int) -> None:
        """Time the finalists of all sizes in one of the launches that decide.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._launch = launch
        self._until_none_fails(self._confirm_all)

    def asks_for_more(self) -> Collection[int]:
        """Return the sizes at which a launch after those of the protocol may decide."""
        protocol = self._plan.protocol
        return [size for size, point in self.points.items() if asks_for_more(point, protocol)]

    def conclude(self) -> Outcome:
        """Choose, and find the crossovers in the launch of the last pass.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        outcomes: list[Outcome] = []

        def end() -> None:
            self._confirm_all()
            outcomes.append(self._outcome(self._crossovers(), final=True))

        self._until_none_fails(end)
        return outcomes[-1]

    def leave_out(self, routines: Set[tuple[str, str]]) -> bool:
        """Go on without algorithms that failed elsewhere, each with its collective.

        Compositions in which one of them serves a part are left out, too. Returns whether any was
        timed.
        """
        new = sorted(routines - self._looks.banned)
        timed = [self._looks.forget(*routine) for routine in new]
        return any(timed)

    def pending(self) -> tuple[int, ...]:
        """Return the sizes that may be worth a look: of the plan, and middles of odd ones."""
        return self._looks.pending()

    def rungs(self) -> Mapping[int, int]:
        """Return the sizes that are looked at to predict larger ones, as :class:`Looks` has it."""
        return self._looks.rungs()

    def look_at(
        self, size: int, hints: Mapping[int, tuple[Candidate, ...]], *, thrifty: bool = False
    ) -> None:
        """Look at one of the sizes that are pending; :class:`Plan` explains ``thrifty``.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._looks.take(hints, thrifty=thrifty)
        self._until_none_fails(
            lambda: self._looks.at(size) if size in self._looks.pending() else None
        )

    def gains_of_longer(self) -> Mapping[int, float]:
        """Return the sizes at which more bytes take less time, as :class:`Looks` has it."""
        return self._looks.gains_of_longer()

    def look_at_longer(self, size: int) -> None:
        """Look at the candidates that take less time with more bytes.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._until_none_fails(
            lambda: self._looks.at_longer(size) if size in self.gains_of_longer() else None
        )

    def compose_at(self, size: int, given: Mapping[Candidate, float]) -> None:
        """Look at compositions at a size that was looked at without them.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._looks.compositions = {**self._looks.compositions, size: given}
        self._until_none_fails(
            lambda: self._looks.at_compositions(size) if size in self.points else None
        )

    def confirm_at(self, size: int, launch: int, launches: int) -> None:
        """Time the finalists of a size in one of ``launches`` launches; the plan may have more.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        self._launch = launch
        protocol = replace(self._plan.protocol, launches=launches)
        self._plan = replace(self._plan, protocol=protocol)
        self._until_none_fails(lambda: self._confirm(size) if size in self.points else None)

    @property
    def launch(self) -> int:
        """The number of the launch that it is in."""
        return self._launch

    def join(self, launch: int) -> None:
        """Go on in a launch that another search has begun."""
        self._launch = launch

    def outcome(self, *, duels: bool = False, final: bool = False) -> Outcome:
        """Return the outcome of what is known so far, with duels for the crossovers or without.

        With duels, or if it is final, its choices are what would serve.

        Raises:
            MeasurementError: a duel failed, or the log lacks it.
        """
        outcomes: list[Outcome] = []
        crossovers = self._crossovers() if duels else None
        self._until_none_fails(
            lambda: outcomes.append(self._outcome(crossovers, final=final or duels))
        )
        return outcomes[-1]

    def stakes(self, kind: str) -> Stakes:
        """Return what the choices for a kind of tables may lose, by what is known so far."""
        may_serve = partial(self._kinds.may_serve, kind)
        return Stakes(self.points, self._plan.bound, self._looks.below, may_serve)

    def _crossovers(self) -> Crossovers:
        gain = self._plan.protocol.gain
        duels = Duels(self._source, self._request, self._plan.progress, gain)
        return Crossovers(duels, self._handles, gain, self._plan.is_told, self._plan.bound)

    def _until_none_fails(self, attempt: Callable[[], None]) -> None:
        """Try until no candidate fails any more; what was measured is not measured again."""
        while True:
            try:
                return attempt()
            except CandidateFailed as failed:
                self._failures.append(failed.failure)
                self._looks.forget(self._collective, failed.failure.candidate.algorithm)

    def _confirm_all(self) -> None:
        """Time the finalists of each size in this launch, where that was not done."""
        self._looks.all()
        for size in sorted(self.points):
            self._confirm(size)

    def _confirm(self, size: int) -> None:
        """Time the finalists of a size in this launch, if that was not done."""
        point = self.points[size]
        if not point.finalists:
            self._name_finalists(size)
        is_further = self._launch in further_launches(self._plan.protocol)
        if is_further and point.launches and not asks_for_more(point, self._plan.protocol):
            return
        if self._launch not in point.launches:
            self._plan.progress(f"{self._collective} {size} B, launch {self._launch}")
            request = self._request(size, point.finalists)
            cap = self._plan.budget / self._plan.protocol.launches
            alike = [p for p in self.points.values() if p.is_long == point.is_long]
            # Only all launches tell whether a routine is slower than native with short calls.
            eliminates = point.is_long or not self._plan.one_rule
            noise = noise_of(alike) if eliminates else None
            scatter = self._scatter(point)
            run_launch(self._source, request, point, self._plan.protocol, cap, noise, scatter)

    def _scatter(self, point: Point) -> float:
        """Return the noise of launches so far, as the choice has it. One rule does not ask for it.

        Later launches may add to it: then launches end early, and native serves nonetheless.
        """
        if self._plan.one_rule:
            return 0.0
        samples = {size: known.samples() for size, known in self.points.items()}
        return noise_among(samples, point.is_long)

    def _name_finalists(self, size: int) -> None:
        if self._plan.one_rule:
            return name_finalists_of_all(self.points, self._kinds, self._plan.protocol.gain)
        sizes = sorted(self.points)
        place = sizes.index(size)
        around = [*sizes[max(0, place - 1) : place], *sizes[place + 1 : place + 2]]
        neighbours = [c for one in around for c in self._leaders(one)]
        name_finalists(self.points[size], neighbours, is_told=self._plan.is_told)

    def _leaders(self, size: int) -> list[Candidate]:
        """Return the leader of each kind at a size, as far as it is known."""
        samples = self.points[size].samples()
        return [fastest(self._kinds.of(kind, samples)) for kind in self._plan.kinds]

    def _outcome(self, crossovers: Crossovers | None, *, final: bool = False) -> Outcome:
        known = self.points, self.failures
        return outcome_of(
            self._collective, self._plan, self._kinds, *known, crossovers, final=final
        )

    def _handles(self, candidate: Candidate, size: int) -> bool:
        return handles(candidate, size, self._plan.ranks, self._known)

    def _look(self, size: int, candidates: tuple[Candidate, ...]) -> Request:
        """Return the request for a look at each candidate, in whatever launch it is needed."""
        return replace(self._request(size, candidates), look=True)

    def _request(self, size: int, candidates: tuple[Candidate, ...]) -> Request:
        """Return the request to time each candidate once, in this launch."""
        timing = self._plan.timing
        return Request(
            self._collective, size, timing, False, timing.calls(size), 1, candidates,
            self._plan.communicator, self._launch,
        )  # fmt: skip
