"""The search over one collective: check, tune parameters, choose algorithms, find crossovers.

The process is that of Faraj 2006, Fig. 4.4, steps 3 and 4, with interleaved races in place of
single measurements and a statistical test in place of the smaller mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stagegen.measure.measurer import Source
from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Request,
    Timing,
)
from stagegen.repository import Algorithm, Parameter
from stagegen.repository.algorithm import NATIVE
from stagegen.tune.candidates import (
    at_size,
    default_candidate,
    useful_values,
    variants,
    with_value,
)
from stagegen.tune.choose import Samples, choose, median
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.decision import Table
from stagegen.tune.race import Field, contenders, race

__all__ = ["Outcome", "Plan", "Search", "default_candidate"]

#: An algorithm that took more than HOPELESS times the best at HOPELESS_SIZES sizes in a row is
#: not tried at larger ones. Only sizes count at which bytes matter more than latency, that is,
#: where the best takes BYTES_MATTER times what it takes at the least size: a ring of 16 ranks
#: has four times the latency of a tree and wins in the end.
HOPELESS = 2.5
HOPELESS_SIZES = 2
BYTES_MATTER = 4

#: The native routine as a candidate.
NATIVE_CANDIDATE = Candidate(NATIVE)


@dataclass(frozen=True)
class Plan:
    """What is tuned, apart from the collective.

    Attributes:
        ranks: of the cluster.
        sizes: message sizes in bytes, ascending.
        timing: the timing mechanism.
        budget: seconds of measured time per race after which no further round begins.
        progress: told what is being done, at every step.
    """

    ranks: int
    sizes: tuple[int, ...]
    timing: Timing
    budget: float
    progress: Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What a search found for one collective.

    Attributes:
        tables: for the whole cluster, and for as many ranks without a topology.
        samples: at every size that was measured with all algorithms.
        wrong: checks that failed: these routines were never timed.
        failures: routines that ended or hung the job at some size: these were given up.
    """

    collective: str
    tables: tuple[Table, ...]
    samples: dict[int, Samples]
    wrong: tuple[Check, ...]
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
        self._crossovers = Crossovers(source, self._scout, self._handles, plan.progress)
        self._failures: list[Failure] = []
        self._samples: dict[int, Samples] = {}
        self._parameters: dict[str, Candidate] = {}
        self._tuned: set[str] = set()
        self._behind: Counter[str] = Counter()
        self._least: dict[bool, float] = {}

    def run(self) -> Outcome:
        """Check, then measure all sizes, then find the crossovers.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        wrong = self._drop_wrong()
        tables: tuple[Table, ...] = ()
        while not tables:
            try:
                tables = self._attempt()
            except CandidateFailed as failed:
                self._forget(failed.failure)
        samples = {size: self._samples[size] for size in self._plan.sizes}
        return Outcome(self._collective, tables, samples, wrong, tuple(self._failures))

    def _attempt(self) -> tuple[Table, ...]:
        """Measure the sizes that were not measured yet, and make the tables."""
        self._behind.clear()
        self._least.clear()
        for size in self._plan.sizes:
            if size not in self._samples:
                self._plan.progress(f"{self._collective} {size} B")
                self._samples[size] = self._race_at(size, self._parameters)
            self._note_hopeless(self._samples[size])
        return (
            self._table("cluster", frozenset(self._algorithms)),
            self._table("other", self._unaware()),
        )

    def _forget(self, failure: Failure) -> None:
        """Go on without a routine that failed; race again where all others lost to it."""
        self._failures.append(failure)
        del self._algorithms[failure.candidate.algorithm]
        unaware = self._unaware()
        for size, samples in list(self._samples.items()):
            left = {c: s for c, s in samples.items() if c.algorithm in self._algorithms}
            if any(not s.dropped for c, s in left.items() if c.algorithm in unaware):
                self._samples[size] = left
            else:
                del self._samples[size]

    def _unaware(self) -> frozenset[str]:
        return frozenset(n for n, a in self._algorithms.items() if not a.topology_specific)

    def _drop_wrong(self) -> tuple[Check, ...]:
        """Compare every routine with the native one; forget those that are wrong."""
        candidates = tuple(
            candidate
            for algorithm in self._algorithms.values()
            if algorithm.name != NATIVE
            for candidate in variants(algorithm)
        )
        self._plan.progress(f"{self._collective}: checking")
        checks = self._source.check(self._collective, candidates) if candidates else []
        wrong = tuple(check for check in checks if check.wrong != 0)
        for check in wrong:
            self._algorithms.pop(check.candidate.algorithm, None)
        return wrong

    def _race_at(self, size: int, parameters: dict[str, Candidate]) -> Samples:
        """Tune the parameters of those that may win at one size, then time all algorithms.

        What was tuned at a size before is a good guess: an algorithm that is behind with it is
        not tuned again, as that takes as long as several races.
        """
        algorithms = [
            algorithm
            for algorithm in self._algorithms.values()
            if algorithm.handles(size) and not self._is_hopeless(algorithm.name)
        ]
        for algorithm in algorithms:
            known = parameters.get(algorithm.name, default_candidate(algorithm))
            parameters[algorithm.name] = at_size(algorithm, known, size)
        field = self._field(algorithms, parameters)
        tunable = [a for a in algorithms if _choices(a, size)]
        near = (
            contenders(self._source, self._scout(size, field.candidates), field) if tunable else ()
        )
        for algorithm in tunable:
            best = parameters[algorithm.name]
            if best in near or algorithm.name not in self._tuned:
                self._tuned.add(algorithm.name)
                parameters[algorithm.name] = self._tune_parameters(algorithm, size, best)
        return self._race(size, self._field(algorithms, parameters))

    def _field(self, algorithms: Sequence[Algorithm], parameters: Mapping[str, Candidate]) -> Field:
        """Return the race of these algorithms: of all, and of those that need no topology."""
        candidates = tuple(parameters[algorithm.name] for algorithm in algorithms)
        unaware = self._unaware()
        return Field(
            candidates,
            (frozenset(candidates), frozenset(c for c in candidates if c.algorithm in unaware)),
        )

    def _race(self, size: int, field: Field) -> Samples:
        request = self._scout(size, field.candidates)
        return race(self._source, request, field, self._plan.budget)

    def _note_hopeless(self, samples: Samples) -> None:
        """Count at how many sizes in a row each algorithm was far behind.

        Those that need no topology are compared among themselves: they also serve alone.
        """
        unaware = self._unaware()
        for candidate, sample in samples.items():
            alone = candidate.algorithm in unaware
            rivals = (s for c, s in samples.items() if not alone or c.algorithm in unaware)
            best = min(map(median, rivals))
            least = self._least.setdefault(alone, best)
            behind = min(sample.seconds) > HOPELESS * best and best > BYTES_MATTER * least
            self._behind[candidate.algorithm] = (
                self._behind[candidate.algorithm] + 1 if behind else 0
            )

    def _is_hopeless(self, name: str) -> bool:
        return name != NATIVE and self._behind[name] >= HOPELESS_SIZES

    def _tune_parameters(self, algorithm: Algorithm, size: int, best: Candidate) -> Candidate:
        """Try all values of one parameter after the other, as if they were independent.

        The first round decides: it is the race of all algorithms afterwards that counts.
        """
        for parameter in _choices(algorithm, size):
            values = useful_values(parameter, size)
            field_of = tuple(with_value(best, parameter.name, value) for value in values)
            everyone = Field(field_of, (frozenset(field_of),))
            samples = race(self._source, self._scout(size, field_of), everyone, budget=0)
            best = _keep_or_replace(samples, best)
        return best

    def _table(self, kind: str, names: frozenset[str]) -> Table:
        """Choose among the algorithms of those names, size by size, with crossovers."""
        choices: dict[int, Candidate] = {}
        incumbent: Candidate | None = None
        for size in self._plan.sizes:
            samples = self._samples[size]
            eligible = {c: s for c, s in samples.items() if c.algorithm in names}
            incumbent = choose(eligible, incumbent, NATIVE_CANDIDATE)
            choices[size] = incumbent
        rules = tuple(self._crossovers.rules(choices))
        return Table(self._collective, kind, self._plan.ranks, rules)

    def _handles(self, candidate: Candidate, size: int) -> bool:
        return self._algorithms[candidate.algorithm].handles(size)

    def _scout(self, size: int, candidates: tuple[Candidate, ...]) -> Request:
        """Return the request for one look at each candidate."""
        return Request(self._collective, size, self._plan.timing, False, 1, 1, candidates)


def _choices(algorithm: Algorithm, size: int) -> list[Parameter]:
    """Return the parameters of which more than one value differs at a size."""
    return [p for p in algorithm.parameters if len(useful_values(p, size)) > 1]


def _keep_or_replace(samples: Samples, incumbent: Candidate) -> Candidate:
    return choose(samples, incumbent, incumbent)
