"""The search over one collective: check, tune parameters, choose algorithms, find crossovers.

The process is that of Faraj 2006, Fig. 4.4, steps 3 and 4, with interleaved races in place of
single measurements and a statistical test in place of the smaller mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stagegen.measure.measurer import Source
from stagegen.measure.records import Candidate, Check, Request, Timing
from stagegen.repository import Algorithm
from stagegen.repository.algorithm import NATIVE
from stagegen.tune.choose import Samples, choose, crossover, median
from stagegen.tune.decision import Rule, Table
from stagegen.tune.race import ROUNDS, Field, Sample, decisive, race

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
    """

    collective: str
    tables: tuple[Table, ...]
    samples: dict[int, Samples]
    wrong: tuple[Check, ...]


class Search:
    """Tunes one collective on a source of measurements."""

    def __init__(
        self, source: Source, plan: Plan, collective: str, algorithms: Sequence[Algorithm]
    ):
        self._source = source
        self._plan = plan
        self._collective = collective
        self._algorithms = {a.name: a for a in algorithms if a.works_for(plan.ranks)}
        self._duels: dict[tuple[int, Candidate, Candidate], Samples] = {}
        self._behind: Counter[str] = Counter()
        self._least: dict[bool, float] = {}

    def run(self) -> Outcome:
        """Check, then measure all sizes, then find the crossovers.

        Raises:
            MeasurementError: a measurement failed, or the log lacks one.
        """
        wrong = self._drop_wrong()
        samples: dict[int, Samples] = {}
        parameters: dict[str, Candidate] = {}
        for size in self._plan.sizes:
            self._plan.progress(f"{self._collective} {size} B")
            samples[size] = self._race_at(size, parameters)
            self._note_hopeless(samples[size])
        tables = [self._table("cluster", samples, frozenset(self._algorithms))]
        tables.append(self._table("other", samples, self._unaware()))
        return Outcome(self._collective, tuple(tables), samples, wrong)

    def _unaware(self) -> frozenset[str]:
        return frozenset(n for n, a in self._algorithms.items() if not a.topology_specific)

    def _drop_wrong(self) -> tuple[Check, ...]:
        """Compare every routine with the native one; forget those that are wrong."""
        candidates = tuple(
            candidate
            for algorithm in self._algorithms.values()
            if algorithm.name != NATIVE
            for candidate in _extremes(algorithm)
        )
        self._plan.progress(f"{self._collective}: checking")
        checks = self._source.check(self._collective, candidates) if candidates else []
        wrong = tuple(check for check in checks if check.wrong != 0)
        for check in wrong:
            self._algorithms.pop(check.candidate.algorithm, None)
        return wrong

    def _race_at(self, size: int, parameters: dict[str, Candidate]) -> Samples:
        """Tune parameters at one size (linear search), then time all algorithms."""
        candidates = []
        for algorithm in self._algorithms.values():
            if not algorithm.handles(size) or self._is_hopeless(algorithm.name):
                continue
            if algorithm.parameters:
                parameters[algorithm.name] = self._tune_parameters(algorithm, size, parameters)
                candidates.append(parameters[algorithm.name])
            else:
                candidates.append(Candidate(algorithm.name))
        unaware = self._unaware()
        field = Field(
            candidates=tuple(candidates),
            groups=(
                frozenset(candidates),
                frozenset(c for c in candidates if c.algorithm in unaware),
            ),
        )
        return self._race(size, field)

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

    def _tune_parameters(
        self, algorithm: Algorithm, size: int, parameters: dict[str, Candidate]
    ) -> Candidate:
        """Try all values of one parameter after the other, as if they were independent."""
        best = parameters.get(algorithm.name, default_candidate(algorithm))
        for parameter in algorithm.parameters:
            values = _useful_values(parameter.values, size)
            field_of = tuple(_with(best, parameter.name, value) for value in values)
            if len(field_of) == 1:
                best = field_of[0]
                continue
            everyone = frozenset(field_of)
            samples = self._race(size, Field(field_of, (everyone,)))
            incumbent = best if best in everyone else field_of[-1]
            best = _keep_or_replace(samples, incumbent)
        return best

    def _table(self, kind: str, samples: dict[int, Samples], names: frozenset[str]) -> Table:
        """Choose among the algorithms of those names, size by size, with crossovers."""
        choices: dict[int, Candidate] = {}
        incumbent: Candidate | None = None
        for size, all_of in samples.items():
            eligible = {c: s for c, s in all_of.items() if c.algorithm in names}
            incumbent = choose(eligible, incumbent, NATIVE_CANDIDATE)
            choices[size] = incumbent
        rules = tuple(self._rules(choices))
        return Table(self._collective, kind, self._plan.ranks, rules)

    def _rules(self, choices: dict[int, Candidate]) -> Iterator[Rule]:
        sizes = list(choices)
        yield Rule(0, choices[sizes[0]])
        for low, high in pairwise(sizes):
            if choices[low] == choices[high]:
                continue
            interval = self._crossover(low, high, choices[low], choices[high])
            yield Rule(interval[1], choices[high], interval)

    def _crossover(
        self, low: int, high: int, lower: Candidate, upper: Candidate
    ) -> tuple[int, int]:
        def above_wins(size: int) -> bool:
            for candidate, wins in ((lower, True), (upper, False)):
                if not self._algorithms[candidate.algorithm].handles(size):
                    return wins
            self._plan.progress(f"{self._collective} {size} B: {lower.spec} or {upper.spec}")
            samples = self._duel(size, lower, upper)
            return median(samples[upper]) < median(samples[lower])

        return crossover(low, high, above_wins)

    def _duel(self, size: int, one: Candidate, other: Candidate) -> Samples:
        """Time two candidates in turn."""
        if (size, one, other) not in self._duels:
            request = self._scout(size, (one, other))
            fastest = min(map(min, self._source.measure(request).seconds))
            request = decisive(request, fastest, ROUNDS[0])
            times = self._source.measure(request).by_candidate()
            self._duels[size, one, other] = {c: Sample(times[c]) for c in times}
        return self._duels[size, one, other]

    def _scout(self, size: int, candidates: tuple[Candidate, ...]) -> Request:
        """Return the request for one look at each candidate."""
        return Request(self._collective, size, self._plan.timing, False, 1, 1, candidates)


def default_candidate(algorithm: Algorithm) -> Candidate:
    """Return the algorithm with the default of each parameter."""
    pairs = ((parameter.name, parameter.default) for parameter in algorithm.parameters)
    return Candidate(algorithm.name, tuple(sorted(pairs)))


def _with(candidate: Candidate, name: str, value: int) -> Candidate:
    values = {**dict(candidate.parameters), name: value}
    return Candidate(candidate.algorithm, tuple(sorted(values.items())))


def _extremes(algorithm: Algorithm) -> Iterator[Candidate]:
    """Yield the candidates whose results are compared: default, least and largest values."""
    default = default_candidate(algorithm)
    seen = [default]
    yield default
    for parameter in algorithm.parameters:
        for value in (parameter.values[0], parameter.values[-1]):
            candidate = _with(default, parameter.name, value)
            if candidate not in seen:
                seen.append(candidate)
                yield candidate


def _useful_values(values: Sequence[int], size: int) -> list[int]:
    """Return the values that differ at this size: of those that cover it whole, the least."""
    smaller = [value for value in values if value < size]
    covering = [value for value in values if value >= size]
    return smaller + covering[:1]


def _keep_or_replace(samples: Samples, incumbent: Candidate) -> Candidate:
    return choose(samples, incumbent, incumbent)
