"""Tunes all collectives of one cluster, on its communicators: one source, one decision table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeVar

from stagegen.catalogue import Algorithm, Catalogue, Collective, applicable, groups_of
from stagegen.catalogue.algorithm import LEVELS
from stagegen.catalogue.cluster_schedules import why_undivided
from stagegen.generate.pattern_templates import algorithm_names
from stagegen.measure.records import Candidate, Check
from stagegen.measure.source import Source
from stagegen.patterns import Pattern
from stagegen.topology import WHOLE, Topology
from stagegen.tune.bounds import bound_of_pattern, bound_or_none, size_of_pattern
from stagegen.tune.checking import CheckedSource, find_wrong, find_wrong_among
from stagegen.tune.communicators import Communicator, as_seen_by, find_communicators
from stagegen.tune.compositions import Compositions
from stagegen.tune.decision import HOSTS, ONE_HOST, OTHER, DecisionTable, Spending
from stagegen.tune.experiments import Experiments
from stagegen.tune.hints import Known, hints_from
from stagegen.tune.plan import Outcome, Plan
from stagegen.tune.purse import PaidSource, Purse
from stagegen.tune.ranges import of_all_shapes
from stagegen.tune.rules import eligible
from stagegen.tune.scope import Options
from stagegen.tune.search import Search
from stagegen.tune.spending import Spender
from stagegen.tune.stated import spending_of
from stagegen.tune.subject import Subject
from stagegen.tune.together import RunSearches, in_turn, together

T = TypeVar("T")


@dataclass(frozen=True)
class Tuned:
    """The result of tuning: the decision, and the measurements behind it.

    Attributes:
        decision: the tables of all collectives.
        outcomes: by collective, and for each the communicators in the order of the options.
        wrong: checks that failed; their routines were never timed.
        parts: outcomes of collectives that only serve parts; no table is made of them.
    """

    decision: DecisionTable
    outcomes: tuple[Outcome, ...]
    wrong: tuple[Check, ...]
    parts: tuple[Outcome, ...] = ()


#: Where a size is that of the whole message, sizes go on, as in other collectives each rank gets as
#: much from every rank: up to the number of ranks times the largest size, at most so many times.
WHOLE_MOST = 16


def sizes_of(
    collective: Collective, options: Options, ranks: int, communicator: str = WHOLE
) -> tuple[int, ...]:
    """Return the sizes in bytes at which a collective is measured on a communicator.

    A collective with one rule for all calls is measured once: with the largest size, where a wrong
    choice costs most, or with 0 if it has no data.
    """
    pattern = options.pattern_of(communicator)
    if pattern is not None:
        return sizes_of_pattern(pattern, options.scales)
    sizes = options.sizes_on(collective.name, communicator)
    largest = options.sizes[-1]
    if collective.has_one_rule:
        return (largest if collective.has_data else 0,)
    longest = largest * min(ranks, WHOLE_MOST)
    goes_on = collective.counts_whole and longest > largest and not options.wanted
    return (*sizes, longest) if goes_on else sizes


def sizes_of_pattern(pattern: Pattern, scales: Sequence[float]) -> tuple[int, ...]:
    """Return the sizes in bytes at which a pattern is measured (:func:`size_of_pattern`)."""
    return tuple(sorted({max(1, round(scale * size_of_pattern(pattern))) for scale in scales}))


def steps(options: Options) -> int:
    """Return how many steps, at the least, tuning reports to ``progress``."""
    return len(options.communicators) * len(options.collectives) * (1 + len(options.sizes))


def kinds_of(communicators: Sequence[Communicator]) -> Mapping[Communicator, tuple[str, ...]]:
    """Return the kinds of tables to make from the measurements of each communicator.

    It makes its own table, if it has one, and the table for any communicators of its shape, if it
    is the first of that shape. Named groups come last: their hosts were chosen for a reason.
    Measurements on one host serve only ranks on one host.
    """
    by_rank = sorted((one for one in communicators if not one.pattern), key=_is_named_group)
    first = {one.shape: one for one in reversed(by_rank)}
    return {
        one: (
            *([one.table] if one.table else []),
            *(_generic(one) if first.get(one.shape) == one else ()),
        )
        for one in communicators
    }


def _is_named_group(communicator: Communicator) -> bool:
    return bool(communicator.group)


def _generic(communicator: Communicator) -> tuple[str, ...]:
    return (ONE_HOST,) if communicator.hosts == 1 else (HOSTS, OTHER)


def tune(
    topology: Topology,
    catalogue: Catalogue,
    options: Options,
    source: Source,
    representative: Callable[[], bool],
    progress: Callable[[str], None] = lambda _: None,
    run_searches: RunSearches = in_turn,
) -> Tuned:
    """Tune the collectives of ``options`` on a source of measurements.

    Searches on communicators that share no link learn nothing from each other, whether they are
    timed at the same time or in turn, so both ways ask for the same measurements.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        options: what to tune.
        source: makes measurements, or has them from a log.
        representative: says, after measuring, whether the cluster itself was measured.
        progress: called with a text at every step.
        run_searches: runs such searches. Within a budget there are none: each look depends on the
            one before.

    Raises:
        MeasurementError: a measurement failed; what the log holds stays valid.
    """
    found = kinds_of(find_communicators(topology, options.communicators, options.patterns))
    fields = _fields(topology, catalogue, options, found)
    if options.total is not None:
        spent = _within(topology, options, fields, source, options.total, progress)
        return _tuned(topology, catalogue, options, representative, *spent)
    source = CheckedSource(Experiments(source))
    wrong = tuple(
        check
        for field in fields
        for check in find_wrong(
            source,
            field.collective,
            field.communicator.name,
            field.algorithms,
            _sizes(field, options)[-1],
            len(field.communicator.ranks),
            progress,
        )
    )
    passes = _Passes(_sets(topology, fields), run_searches, _algorithms_of(wrong))

    def search_for(field: _Field, left: Sequence[Algorithm]) -> Search:
        hints = _hints(field, left, passes.scouted.items())
        plan = replace(_plan(topology, options, field, progress), hints=hints)
        return Search(source, plan, field.collective, left, field.others)

    passes.scout(search_for)
    composed = _compositions(passes.searches, passes.scouted)
    wrong += _wrong_among(source, composed, progress)
    passes.banned |= _algorithms_of(wrong)
    passes.compose(composed)
    for launch in range(1, options.protocol.launches + 1):
        passes.confirm(launch)
    concluded = passes.conclude()
    outcomes = [concluded[field] for field in fields if not field.is_part]
    parts = [passes.scouted[field] for field in fields if field.is_part]
    return _tuned(topology, catalogue, options, representative, (outcomes, parts), wrong)


class _Passes:
    """The passes of all searches, set by set: what fails in a set is left out of all after it.

    Args:
        sets: of fields whose searches may go on at the same time.
        run_searches: runs these.
        banned: algorithms that are left out, each with its collective.

    Attributes:
        searches: of the fields.
        scouted: their outcomes without compositions.
    """

    def __init__(
        self,
        sets: Sequence[Sequence[_Field]],
        run_searches: RunSearches,
        banned: Set[tuple[str, str]],
    ):
        self._sets = sets
        self._run_searches = run_searches
        self.banned = set(banned)
        self.searches: dict[_Field, Search] = {}
        self.scouted: dict[_Field, Outcome] = {}

    def scout(self, search_for: Callable[[_Field, Sequence[Algorithm]], Search]) -> None:
        """Begin the searches of a set, given what those before have found, and scout."""
        for fields in self._sets:
            for field in fields:
                left = [a for a in field.algorithms if (a.collective, a.name) not in self.banned]
                self.searches[field] = search_for(field, left)
            self.scouted |= self._run(lambda search: search.scout(), fields)

    def compose(self, composed: Mapping[_Field, _BySize]) -> None:
        """Look at compositions."""
        for fields in self._sets:
            self._leave_out(fields)
            steps = {
                field: partial(
                    self.searches[field].compose,
                    _without(self.banned, field.collective, composed[field]),
                )
                for field in fields
            }
            self._run_each(steps)

    def confirm(self, launch: int) -> None:
        """Time finalists in a launch; not of what only serves parts."""
        for fields in self._called():
            self._leave_out(fields)
            self._run(lambda search: search.confirm(launch), fields)

    def conclude(self) -> Mapping[_Field, Outcome]:
        """Return the outcomes; none of what only serves parts."""
        found: dict[_Field, Outcome] = {}
        for fields in self._called():
            self._leave_out(fields)
            found |= self._run(lambda search: search.conclude(), fields)
        return found

    def _called(self) -> Iterator[Sequence[_Field]]:
        for fields in self._sets:
            if called := [field for field in fields if not field.is_part]:
                yield called

    def _leave_out(self, fields: Sequence[_Field]) -> None:
        for field in fields:
            self.searches[field].leave_out(_of_collective(self.banned, field.collective))

    def _run(self, step: Callable[[Search], T], fields: Sequence[_Field]) -> dict[_Field, T]:
        return self._run_each({field: partial(step, self.searches[field]) for field in fields})

    def _run_each(self, steps: Mapping[_Field, Callable[[], T]]) -> dict[_Field, T]:
        """Do a step of each field's search; return what they found."""
        found = self._run_searches(list(steps.values()))
        self.banned |= {
            (field.collective, failure.candidate.algorithm)
            for field in steps
            for failure in self.searches[field].failures
        }
        return dict(zip(steps, found, strict=True))


