"""Tunes all collectives of one cluster, on its communicators: one source, one decision table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeVar

from stagegen.catalogue import Algorithm, Catalogue, applicable, groups_of
from stagegen.catalogue.algorithm import LEVELS
from stagegen.catalogue.cluster_schedules import why_undivided
from stagegen.generate.pattern_templates import algorithm_names
from stagegen.measure.records import Candidate, Check
from stagegen.measure.source import Source
from stagegen.topology import Topology
from stagegen.tune.agreement import time_telling, weigh
from stagegen.tune.bounds import Least, bound_of_pattern
from stagegen.tune.checking import CheckedSource, find_wrong, find_wrong_among
from stagegen.tune.communicators import Communicator, as_seen_by, find_communicators, is_job
from stagegen.tune.compositions import Compositions, LeastSeconds
from stagegen.tune.decision import HOSTS, ONE_HOST, OTHER, DecisionTable, Spending, Table
from stagegen.tune.experiments import Experiments
from stagegen.tune.further import further_launches
from stagegen.tune.hints import hints_from
from stagegen.tune.passes import BySize, Passes, Topic, teacher_of
from stagegen.tune.plan import Outcome, Plan
from stagegen.tune.purse import PaidSource, Purse
from stagegen.tune.ranges import of_all_shapes
from stagegen.tune.rules import eligible
from stagegen.tune.scope import Options
from stagegen.tune.search import Search
from stagegen.tune.sizes import sizes_of
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
    topics = _topics(topology, catalogue, options, found)
    least = _least(topology, catalogue, topics)
    if options.total is not None:
        spent = _within(topology, options, topics, source, least, progress)
        return _tuned(topology, catalogue, options, representative, *spent)
    source = CheckedSource(Experiments(source))
    told = time_telling(source, topics, options.timing, progress)
    others = [topic for topic in topics if not _is_job(topic.communicator, options)]
    wrong = tuple(
        check
        for topic in others
        for check in find_wrong(
            source,
            topic.collective,
            topic.communicator.name,
            topic.algorithms,
            progress,
        )
    )
    passes = Passes(_sets(topology, topics), run_searches, _algorithms_of(wrong))

    def search_for(topic: Topic, left: Sequence[Algorithm]) -> Search:
        hints = _hints(topic, left, passes.scouted)
        plan = _plan(topology, options, topic, passes.scouted, least, progress)
        plan = replace(plan, hints=hints)
        return Search(source, plan, topic.collective, left, topic.others)

    passes.scout(search_for)
    composed = passes.allowed(_compositions(passes.searches, passes.scouted, least))
    wrong += _wrong_among(source, {topic: composed[topic] for topic in others}, progress)
    passes.banned |= _algorithms_of(wrong)
    passes.compose(composed)
    for launch in range(1, options.protocol.launches + 1):
        passes.confirm(launch)
    for launch in further_launches(options.protocol):
        if passes.asks_for_more():
            passes.confirm(launch)
    concluded = passes.conclude()
    outcomes = [concluded[topic] for topic in topics if not topic.is_part]
    parts = [passes.scouted[topic] for topic in topics if topic.is_part]
    return _tuned(topology, catalogue, options, representative, (outcomes, parts), told, wrong)


def _algorithms_of(checks: Iterable[Check]) -> set[tuple[str, str]]:
    """Return the algorithms of checks, each with its collective."""
    return {(check.collective, check.candidate.algorithm) for check in checks}


def _sets(topology: Topology, topics: Sequence[Topic]) -> list[tuple[Topic, ...]]:
    """Return the topics in sets of one collective each, on communicators that share no link."""
    found = []
    for name in dict.fromkeys(topic.collective for topic in topics):
        own = {topic.communicator: topic for topic in topics if topic.collective == name}
        found += [tuple(own[one] for one in some) for some in together(topology, list(own))]
    return found


def _within(
    topology: Topology,
    options: Options,
    topics: Sequence[Topic],
    source: Source,
    least: LeastSeconds,
    progress: Callable[[str], None],
) -> tuple[_Outcomes, Mapping[str, float], tuple[Check, ...], Spending]:
    """Tune within the budget of the options.

    If there are few sizes, each one's share of it may be more than a size usually gets.

    Returns:
        The outcomes, the seconds of the allreduce that recognises patterns, the wrong checks, and
        what was spent.
    """
    total = options.total
    assert total is not None
    sizes = sum(len(_sizes(topic, options)) for topic in topics)
    options = replace(options, budget=max(options.budget, total / sizes))
    purse = Purse(total)
    paid = CheckedSource(Experiments(PaidSource(source, purse)))
    told = time_telling(paid, topics, options.timing, progress)
    subjects: list[Subject] = []
    for topic in topics:
        plan = _plan(topology, options, topic, topics[: len(subjects)], least, progress)
        search = Search(paid, plan, topic.collective, topic.algorithms, topic.others)
        first = next((one for one in subjects if one.collective == topic.collective), None)
        hints = partial(_hints_within, topic, tuple(zip(topics, subjects, strict=False)))
        subjects.append(Subject(search, topic.collective, plan, hints, first, topic.is_part))
    spender = Spender(subjects, purse, options.protocol, least)
    found = tuple(zip(spender.run(), subjects, strict=True))
    outcomes = [outcome for outcome, subject in found if not subject.is_part]
    parts = [outcome for outcome, subject in found if subject.is_part]
    tables = [table for name in options.collectives for table in _measured(name, outcomes)]
    return (outcomes, parts), told, (), spending_of(tables, purse)


def _hints_within(
    topic: Topic, before: Sequence[tuple[Topic, Subject]]
) -> Mapping[int, tuple[Candidate, ...]]:
    """Return what the searches before a topic say of its candidates, by what is known so far."""
    known = {other: s.search.outcome() for other, s in before if s.collective == topic.collective}
    return _hints(topic, topic.algorithms, known)


def _tuned(
    topology: Topology,
    catalogue: Catalogue,
    options: Options,
    representative: Callable[[], bool],
    found: _Outcomes,
    told: Mapping[str, float],
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
                name, _measured(name, outcomes), _predictions(name, outcomes)
            )
        ),
        timing=options.timing if options.timing.arrivals else None,
        patterns=options.patterns,
        spending=spending,
    )
    weighed = weigh(decision, outcomes, told)
    return Tuned(weighed, tuple(outcomes), wrong, tuple(parts))


def _measured(collective: str, outcomes: Sequence[Outcome]) -> list[Table]:
    """Return the tables of a collective's outcomes.

    If a budget had no time for any measurement of an outcome, others serve its shape.
    """
    return [table for one in _known(collective, outcomes) for table in one.tables]


def _predictions(collective: str, outcomes: Sequence[Outcome]) -> list[Table]:
    """Return the same tables for shapes that were not measured, in the same order."""
    return [table for one in _known(collective, outcomes) for table in one.predictions]


def _known(collective: str, outcomes: Sequence[Outcome]) -> list[Outcome]:
    own = [one for one in outcomes if one.collective == collective]
    return [one for one in own if one.samples] or own


def _hints(
    topic: Topic, left: Sequence[Algorithm], before: Mapping[Topic, Outcome]
) -> Mapping[int, tuple[Candidate, ...]]:
    """Return what the searches before say of a topic's candidates."""
    teacher = teacher_of(topic, before)
    if teacher is None:
        return {}
    names = {a.name for a in left}
    return hints_from(before[teacher], names, one_rule=_has_one_rule(topic))


