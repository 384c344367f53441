"""The decision table in the shape of the dispatcher's C tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagegen.generate.routines import Routine, c_parameters
from stagegen.measure.records import Candidate
from stagegen.repository import Algorithm, Catalogue
from stagegen.tune import DecisionTable, Table


@dataclass(frozen=True)
class CRule:
    """A row of a rule table in C."""

    c_upto: str
    routine_index: int
    algorithm: str
    c_parameters: str


@dataclass(frozen=True)
class CTable:
    """A rule table in C."""

    c_name: str
    collective: str
    kind: str
    comm_size: int
    rules: tuple[CRule, ...]


def chosen_algorithms(decision: DecisionTable, catalogue: Catalogue) -> tuple[Algorithm, ...]:
    """Return the algorithms that a rule names, in catalogue order.

    Raises:
        InputError: the catalogue lacks one.
    """
    names = {
        (table.collective, rule.candidate.algorithm)
        for table in decision.tables
        for rule in table.rules
    }
    found = {catalogue.find(collective, name).routine for collective, name in names}
    return tuple(a for a in catalogue.algorithms if a.routine in found)


def c_tables(decision: DecisionTable, routines: Sequence[Routine]) -> list[CTable]:
    """Return the rule tables for a build with these routines, of the whole cluster."""
    index = {(r.collective, r.algorithm): r.index for r in routines if r.group == 0}
    return [
        CTable(
            c_name=f"{table.collective}_{table.communicator}",
            collective=table.collective,
            kind=table.communicator,
            comm_size=table.ranks,
            rules=tuple(_c_rules(table, index)),
        )
        for table in decision.tables
    ]


def _c_rules(table: Table, index: dict[tuple[str, str], int]) -> list[CRule]:
    return [
        _c_rule(
            rule.candidate,
            table.end_of(number),
            index[table.collective, rule.candidate.algorithm],
        )
        for number, rule in enumerate(table.rules)
    ]


def _c_rule(candidate: Candidate, end: int | None, routine: int) -> CRule:
    return CRule(
        c_upto="INT_MAX" if end is None else str(end),
        routine_index=routine,
        algorithm=candidate.algorithm,
        c_parameters=c_parameters(dict(candidate.parameters)),
    )