def _algorithms_of(checks: Iterable[Check]) -> set[tuple[str, str]]:
    """Return the algorithms of checks, each with its collective."""
    return {(check.collective, check.candidate.algorithm) for check in checks}


def _sets(topology: Topology, fields: Sequence[_Field]) -> list[tuple[_Field, ...]]:
    """Return the fields in sets of one collective each, on communicators that share no link."""
    found = []
    for name in dict.fromkeys(field.collective for field in fields):
        own = {field.communicator: field for field in fields if field.collective == name}
        found += [tuple(own[one] for one in some) for some in together(topology, list(own))]
    return found


def _within(
    topology: Topology,
    options: Options,
    fields: Sequence[_Field],
    source: Source,
    total: float,
    progress: Callable[[str], None],
) -> tuple[_Outcomes, tuple[Check, ...], Spending]:
    """Tune within a budget of ``total`` seconds; return outcomes, wrong checks, what was spent."""
    purse = Purse(total)
    paid = CheckedSource(Experiments(PaidSource(source, purse)))
    subjects: list[Subject] = []
    for field in fields:
        plan = _plan(topology, options, field, progress)
        search = Search(paid, plan, field.collective, field.algorithms, field.others)
        first = next((one for one in subjects if one.collective == field.collective), None)
        hints = partial(_hints_within, field, tuple(zip(fields, subjects, strict=False)))
        subjects.append(Subject(search, field.collective, plan, hints, first, field.is_part))
    found = tuple(zip(Spender(subjects, purse, options.protocol).run(), subjects, strict=True))
    outcomes = [outcome for outcome, subject in found if not subject.is_part]
    parts = [outcome for outcome, subject in found if subject.is_part]
    tables = [table for outcome in outcomes for table in outcome.tables]
    return (outcomes, parts), (), spending_of(tables, purse)


