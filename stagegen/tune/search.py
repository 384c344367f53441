"""The search over one collective on one communicator: tune parameters, choose algorithms.

The process is that of Faraj 2006, Fig. 4.4, steps 3 and 4, with interleaved races in place of
single measurements and a statistical test in place of the smaller mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stagegen.measure.measurer import Source
from stagegen.measure.records import WHOLE, Candidate, CandidateFailed, Failure, Request, Timing
from stagegen.repository import Algorithm
from stagegen.tune.candidates import at_size, default_candidate
from stagegen.tune.choose import Samples
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.decision import CLUSTER, HOSTS, OTHER, Table
from stagegen.tune.duels import Duels
from stagegen.tune.hopeless import Hopeless
from stagegen.tune.parameters import choices, tune_parameters
from stagegen.tune.race import Field, finish, look, near
from stagegen.tune.rules import eligible, make_rules

__all__ = ["Outcome", "Plan", "Search", "default_candidate"]


@dataclass(frozen=True)
class Plan:
    """What is tuned, apart from the collective.

    Attributes:
        ranks: of the communicator.
        sizes: message sizes in bytes, ascending.
        timing: the timing mechanism.
        budget: seconds of measured time per race after which no further round begins.
        progress: told what is being done, at every step.
        communicator: its name.
        kinds: the tables that are made, the most special first.
    """

    ranks: int
    sizes: tuple[int, ...]
    timing: Timing
    budget: float
    progress: Callable[[str], None]
    communicator: str = WHOLE
    kinds: tuple[str, ...] = (CLUSTER, HOSTS, OTHER)


@dataclass(frozen=True)
class Outcome:
    """What a search found for one collective on one communicator.

    Attributes:
        communicator: its name.
        tables: one of each kind, for as many ranks as were measured.
        samples: at every size that was measured with all algorithms.
        failures: routines that ended or hung the job at some size: these were given up.
    """

    collective: str
    communicator: str
    tables: tuple[Table, ...]
    samples: dict[int, Samples]
    failures: tuple[Failure, ...]


class Search:
    """Tunes one collective on a source of measurements."""

    def __init__(
        self, source: Source, plan: Plan, collective: str, algorithms: Sequence[Algorithm]
    ):
        self._source = source
        self._plan = plan
        self._collective = collective
        self._algorithms = {a.name: a for a in algorithms if a.works_for(plan.ranks)}
        self._duels = Duels(source, self._scout, plan.progress)
        self._crossovers = Crossovers(self._duels, self._handles)
        self._failures: list[Failure] = []
        self._samples: dict[int, Samples] = {}
        self._parameters: dict[str, Candidate] = {}
        self._tuned: set[str] = set()

    def run(self) -> Outcome:
        """Measure all sizes, then find the crossovers.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        tables: tuple[Table, ...] = ()
        while not tables:
            try:
                tables = self._attempt()
            except CandidateFailed as failed:
                self._forget(failed.failure)
        samples = {size: self._samples[size] for size in self._plan.sizes}
        return Outcome(
            self._collective, self._plan.communicator, tables, samples, tuple(self._failures)
        )

    def _attempt(self) -> tuple[Table, ...]:
        """Measure the sizes that were not measured yet, and make the tables."""
        hopeless = Hopeless()
        for size in self._plan.sizes:
            if size not in self._samples:
                self._plan.progress(f"{self._collective} {size} B")
                self._samples[size] = self._race_at(size, hopeless)
            hopeless.note(self._samples[size], self._kinds(self._samples[size]))
        return tuple(map(self._table, self._plan.kinds))

    def _forget(self, failure: Failure) -> None:
        """Go on without a routine that failed; race again where all others lost to it."""
        self._failures.append(failure)
        del self._algorithms[failure.candidate.algorithm]
        for size, samples in list(self._samples.items()):
            left = {c: s for c, s in samples.items() if c.algorithm in self._algorithms}
            running = (c for c, s in left.items() if not s.dropped)
            if all(self._kinds(running)):
                self._samples[size] = left
            else:
                del self._samples[size]

    def _kinds(self, candidates: Iterable[Candidate]) -> tuple[frozenset[Candidate], ...]:
        """Return the candidates that may serve each kind of tables, all of them first."""
        everyone = frozenset(candidates)
        return tuple(
            frozenset(c for c in everyone if eligible(kind, self._algorithms[c.algorithm]))
            for kind in self._plan.kinds
        )

    def _race_at(self, size: int, hopeless: Hopeless) -> Samples:
        """Tune the parameters of those that may win at one size, then time all algorithms.

        What was tuned at a size before is a good guess: an algorithm that is behind with it is
        not tuned again, as that takes as long as several races.
        """
        algorithms = [
            algorithm
            for algorithm in self._algorithms.values()
            if algorithm.handles(size) and algorithm.name not in hopeless
        ]
        for algorithm in algorithms:
            known = self._parameters.get(algorithm.name, default_candidate(algorithm))
            self._parameters[algorithm.name] = at_size(algorithm, known, size)
        field = self._field(self._parameters[algorithm.name] for algorithm in algorithms)
        behind = hopeless.behind(field.candidates)
        seen = look(self._source, self._scout(size, field.candidates), field, behind)
        contenders = near(field, seen)
        for algorithm in algorithms:
            known = self._parameters[algorithm.name]
            if choices(algorithm, size) and (
                known in contenders or algorithm.name not in self._tuned
            ):
                self._tuned.add(algorithm.name)
                del seen[known]
                best, seconds = tune_parameters(self._source, self._scout, algorithm, size, known)
                seen[best], self._parameters[algorithm.name] = seconds, best
        field = self._field(seen)
        request = self._scout(size, field.candidates)
        return finish(self._source, request, field, seen, self._plan.budget)

    def _field(self, candidates: Iterable[Candidate]) -> Field:
        """Return the race of these candidates, with a winner for each kind of tables."""
        everyone = tuple(candidates)
        return Field(everyone, tuple(group for group in self._kinds(everyone) if group))

    def _table(self, kind: str) -> Table:
        """Choose among the algorithms that may serve a kind of communicators."""
        samples = {
            size: {
                candidate: sample
                for candidate, sample in samples.items()
                if eligible(kind, self._algorithms[candidate.algorithm])
            }
            for size, samples in self._samples.items()
        }
        rules = tuple(make_rules(samples, self._algorithms, self._duels, self._crossovers))
        ranks = self._plan.ranks
        return Table(self._collective, kind, ranks, rules, ranks, ranks)

    def _handles(self, candidate: Candidate, size: int) -> bool:
        return self._algorithms[candidate.algorithm].handles(size)

    def _scout(self, size: int, candidates: tuple[Candidate, ...]) -> Request:
        """Return the request for one look at each candidate."""
        return Request(
            self._collective, size, self._plan.timing, False, 1, 1, candidates,
            self._plan.communicator,
        )  # fmt: skip