@dataclass(frozen=True)
class Calls:
    """What a search times at one of its sizes.

    Attributes:
        seconds: that a repetition takes at least: the lower bounds of its calls, what ranks compute
            before them, and how late they may come.
        learns: whether the search may learn from another one.
        is_of_job: whether it is of a job on parts of the cluster.
    """

    seconds: float
    learns: bool
    is_of_job: bool


def calls_of(topology: Topology, catalogue: Catalogue, options: Options) -> Iterator[Calls]:
    """Yield what each search times, size by size; nothing is measured.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        options: what to tune.
    """
    found = kinds_of(find_communicators(topology, options.communicators, options.patterns))
    topics = _topics(topology, catalogue, options, found)
    least = _least(topology, catalogue, topics)
    computing = options.timing.computation_ms / 1000
    for place, topic in enumerate(topics):
        plan = _plan(topology, options, topic, topics[:place], least, lambda _: None)
        is_of_job = _is_job(topic.communicator, options)
        for size in plan.sizes:
            call = plan.bound(size) + plan.late(size) + computing
            yield Calls(options.timing.calls(size, call) * call, plan.is_told, is_of_job)


#: Outcomes of what has tables, and of what only serves parts.
_Outcomes = tuple[Sequence[Outcome], Sequence[Outcome]]


