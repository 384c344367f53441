"""The decision table: for every collective, communicator and message size, what to run.

Each table is total: its rules are sorted, disjoint, begin at 0 bytes and end without limit;
where nothing was tuned, and wherever a rule's constraints do not hold, the native routine
serves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagegen.errors import InputError
from stagegen.measure.records import Candidate
from stagegen.repository.algorithm import NATIVE

VERSION = 1

#: Kinds of communicators: all ranks of the cluster, or as many ranks with no topology known.
KINDS = ("cluster", "other")


@dataclass(frozen=True)
class Rule:
    """Messages of ``start`` bytes and more, up to the next rule, go to ``candidate``.

    Attributes:
        start: smallest message in bytes.
        candidate: what serves them.
        crossover: the sizes between which the change lies: (last at which the rule before
            was kept, first at which this one won); None for the first rule.
    """

    start: int
    candidate: Candidate
    crossover: tuple[int, int] | None = None


@dataclass(frozen=True)
class Table:
    """The rules of one collective for one kind of communicator."""

    collective: str
    communicator: str
    ranks: int
    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        starts = [rule.start for rule in self.rules]
        if not starts or starts[0] != 0 or sorted(set(starts)) != starts:
            raise ValueError(f"rules of {self.collective} must ascend from 0: {starts}")

    def choice(self, size: int) -> Candidate:
        """Return what serves a message of ``size`` bytes."""
        return [rule.candidate for rule in self.rules if rule.start <= size][-1]

    def end_of(self, index: int) -> int | None:
        """Return the largest message of a rule in bytes, or None for the last."""
        return self.rules[index + 1].start - 1 if index + 1 < len(self.rules) else None


@dataclass(frozen=True)
class DecisionTable:
    """All tables, and what they were made from and for.

    Attributes:
        cluster: name of the topology.
        topology_hash: of the topology.
        catalogue_hash: of the catalogue of algorithms.
        representative: whether the cluster itself was measured.
        tables: sorted by collective and communicator.
    """

    cluster: str
    topology_hash: str
    catalogue_hash: str
    representative: bool
    tables: tuple[Table, ...]

    def table(self, collective: str, communicator: str = "cluster") -> Table | None:
        """Return one table, or None where that was not tuned."""
        for table in self.tables:
            if (table.collective, table.communicator) == (collective, communicator):
                return table
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``decision.json``."""
        return {
            "version": VERSION,
            "cluster": self.cluster,
            "topology_hash": self.topology_hash,
            "catalogue_hash": self.catalogue_hash,
            "representative": self.representative,
            "fallback": NATIVE,
            "tables": [_table_json(table) for table in self.tables],
        }

    def to_text(self) -> str:
        """Return ``decision.json``."""
        return json.dumps(self.to_json(), indent=2) + "\n"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DecisionTable:
        """Read ``decision.json``.

        Raises:
            InputError: it is not one, or its tables are not total.
        """
        try:
            if data["version"] != VERSION:
                raise InputError(f"a decision table of version {VERSION} is needed")
            return cls(
                cluster=data["cluster"],
                topology_hash=data["topology_hash"],
                catalogue_hash=data["catalogue_hash"],
                representative=data["representative"],
                tables=tuple(_read_table(table) for table in data["tables"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(f"not a decision table: {error!r}") from error


def _table_json(table: Table) -> dict[str, Any]:
    return {
        "collective": table.collective,
        "communicator": table.communicator,
        "ranks": table.ranks,
        "rules": [
            {
                "from": rule.start,
                "to": table.end_of(index),
                "algorithm": rule.candidate.algorithm,
                "parameters": dict(rule.candidate.parameters),
                "crossover": list(rule.crossover) if rule.crossover else None,
            }
            for index, rule in enumerate(table.rules)
        ],
    }


def _read_table(data: Mapping[str, Any]) -> Table:
    rules = (
        Rule(
            rule["from"],
            Candidate(rule["algorithm"], tuple(sorted(rule["parameters"].items()))),
            (rule["crossover"][0], rule["crossover"][1]) if rule["crossover"] else None,
        )
        for rule in data["rules"]
    )
    return Table(data["collective"], data["communicator"], data["ranks"], tuple(rules))