def _hints_within(
    field: _Field, before: Sequence[tuple[_Field, Subject]]
) -> Mapping[int, tuple[Candidate, ...]]:
    """Return what searches before a field's say of its candidates, by what is known so far."""
    known = [(other, s.search.outcome()) for other, s in before if s.collective == field.collective]
    return _hints(field, field.algorithms, known)


def _tuned(
    topology: Topology,
    catalogue: Catalogue,
    options: Options,
    representative: Callable[[], bool],
    found: _Outcomes,
    wrong: tuple[Check, ...],
    spending: Spending | None = None,
) -> Tuned:
    """Return the outcomes as one decision."""
    outcomes, parts = found
    decision = DecisionTable(
        cluster=topology.name,
        topology_hash=topology.hash,
        catalogue_hash=catalogue.hash,
        representative=representative(),
        tables=tuple(
            table
            for name in options.collectives
            for table in of_all_shapes(
                name, [t for one in outcomes if one.collective == name for t in one.tables]
            )
        ),
        timing=options.timing if options.timing.arrivals else None,
        patterns=options.patterns,
        spending=spending,
    )
    return Tuned(decision, tuple(outcomes), wrong, tuple(parts))


def _hints(
    field: _Field, left: Sequence[Algorithm], before: Iterable[tuple[_Field, Outcome]]
) -> Mapping[int, tuple[Candidate, ...]]:
    """Return what the searches before say of a field's candidates.

    The whole cluster and named groups have schedules of their own. No other search knows them.
    """
    if field.communicator.group is not None or field.communicator.pattern is not None:
        return {}
    known = (
        Known(other.communicator.shape, outcome)
        for other, outcome in before
        if other.collective == field.collective and other.communicator.pattern is None
    )
    return hints_from(known, field.communicator.shape, {a.name for a in left})


#: Outcomes of what has tables, and of what only serves parts.
_Outcomes = tuple[Sequence[Outcome], Sequence[Outcome]]

#: Compositions that may win, by size, with the seconds that their parts take together.
_BySize = Mapping[int, Mapping[Candidate, float]]


def _compositions(
    searches: Mapping[_Field, Search], outcomes: Mapping[_Field, Outcome]
) -> dict[_Field, _BySize]:
    """Return the compositions for each search, given its outcome without them.

    A part is no composition itself, so what only serves parts has none.
    """
    found = Compositions(list(outcomes.values()))
    return {
        field: {} if field.is_part else found.of(outcomes[field], search.compositions, search.known)
        for field, search in searches.items()
    }