def _least(topology: Topology, catalogue: Catalogue, topics: Iterable[Topic]) -> LeastSeconds:
    """Return the lower bounds of calls, by communicator, collective and size in bytes."""
    communicators = {topic.communicator.name: topic.communicator for topic in topics}
    least = {
        name: cache(Least(catalogue, as_seen_by(topology, one)))
        for name, one in communicators.items()
    }
    return lambda communicator, collective, size: least[communicator](collective, size)


def _compositions(
    searches: Mapping[Topic, Search],
    outcomes: Mapping[Topic, Outcome],
    least: LeastSeconds,
) -> dict[Topic, BySize]:
    """Return the compositions for each search, given its outcome without them.

    A part is no composition itself, so a search that only serves parts has none.
    """
    found = Compositions(list(outcomes.values()), least)
    return {
        topic: {} if topic.is_part else found.of(outcomes[topic], search.compositions, search.known)
        for topic, search in searches.items()
    }


def _wrong_among(
    source: Source,
    composed: Mapping[Topic, BySize],
    progress: Callable[[str], None],
) -> tuple[Check, ...]:
    """Check compositions with their bound parts; return the checks of the wrong ones."""
    return tuple(
        check
        for topic, by_size in composed.items()
        if any(by_size.values())
        for check in find_wrong_among(
            source,
            topic.collective,
            topic.communicator.name,
            (candidate for candidates in by_size.values() for candidate in candidates),
            progress,
        )
    )


def _topics(
    topology: Topology,
    catalogue: Catalogue,
    options: Options,
    kinds: Mapping[Communicator, tuple[str, ...]],
) -> tuple[Topic, ...]:
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
        Topic(
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


def _sizes(topic: Topic, options: Options) -> tuple[int, ...]:
    communicator = topic.communicator
    return sizes_of(topic.described, options, len(communicator.ranks), communicator.name)


def _is_job(communicator: Communicator, options: Options) -> bool:
    """Whether it is a job on parts of the cluster: no group, not the first, not of `--for`."""
    name, first = communicator.name, options.communicators[0]
    return is_job(name) and communicator.group is None and name != first and not options.wanted


def _has_one_rule(topic: Topic) -> bool:
    """Whether one rule serves calls of several sizes; a pattern has sizes that all ranks know."""
    described = topic.described
    return described.has_one_rule and described.has_data and topic.communicator.pattern is None


def _plan(
    topology: Topology,
    options: Options,
    topic: Topic,
    before: Iterable[Topic],
    least: LeastSeconds,
    progress: Callable[[str], None],
) -> Plan:
    communicator = topic.communicator
    ranks = len(communicator.ranks)
    pattern = communicator.pattern
    bound: Callable[[int], float] = partial(least, communicator.name, topic.collective)
    if pattern is not None:
        bound = cache(partial(bound_of_pattern, as_seen_by(topology, communicator), pattern))

    arrivals, slowest = options.timing.arrivals, min(topology.rates.values())

    def late(size: int) -> float:
        message = size // ranks if topic.described.counts_whole and topic.described.uneven else size
        return arrivals.longest(8 * message / slowest) if arrivals else 0.0

    return Plan(
        ranks,
        _sizes(topic, options),
        options.timing,
        options.budget,
        progress,
        communicator.name,
        topic.kinds,
        options.protocol.elsewhere() if communicator.stands_for_others else options.protocol,
        bound=bound,
        hosts=communicator.hosts,
        late=late,
        one_rule=_has_one_rule(topic),
        is_told=_is_job(communicator, options) and teacher_of(topic, before) is not None,
    )


def _algorithms(
    can_run: Sequence[tuple[Algorithm, ...]], topology: Topology, communicator: Communicator
) -> tuple[Algorithm, ...]:
    """Return the algorithms that can run on a communicator.

    An algorithm with tables needs all hosts: on some of them, it would be the same as others
    without tables.

    Args:
        can_run: what all ranks of the topology, and of each of its groups, can run.
        topology: the cluster.
        communicator: its ranks.
    """
    of_all, *_ = can_run
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
