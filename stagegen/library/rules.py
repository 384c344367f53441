"""The decision table in the shape of the dispatcher's C tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagegen.catalogue import Algorithm, Catalogue
from stagegen.errors import InputError
from stagegen.generate.routines import Routine, c_parameters
from stagegen.measure.records import Candidate
from stagegen.tune import DecisionTable, Table
from stagegen.tune.decision import CLUSTER, GENERIC, ONE_HOST, OTHER
from stagegen.tune.shapes import Range, Shape


@dataclass(frozen=True)
class CRule:
    """A row of a rule table in C."""

    c_upto: str
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
    return [_c_table(table, index, groups, names) for table in decision.tables]


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
    return CTable(
        c_name=names.setdefault((table.collective, rules), own),
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
        raise InputError(f"the decision table has a group {name}, which the topology lacks")
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
                c_upto=_c_end(table.end_of(number)),
                routine_index=place(table.collective, candidate),
                algorithm=candidate.algorithm,
                c_parameters=c_parameters(dict(candidate.parameters), parts),
            )


def _c_end(end: int | None) -> str:
    return "INT_MAX" if end is None else str(end)
