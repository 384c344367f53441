"""Reads the tables of a routine: a file that is nothing but data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stagegen.audit.c_text import number, numbers, read_source, rows_of
from stagegen.errors import ScheduleError

DATA = ".tables.h"
"""How the name of a routine's file of tables ends, after the name of its function."""

NOBODY = -1
"""Stands for no rank. A table without records has one record of it throughout."""

_ITEM = re.compile(
    r"\s*(?:"
    r"enum \{(?P<constants>[^{}]*)\};"
    r"|static const (?P<width>int|short) (?P<numbers>\w+)\[\] = \{(?P<body>[^{}]*)\};"
    r"|static const struct (?P<record>\w+) (?P<records>\w+)\[\] = \{(?P<rows>[^;=]*)\};"
    r"|static const struct (?P<type>\w+) (?P<struct>\w+) = \{(?P<members>[^{}]*)\};"
    r")"
)
_ROW = re.compile(r"\{([^{}]*)\},\s*")
_MEMBER = re.compile(r"\.(\w+) = &?(\w+),\s*")
_CONSTANT = re.compile(r"(\w+) = (-?\w+)(?:,\s*|\Z)")
_MOST = {"short": 2**15 - 1, "int": 2**31 - 1}

Record = tuple[int, ...]


@dataclass(frozen=True)
class Tables:
    """Tables and constants.

    Attributes:
        constants: by name, the values of enumerations.
        arrays: by name, the numbers of each table of numbers.
        records: by name, the type and the records of each table of records.
        structs: by name, the type and the members of each single record.
    """

    constants: Mapping[str, int]
    arrays: Mapping[str, Record]
    records: Mapping[str, tuple[str, Sequence[Record]]]
    structs: Mapping[str, tuple[str, Mapping[str, str]]]

    @property
    def names(self) -> list[str]:
        """The names of all tables, in alphabetical order."""
        return sorted((*self.arrays, *self.records))

    @property
    def defined(self) -> frozenset[str]:
        """All names that the file defines."""
        return frozenset((*self.constants, *self.arrays, *self.records, *self.structs))

    def require_constants(self, wanted: Mapping[str, int]) -> None:
        """Check that the constants are these and no others.

        Raises:
            ScheduleError: they are not; names those that differ.
        """
        wrong = [
            f"{name} is {self.constants.get(name, 'missing')}, expected {wanted.get(name, 'none')}"
            for name in sorted({*self.constants, *wanted})
            if self.constants.get(name) != wanted.get(name)
        ]
        if wrong:
            raise ScheduleError(f"wrong constants: {'; '.join(wrong)}")

    def array(self, name: str) -> Record:
        """Return a table of numbers.

        Raises:
            ScheduleError: there is none of that name.
        """
        if name not in self.arrays:
            raise ScheduleError(f"there is no table {name}[]; there are {_listed(self.names)}")
        return self.arrays[name]

    def records_of(self, name: str, record: str, members: int) -> Sequence[Record]:
        """Return a table of records; none if its only one is the record that stands for nothing.

        Raises:
            ScheduleError: there is none of that name and type, or a record has other members.
        """
        found, rows = self.records.get(name, ("", ()))
        if found != record:
            problem = f"it has struct {found}" if found else f"there are {_listed(self.names)}"
            raise ScheduleError(f"there is no table {name}[] of struct {record}; {problem}")
        for row in rows:
            if len(row) != members:
                raise ScheduleError(f"{name}[] has a record of {len(row)} numbers, not {members}")
        return () if list(rows) == [(NOBODY,) * members] else rows

    def members_of(self, name: str, struct: str) -> Mapping[str, str]:
        """Return the members of a single record.

        Raises:
            ScheduleError: there is none of that name and type.
        """
        found, members = self.structs.get(name, ("", {}))
        if found != struct:
            problem = f"it is struct {found}" if found else f"there are {_listed(self.structs)}"
            raise ScheduleError(f"there is no struct {struct} {name}; {problem}")
        return members

    def divided(self, name: str, parts: int, count: int, what: str) -> Record:
        """Return a table that says where each part of `count` records begins, and the last ends.

        Raises:
            ScheduleError: it does not divide the records.
        """
        first = self.array(name)
        if len(first) != parts + 1:
            raise ScheduleError(f"{name}[] has {len(first)} numbers, not {parts + 1}")
        ascending = all(one <= other for one, other in pairwise(first))
        if not ascending or (first[0], first[-1]) != (0, count):
            problem = f"it goes from {first[0]} to {first[-1]}"
            if not ascending:
                problem = "its numbers must ascend"
            raise ScheduleError(
                f"{name}[] does not divide the {count} {what} into {parts} parts: {problem}"
            )
        return first


def read_data_file(path: Path) -> Tables:
    """Return the contents of a file that holds constants and tables, and nothing else.

    Raises:
        InputError: it cannot be read.
        ScheduleError: it holds something else, or defines a name twice.
    """
    text = read_source(path).rstrip()
    constants: dict[str, int] = {}
    arrays: dict[str, Record] = {}
    records: dict[str, tuple[str, Sequence[Record]]] = {}
    structs: dict[str, tuple[str, Mapping[str, str]]] = {}
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise ScheduleError(f"{' '.join(text[at:].split())[:60]!r} is not understood")
        at = item.end()
        name = item["numbers"] or item["records"] or item["struct"]
        if name in {*arrays, *records, *structs}:
            raise ScheduleError(f"table {name}[] is defined twice")
        if item["constants"] is not None:
            _add_constants(constants, item["constants"])
        elif item["numbers"] is not None:
            arrays[name] = _numbers(name, item["body"], item["width"])
        elif item["records"] is not None:
            rows = rows_of(name, item["rows"], _ROW)
            records[name] = item["record"], [_numbers(name, row[1], "int") for row in rows]
        else:
            structs[name] = item["type"], _members(name, item["members"])
    return Tables(constants, arrays, records, structs)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _numbers(name: str, body: str, c_type: str) -> Record:
    found = numbers(name, body)
    if max(map(abs, found), default=0) > _MOST[c_type]:
        most = _MOST[c_type]
        problem = f"{max(found, key=abs)}, which is too large for {c_type}: its most is {most}"
        raise ScheduleError(f"table {name}[] has {problem}")
    return found


def _add_constants(constants: dict[str, int], body: str) -> None:
    for item in rows_of("enum", body, _CONSTANT):
        value = number(item[2])
        if value is None or item[1] in constants:
            problem = "is given twice" if item[1] in constants else "has no decimal number"
            raise ScheduleError(f"the constant {item[0].strip()!r} {problem}")
        constants[item[1]] = value


def _members(name: str, body: str) -> Mapping[str, str]:
    members: dict[str, str] = {}
    for item in rows_of(name, body, _MEMBER):
        if item[1] in members:
            raise ScheduleError(f"{name}.{item[1]} is given twice")
        members[item[1]] = item[2]
    return members