def _wrong_among(
    source: Source,
    composed: Mapping[_Field, _BySize],
    progress: Callable[[str], None],
) -> tuple[Check, ...]:
    """Check compositions with their bound parts; return the checks of the wrong ones."""
    return tuple(
        check
        for field, by_size in composed.items()
        if any(by_size.values())
        for check in find_wrong_among(
            source,
            field.collective,
            field.communicator.name,
            (candidate for candidates in by_size.values() for candidate in candidates),
            progress,
        )
    )


def _of_collective(banned: Set[tuple[str, str]], collective: str) -> Set[str]:
    """Return the algorithms of a collective that are banned."""
    return {name for of, name in banned if of == collective}


def _without(banned: Set[tuple[str, str]], collective: str, by_size: _BySize) -> _BySize:
    """Return the compositions that are not banned."""
    return {
        size: {c: s for c, s in candidates.items() if (collective, c.algorithm) not in banned}
        for size, candidates in by_size.items()
    }


@dataclass(frozen=True, eq=False)
class _Field:
    """The subject of one search: a collective, a communicator, and the candidates.

    Attributes:
        others: algorithms that may serve parts of compositions there, by ``collective/name``.
        is_part: whether it only serves parts of what a program calls.
    """

    described: Collective
    communicator: Communicator
    kinds: tuple[str, ...]
    algorithms: tuple[Algorithm, ...]
    others: Mapping[str, Algorithm]
    is_part: bool = False

    @property
    def collective(self) -> str:
        """The collective's name."""
        return self.described.name


def _fields(
    topology: Topology,
    catalogue: Catalogue,
    options: Options,
    kinds: Mapping[Communicator, tuple[str, ...]],
) -> tuple[_Field, ...]:
    orders = {name for one in options.patterns for name in algorithm_names(one)}
    can_run = [applicable(catalogue, group.topology) for group in groups_of(topology)]
    algorithms = {
        one: tuple(
            a
            for a in _algorithms(can_run, topology, one)
            if a.name not in orders or a.name in _orders_of(one)
        )
        for one in kinds
    }
    others = {one: {f"{a.collective}/{a.name}": a for a in algorithms[one]} for one in kinds}
    return tuple(
        _Field(
            catalogue.collective(name),
            one,
            made,
            tuple(a for a in algorithms[one] if a.collective == name and _may_serve(made, a)),
            others[one],
            options.is_part(name, one.name),
        )
        for name in options.collectives
        for one, made in kinds.items()
        if made and options.wants(name, one.name)
    )


def _orders_of(communicator: Communicator) -> Sequence[str]:
    """Return the algorithms that carry out the order of the communicator's pattern."""
    return () if communicator.pattern is None else algorithm_names(communicator.pattern)


def _may_serve(kinds: Sequence[str], algorithm: Algorithm) -> bool:
    """Whether an algorithm may serve any of the kinds of tables; else it is not worth timing."""
    return any(eligible(kind, algorithm) for kind in kinds)


def _sizes(field: _Field, options: Options) -> tuple[int, ...]:
    communicator = field.communicator
    return sizes_of(field.described, options, len(communicator.ranks), communicator.name)


def _plan(
    topology: Topology, options: Options, field: _Field, progress: Callable[[str], None]
) -> Plan:
    ranks = len(field.communicator.ranks)
    seen = as_seen_by(topology, field.communicator)

    @cache
    def bound(size: int) -> float:
        if field.communicator.pattern is not None:
            return bound_of_pattern(topology, field.communicator.pattern, size)
        found = bound_or_none(seen, field.described, size)
        return found.seconds if found else 0.0

    return Plan(
        ranks,
        _sizes(field, options),
        options.timing,
        options.budget,
        progress,
        field.communicator.name,
        field.kinds,
        options.protocol,
        bound=bound,
        hosts=field.communicator.hosts,
    )


def _algorithms(
    can_run: Sequence[tuple[Algorithm, ...]], topology: Topology, communicator: Communicator
) -> tuple[Algorithm, ...]:
    """Return the algorithms that can run on a communicator.

    On some hosts, one that uses its tables on all of them is what others are without tables.

    Args:
        can_run: what all ranks of the topology, and of each of its groups, can run.
        topology: the cluster.
        communicator: its ranks.
    """
    of_all, *_ = can_run
    if communicator.pattern is not None:
        return of_all
    if communicator.group is not None:
        return can_run[communicator.group]
    count, hosts, everyone = len(communicator.ranks), communicator.hosts, len(set(topology.ranks))
    of_ranks = [topology.ranks[rank] for rank in communicator.ranks]
    return tuple(
        algorithm
        for algorithm in of_all
        if algorithm.works_for(count)
        and (not algorithm.has_tables or (algorithm.serves_other_hosts and hosts == everyone))
        and (
            algorithm.needs not in LEVELS
            or why_undivided(topology, algorithm.needs, of_ranks) is None
        )
    )
