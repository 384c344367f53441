"""The decision table in the shape of the dispatcher's C tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagegen.catalogue import Algorithm, Catalogue
from stagegen.errors import InputError
from stagegen.generate.pattern_templates import algorithm_name, plain_name
from stagegen.generate.routines import Routine, c_parameters
from stagegen.generate.tables import numbers
from stagegen.measure.records import Candidate
from stagegen.patterns import Pattern
from stagegen.tune import DecisionTable, Table
from stagegen.tune.agreement import usual_choice
from stagegen.tune.communicators import name_of
from stagegen.tune.decision import CLUSTER, GENERIC, ONE_HOST, OTHER
from stagegen.tune.shapes import Range, Shape


@dataclass(frozen=True)
class CRule:
    """A row of a rule table in C."""

    c_last: str
    routine_index: int
    algorithm: str
    c_parameters: str


@dataclass(frozen=True)
class CTable:
    """A rule table in C.

    Attributes:
        c_name: of its rules.
        collective: the collective that it is for.
        kind: of communicators: `cluster` (or a group of it), `hosts` or `other`; of ranks that
            are all on one host, the kind does not count.
        group: number of the group that it is for, 0 being the whole cluster; -1 for others.
        shape: hosts and ranks per host that were measured.
        c_hosts: the first and the last number of hosts that it serves, as C expressions.
        c_ranks_per_host: the same of ranks per host.
        confirmed: whether what it serves was measured.
        rules: by size; for each size the choice, its alternatives, and the native routine.
    """

    c_name: str
    collective: str
    kind: str
    group: int
    shape: Shape
    c_hosts: tuple[str, str]
    c_ranks_per_host: tuple[str, str]
    confirmed: bool
    rules: tuple[CRule, ...]


@dataclass(frozen=True)
class CEntry:
    """The calls of a pattern that one rule serves.

    Attributes:
        first: the smallest mean block, in bytes.
        c_last: the largest, as a C expression.
        rule: the place of the rule's first row in the table.
    """

    first: int
    c_last: str
    rule: int


@dataclass(frozen=True)
class CPattern:
    """A pattern or a class with its rules in C.

    Attributes:
        name: of the pattern, as C text.
        collective: that it is of.
        group: number of the group whose ranks have it, 0 being the whole cluster.
        c_name: of its rules.
        c_bytes: of its blocks, the lines of a table; of a class None.
        mean: bytes of a pattern's block, as they are; of a class 0.
        largest_over_mean: the number of a class; of a pattern 0.
        rules: as those of a `CTable`, by the mean bytes of a block.
        entries: those of the rules that are recognised.
    """

    name: str
    collective: str
    group: int
    c_name: str
    c_bytes: str | None
    mean: float
    largest_over_mean: float
    rules: tuple[CRule, ...]
    entries: tuple[CEntry, ...]


#: The most entries of all patterns: ranks agree on a word of so many bits.
ENTRIES_MOST = 64


def c_patterns(
    decision: DecisionTable, routines: Sequence[Routine], groups: Sequence[str]
) -> list[CPattern]:
    """Return the patterns and classes that calls are recognised by.

    Where a pattern's rule is that of all other calls, nothing is gained if it is recognised. But
    where a class of the collective on the same ranks has another rule, all patterns and classes of
    these stay: their calls would be taken for calls of this class.

    Of a collective whose ranks must tell each other what they have, none is recognised unless one
    of the same ranks pays for that (:mod:`stagegen.tune.agreement`). The ranks do it for every call
    of the collective, so the others cost nothing more then.

    Args:
        decision: the tables.
        routines: of the build.
        groups: names of the groups that have tables of schedules; the first is the whole.

    Raises:
        InputError: there are more of them than a word of 64 bits can tell, or one is of an unknown
            group.
    """
    index = {(r.collective, r.algorithm, r.group): r.index for r in routines}
    tables = pattern_tables(decision)
    worth = {
        _whose(pattern)
        for table, pattern in tables
        if table.agreement is None or table.agreement.pays
    }
    by_class = {
        _whose(pattern)
        for table, pattern in tables
        if not pattern.has_order and _unusual(decision, table)
    }
    found: dict[str, CPattern] = {}
    for table, pattern in tables:
        of = pattern.collective
        if _whose(pattern) not in worth:
            continue
        are_all_kept = _whose(pattern) in by_class
        kept = range(len(table.rules)) if are_all_kept else _unusual(decision, table)
        entries = tuple(
            CEntry(table.rules[n].first, _c_end(table.last_of(n)), _first_row(table, n))
            for n in kept
        )
        if not entries:
            continue
        group = _number(pattern.group or "", groups)
        own = f"{of}_{algorithm_name(pattern)}"
        c_name = own if own not in found else f"{own}__{len(found)}"
        found[c_name] = CPattern(
            name=plain_name(pattern.name),
            collective=of,
            group=group,
            c_name=c_name,
            c_bytes=numbers(map(int, pattern.array.flat)) if pattern.has_order else None,
            mean=pattern.average if pattern.has_order else 0.0,
            largest_over_mean=0.0 if pattern.has_order else pattern.largest_over_mean,
            rules=tuple(_c_rules(table, index, group)),
            entries=entries,
        )
    count = sum(len(one.entries) for one in found.values())
    if count > ENTRIES_MOST:
        raise InputError(
            f"the patterns have {count} rules, and {ENTRIES_MOST} can be told apart; tune for fewer"
        )
    return list(found.values())


def _whose(pattern: Pattern) -> tuple[str, str | None]:
    """Return what patterns have in common that compete for the same calls."""
    return pattern.collective, pattern.group


def _unusual(decision: DecisionTable, table: Table) -> list[int]:
    """Return the numbers of the rules of a pattern that are not those of all other calls."""
    return [
        number
        for number, rule in enumerate(table.rules)
        if rule.candidate != usual_choice(decision, table, rule.first)
    ]


def pattern_tables(decision: DecisionTable) -> list[tuple[Table, Pattern]]:
    """Return the tables that serve calls of one pattern, each with it."""
    by_name = {name_of(pattern): pattern for pattern in decision.patterns}
    return [(t, by_name[t.communicator]) for t in decision.tables if t.communicator in by_name]


def rule_tables(decision: DecisionTable) -> list[Table]:
    """Return the tables that the library numbers: those of patterns are apart."""
    of_patterns = [table for table, _ in pattern_tables(decision)]
    return [table for table in decision.tables if table not in of_patterns]


def _first_row(table: Table, number: int) -> int:
    return sum(len(rule.options) for rule in table.rules[:number])


def chosen_algorithms(decision: DecisionTable, catalogue: Catalogue) -> tuple[Algorithm, ...]:
    """Return the algorithms that rules name, in catalogue order.

    They include alternatives, and the algorithms that serve parts of compositions.

    Raises:
        InputError: the catalogue lacks one.
    """
    options = [
        (table.collective, candidate)
        for table in decision.tables
        for rule in table.rules
        for candidate in rule.options
    ]
    parts = [(b.collective, b.candidate) for _, candidate in options for b in candidate.bound]
    names = {(collective, candidate.algorithm) for collective, candidate in (*options, *parts)}
    found = {catalogue.find(collective, name).routine for collective, name in names}
    return tuple(a for a in catalogue.algorithms if a.routine in found)


def c_tables(
    decision: DecisionTable, routines: Sequence[Routine], groups: Sequence[str]
) -> list[CTable]:
    """Return the rule tables for a build. Tables with the same rules have them by one name.

    Args:
        decision: the tables.
        routines: of the build.
        groups: names of the groups that have tables of schedules; the first is the whole.

    Raises:
        InputError: a table is for an unknown group.
    """
    index = {(r.collective, r.algorithm, r.group): r.index for r in routines}
    names: dict[tuple[str, tuple[CRule, ...]], str] = {}
    return [_c_table(table, index, groups, names) for table in rule_tables(decision)]


def _c_table(
    table: Table,
    index: Mapping[tuple[str, str, int], int],
    groups: Sequence[str],
    names: dict[tuple[str, tuple[CRule, ...]], str],
) -> CTable:
    """Return a table; ``names`` has those of the rules so far, and gets this one's."""
    kind, _, name = table.communicator.partition(" ")
    group = -1 if kind in GENERIC else _number(name, groups)
    suffix = table.shape if group < 0 else group
    own = f"{table.collective}_{kind.replace('-', '_')}" + (f"_{suffix}" if suffix else "")
    rules = tuple(_c_rules(table, index, group))
    # A confirmed table and the predicted one of its shape may differ by what was learned.
    free = own if own not in names.values() else f"{own}__{len(names)}"
    return CTable(
        c_name=names.setdefault((table.collective, rules), free),
        collective=table.collective,
        kind=CLUSTER if group >= 0 else OTHER if kind == ONE_HOST else kind,
        group=group,
        shape=table.shape,
        c_hosts=_c_range(table.hosts),
        c_ranks_per_host=_c_range(table.ranks_per_host),
        confirmed=table.confirmed,
        rules=rules,
    )


