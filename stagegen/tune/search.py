"""The search over one collective on one communicator: tune parameters, choose algorithms.

The process follows Faraj 2006, Fig. 4.4, steps 3 and 4, with interleaved races in place of
single measurements and a statistical test in place of the smaller mean.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stagegen.catalogue import Algorithm
from stagegen.measure.records import Candidate, CandidateFailed, Failure, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import is_faster
from stagegen.tune.candidates import algorithms_of, at_size, default_candidate, handles
from stagegen.tune.choose import Samples, fastest
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.decision import Table
from stagegen.tune.duels import Duels
from stagegen.tune.parameters import choices, tune_parameters
from stagegen.tune.plan import Outcome, Plan
from stagegen.tune.pruning import Pruning
from stagegen.tune.race import Field, Sample, finish, look, near, race
from stagegen.tune.rules import eligible, make_rules

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
        self._duels = Duels(source, self._scout, plan.progress)
        self._crossovers = Crossovers(self._duels, self._handles)
        self._failures: list[Failure] = []
        self._samples: dict[int, Samples] = {}
        self._parameters: dict[str, Candidate] = {}
        self._tuned: set[str] = set()
        self._composed: set[int] = set()

    @property
    def compositions(self) -> tuple[Algorithm, ...]:
        """The algorithms with parts."""
        return tuple(algorithm for algorithm in self._algorithms.values() if algorithm.parts)

    @property
    def known(self) -> Mapping[str, Algorithm]:
        """All algorithms, as :func:`stagegen.tune.candidates.algorithms_of` needs them."""
        return self._known

    def run(self) -> Outcome:
        """Measure all sizes without compositions, then find the crossovers.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        return self._outcome({})

    def compose(self, compositions: Mapping[int, Sequence[Candidate]]) -> Outcome:
        """After :meth:`run`, measure these at each size, too, and find the crossovers anew.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        return self._outcome(compositions)

    def _outcome(self, compositions: Mapping[int, Sequence[Candidate]]) -> Outcome:
        """Try until no candidate fails any more."""
        tables: tuple[Table, ...] = ()
        while not tables:
            try:
                tables = self._attempt(compositions)
            except CandidateFailed as failed:
                self._forget(failed.failure)
        samples = {size: self._samples[size] for size in self._plan.sizes}
        return Outcome(
            self._collective, self._plan.communicator, tables, samples, tuple(self._failures)
        )

    def _attempt(self, compositions: Mapping[int, Sequence[Candidate]]) -> tuple[Table, ...]:
        """Measure what was not measured yet, and make the tables."""
        pruning = Pruning()
        for size in self._plan.sizes:
            if size not in self._samples:
                self._plan.progress(f"{self._collective} {size} B")
                self._samples[size] = self._race_at(size, pruning)
                self._composed.discard(size)
            left = [
                candidate
                for candidate in compositions.get(size, ())
                if candidate.algorithm in self._algorithms and candidate.algorithm not in pruning
            ]
            if left and size not in self._composed:
                self._samples[size] = self._with_compositions(size, left)
                self._composed.add(size)
            pruning.observe(self._samples[size], self._kinds(self._samples[size]))
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
            frozenset(candidate for candidate in everyone if self._may_serve(kind, candidate))
            for kind in self._plan.kinds
        )

    def _may_serve(self, kind: str, candidate: Candidate) -> bool:
        algorithms = algorithms_of(candidate, self._known)
        return all(eligible(kind, algorithm) for algorithm in algorithms)

    def _race_at(self, size: int, pruning: Pruning) -> Samples:
        """Tune the parameters of algorithms that may win at one size, then time all algorithms.

        The parameters of an earlier size are a good guess: an algorithm that is behind with them
        is not tuned again, as that takes as long as several races.
        """
        algorithms = [
            algorithm
            for algorithm in self._algorithms.values()
            if not algorithm.parts and algorithm.handles(size) and algorithm.name not in pruning
        ]
        for algorithm in algorithms:
            known = self._parameters.get(algorithm.name, default_candidate(algorithm))
            self._parameters[algorithm.name] = at_size(algorithm, known, size)
        field = self._field(self._parameters[algorithm.name] for algorithm in algorithms)
        behind = pruning.behind(field.candidates)
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

    def _with_compositions(self, size: int, compositions: Sequence[Candidate]) -> Samples:
        """Race compositions against the best of the others, which have samples already.

        A composition replaces it only if it also wins a duel: a table of fewer routines is better,
        and among many candidates one is lucky.
        """
        self._plan.progress(f"{self._collective} {size} B: compositions")
        known = self._samples[size]
        best = [
            fastest({candidate: known[candidate] for candidate in kind})
            for kind in self._kinds(c for c, sample in known.items() if not sample.dropped)
        ]
        field = self._field(dict.fromkeys((*best, *compositions)))
        request = self._scout(size, field.candidates)
        raced = race(self._source, request, field, self._plan.budget)
        won = {
            leader
            for group, plain in zip(self._kinds(field.candidates), best, strict=True)
            if (leader := fastest({candidate: raced[candidate] for candidate in group})) != plain
            and self._beats(size, leader, plain, raced)
        }
        return {
            **known,
            **{plain: raced[plain] for plain in best if not raced[plain].dropped},
            **{c: replace(raced[c], dropped=c not in won) for c in compositions},
        }

    def _beats(
        self, size: int, leader: Candidate, plain: Candidate, raced: Mapping[Candidate, Sample]
    ) -> bool:
        """Whether a composition is faster than another candidate, in a race and in a duel."""
        if raced[plain].dropped:
            return True
        if not is_faster(raced[leader].seconds, raced[plain].seconds):
            return False
        return self._duels.is_faster(size, leader, plain)

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
                if self._may_serve(kind, candidate)
            }
            for size, samples in self._samples.items()
        }
        rules = tuple(make_rules(samples, self._known, self._duels, self._crossovers))
        ranks = self._plan.ranks
        return Table(self._collective, kind, ranks, rules, ranks, ranks)

    def _handles(self, candidate: Candidate, size: int) -> bool:
        return handles(candidate, size, self._plan.ranks, self._known)

    def _scout(self, size: int, candidates: tuple[Candidate, ...]) -> Request:
        """Return the request for one look at each candidate."""
        return Request(
            self._collective, size, self._plan.timing, False, 1, 1, candidates,
            self._plan.communicator,
        )  # fmt: skip
