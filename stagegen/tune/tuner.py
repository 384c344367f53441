"""Tunes all collectives of one cluster, on its communicators: one source, one decision table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, partial

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
) -> Tuned:
    """Tune the collectives of ``options`` on a source of measurements.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        options: what to tune.
        source: makes measurements, or has them from a log.
        representative: says, after measuring, whether the cluster itself was measured.
        progress: called with a text at every step.

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
    banned = {(check.collective, check.candidate.algorithm) for check in wrong}
    searches: list[Search] = []
    scouted: list[Outcome] = []
    for field in fields:
        left = [a for a in field.algorithms if (a.collective, a.name) not in banned]
        hints = _hints(field, left, zip(fields, scouted, strict=False))
        plan = replace(_plan(topology, options, field, progress), hints=hints)
        searches.append(Search(source, plan, field.collective, left, field.others))
        scouted.append(searches[-1].scout())
        banned |= {(f.collective, f.candidate.algorithm) for f in scouted[-1].failures}
    composed = _compositions(fields, searches, scouted)
    wrong += _wrong_among(source, scouted, composed, progress)
    banned |= {(check.collective, check.candidate.algorithm) for check in wrong}
    fields_of = list(zip(searches, (field.collective for field in fields), strict=True))
    for (search, name), by_size in zip(fields_of, composed, strict=True):
        search.leave_out(_of_collective(banned, name))
        search.compose(_without(banned, name, by_size))
        banned |= {(name, failure.candidate.algorithm) for failure in search.failures}
    called = [one for one, field in zip(fields_of, fields, strict=True) if not field.is_part]
    for launch in range(1, options.protocol.launches + 1):
        for search, name in called:
            search.leave_out(_of_collective(banned, name))
            search.confirm(launch)
            banned |= {(name, failure.candidate.algorithm) for failure in search.failures}
    outcomes: list[Outcome] = []
    for search, name in called:
        search.leave_out(_of_collective(banned, name))
        outcomes.append(search.conclude())
        banned |= {(name, failure.candidate.algorithm) for failure in search.failures}
    parts = [one for one, field in zip(scouted, fields, strict=True) if field.is_part]
    return _tuned(topology, catalogue, options, representative, (outcomes, parts), wrong)


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
    fields: Sequence[_Field], searches: Sequence[Search], outcomes: Sequence[Outcome]
) -> list[_BySize]:
    """Return the compositions for each search, given its outcome without them.

    A part is no composition itself, so what only serves parts has none.
    """
    found = Compositions(outcomes)
    return [
        {} if field.is_part else found.of(outcome, search.compositions, search.known)
        for field, search, outcome in zip(fields, searches, outcomes, strict=True)
    ]


def _wrong_among(
    source: Source,
    outcomes: Sequence[Outcome],
    composed: Sequence[_BySize],
    progress: Callable[[str], None],
) -> tuple[Check, ...]:
    """Check compositions with their bound parts; return the checks of the wrong ones."""
    return tuple(
        check
        for outcome, by_size in zip(outcomes, composed, strict=True)
        if any(by_size.values())
        for check in find_wrong_among(
            source,
            outcome.collective,
            outcome.communicator,
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


@dataclass(frozen=True)
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