def _c_range(range_: Range) -> tuple[str, str]:
    return str(range_.first), _c_end(range_.last)


def _number(name: str, groups: Sequence[str]) -> int:
    if name and name not in groups[1:]:
        raise InputError(
            f"the decision table has a group {name}, which the topology lacks; add it to the "
            "topology file, or tune anew"
        )
    return groups.index(name) if name else 0


def _c_rules(
    table: Table, index: Mapping[tuple[str, str, int], int], group: int
) -> Iterator[CRule]:
    """Yield a row for each option of each rule. Routines without tables are of group 0."""

    def place(collective: str, candidate: Candidate) -> int:
        own = (collective, candidate.algorithm, group)
        return index[own if own in index else (*own[:2], 0)]

    def part(collective: str, candidate: Candidate) -> str:
        values = c_parameters(dict(candidate.parameters))
        return f"{{&coll_routines[{place(collective, candidate)}], {values}}}"

    for number, rule in enumerate(table.rules):
        for candidate in rule.options:
            parts = [part(bound.collective, bound.candidate) for bound in candidate.bound]
            yield CRule(
                c_last=_c_end(table.last_of(number)),
                routine_index=place(table.collective, candidate),
                algorithm=candidate.algorithm,
                c_parameters=c_parameters(dict(candidate.parameters), parts),
            )


def _c_end(end: int | None) -> str:
    return "INT_MAX" if end is None else str(end)
