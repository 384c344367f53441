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
        c_name: of the table.
        collective: the collective that it is for.
        kind: of communicators: `cluster` (or a group of it), `hosts` or `other`.
        group: number of the group that it is for, 0 being the whole cluster; -1 for others.
        one_host: whether all ranks are on one host, of the cluster or not.
        ranks_from: the fewest ranks of a communicator.
        c_ranks_to: the most, as a C expression.
        rules: by size; for each size the choice, its alternatives, and the native routine.
    """

    c_name: str
    collective: str
    kind: str
    group: int
    one_host: bool
    ranks_from: int
    c_ranks_to: str
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
    """Return the rule tables for a build, without tables that nothing was measured for.

    Args:
        decision: the tables.
        routines: of the build.
        groups: names of the groups that have tables of schedules; the first is the whole.

    Raises:
        InputError: a table is for an unknown group.
    """
    index = {(r.collective, r.algorithm, r.group): r.index for r in routines}
    return [_c_table(table, index, groups) for table in decision.tables if table.ranks is not None]


def _c_table(
    table: Table, index: Mapping[tuple[str, str, int], int], groups: Sequence[str]
) -> CTable:
    kind, _, name = table.communicator.partition(" ")
    group = -1 if kind in GENERIC else _number(name, groups)
    suffix = table.ranks if group < 0 else group
    return CTable(
        c_name=f"{table.collective}_{kind.replace('-', '_')}" + (f"_{suffix}" if suffix else ""),
        collective=table.collective,
        kind=CLUSTER if group >= 0 else OTHER if kind == ONE_HOST else kind,
        group=group,
        one_host=kind == ONE_HOST,
        ranks_from=table.ranks_from,
        c_ranks_to=_c_end(table.ranks_to),
        rules=tuple(_c_rules(table, index, group)),
    )


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
