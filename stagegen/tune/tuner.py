"""Tunes all collectives of one cluster, on its communicators: one source, one decision table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from stagegen.catalogue import Algorithm, Catalogue, applicable, groups_of
from stagegen.measure.records import Candidate, Check
from stagegen.measure.source import Source
from stagegen.topology import Topology
from stagegen.tune.checking import find_wrong, find_wrong_among
from stagegen.tune.communicators import Communicator, find_communicators
from stagegen.tune.compositions import Compositions
from stagegen.tune.decision import HOSTS, ONE_HOST, OTHER, DecisionTable
from stagegen.tune.plan import Outcome, Plan
from stagegen.tune.ranges import of_all_ranks
from stagegen.tune.scope import Options
from stagegen.tune.search import Search


@dataclass(frozen=True)
class Tuned:
    """The result of tuning: the decision, and the measurements behind it.

    Attributes:
        decision: the tables of all collectives.
        outcomes: by collective, and for each the communicators in the order of the options.
        wrong: checks that failed; their routines were never timed.
    """

    decision: DecisionTable
    outcomes: tuple[Outcome, ...]
    wrong: tuple[Check, ...]


#: Collectives whose size is that of the whole message; in the others each rank gets as much from
#: every rank. So their sizes go on, up to the number of ranks times the largest size, at most
#: WHOLE_MOST times.
WHOLE = frozenset({"allgatherv", "allreduce", "bcast", "reduce", "reduce_scatter"})
WHOLE_MOST = 16

#: Collectives with one rule for all calls: a barrier has no size, and a rank of an alltoallv knows
#: only its own blocks. They are measured once, with blocks of this many bytes or, if None, of the
#: largest size, where a wrong choice costs most.
ONE_SIZE: dict[str, int | None] = {"alltoallv": None, "barrier": 0}


def sizes_of(collective: str, options: Options, ranks: int) -> tuple[int, ...]:
    """Return the sizes in bytes at which a collective is measured."""
    if collective in ONE_SIZE:
        only = ONE_SIZE[collective]
        return (options.sizes[-1] if only is None else only,)
    largest = options.sizes[-1] * min(ranks, WHOLE_MOST)
    extra = (largest,) if collective in WHOLE and largest > options.sizes[-1] else ()
    return (*options.sizes, *extra)


def steps(options: Options) -> int:
    """Return how many steps, at the least, tuning reports to ``progress``."""
    return len(options.communicators) * len(options.collectives) * (1 + len(options.sizes))


def kinds_of(communicators: Sequence[Communicator]) -> Mapping[Communicator, tuple[str, ...]]:
    """Return the kinds of tables to make from the measurements of each communicator.

    It makes its own table, if it has one, and the table for any communicators with as many ranks,
    if it is the first with that number. Named groups come last, as their ranks are next to each
    other. Measurements on one host serve only ranks on one host.
    """
    by_rank = sorted(communicators, key=lambda one: bool(one.group))
    first = {(len(one.ranks), one.one_host): one for one in reversed(by_rank)}
    return {
        one: (
            *([one.table] if one.table else []),
            *(_generic(one) if first[len(one.ranks), one.one_host] == one else ()),
        )
        for one in communicators
    }


def _generic(communicator: Communicator) -> tuple[str, ...]:
    return (ONE_HOST,) if communicator.one_host else (HOSTS, OTHER)


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
    found = kinds_of(find_communicators(topology, options.communicators))
    fields = _fields(topology, catalogue, options.collectives, found)
    wrong = tuple(
        check
        for field in fields
        for check in find_wrong(
            source, field.collective, field.communicator.name, field.algorithms, progress
        )
    )
    banned = {(check.collective, check.candidate.algorithm) for check in wrong}
    searches: list[Search] = []
    plain: list[Outcome] = []
    for field in fields:
        left = [a for a in field.algorithms if (a.collective, a.name) not in banned]
        plan = _plan(options, field, progress)
        searches.append(Search(source, plan, field.collective, left, field.others))
        plain.append(searches[-1].run())
        banned |= {(f.collective, f.candidate.algorithm) for f in plain[-1].failures}
    composed = _compositions(searches, plain)
    wrong += _wrong_among(source, plain, composed, progress)
    banned |= {(check.collective, check.candidate.algorithm) for check in wrong}
    outcomes: list[Outcome] = []
    for search, one, by_size in zip(searches, plain, composed, strict=True):
        outcomes.append(search.compose(_without(banned, one.collective, by_size)))
        banned |= {(f.collective, f.candidate.algorithm) for f in outcomes[-1].failures}
    decision = DecisionTable(
        cluster=topology.name,
        topology_hash=topology.hash,
        catalogue_hash=catalogue.hash,
        representative=representative(),
        tables=tuple(
            table
            for name in options.collectives
            for table in of_all_ranks(
                name, [t for one in outcomes if one.collective == name for t in one.tables]
            )
        ),
    )
    return Tuned(decision, tuple(outcomes), wrong)


#: Compositions that may win, by size.
_BySize = Mapping[int, Sequence[Candidate]]


def _compositions(searches: Sequence[Search], outcomes: Sequence[Outcome]) -> list[_BySize]:
    """Return the compositions for each search, given its outcome without them."""
    found = Compositions(outcomes)
    return [
        found.of(outcome, search.compositions, search.known)
        for search, outcome in zip(searches, outcomes, strict=True)
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


def _without(banned: Set[tuple[str, str]], collective: str, by_size: _BySize) -> _BySize:
    """Return the compositions that are not banned."""
    return {
        size: [c for c in candidates if (collective, c.algorithm) not in banned]
        for size, candidates in by_size.items()
    }


@dataclass(frozen=True)
class _Field:
    """The subject of one search: a collective, a communicator, and the candidates.

    Attributes:
        others: algorithms that may serve parts of compositions there, by ``collective/name``.
    """

    collective: str
    communicator: Communicator
    kinds: tuple[str, ...]
    algorithms: tuple[Algorithm, ...]
    others: Mapping[str, Algorithm]


def _fields(
    topology: Topology,
    catalogue: Catalogue,
    collectives: Sequence[str],
    kinds: Mapping[Communicator, tuple[str, ...]],
) -> tuple[_Field, ...]:
    algorithms = {one: _algorithms(catalogue, topology, one) for one in kinds}
    others = {one: {f"{a.collective}/{a.name}": a for a in algorithms[one]} for one in kinds}
    return tuple(
        _Field(
            name, one, made, tuple(a for a in algorithms[one] if a.collective == name), others[one]
        )
        for name in collectives
        for one, made in kinds.items()
        if made
    )


def _plan(options: Options, field: _Field, progress: Callable[[str], None]) -> Plan:
    ranks = len(field.communicator.ranks)
    return Plan(
        ranks,
        sizes_of(field.collective, options, ranks),
        options.timing,
        options.budget,
        progress,
        field.communicator.name,
        field.kinds,
    )


def _algorithms(
    catalogue: Catalogue, topology: Topology, communicator: Communicator
) -> tuple[Algorithm, ...]:
    """Return the algorithms that can run on a communicator."""
    if communicator.group is not None:
        return applicable(catalogue, tuple(groups_of(topology))[communicator.group].topology)
    count = len(communicator.ranks)
    hosts = len({topology.ranks[rank] for rank in communicator.ranks})
    return tuple(
        algorithm
        for algorithm in applicable(catalogue, topology)
        if algorithm.works_for(count)
        and not algorithm.has_tables
        and (algorithm.needs != "leaders" or 1 < hosts < count)
    )
