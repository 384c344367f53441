"""Reads the tables of a generated C file: arrays of numbers, constants, and names of fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stagegen.audit.c_text import enumerations, numbers, read_source
from stagegen.errors import ScheduleError

_ARRAY = re.compile(r"^static const (short|int) (\w+)\[\] = \{([^{}]*)\};$", re.M)
_ANY_ARRAY = re.compile(r"[^;{}]*\]\s*=\s*\{|\bconst\b[^;{}()=]*\[[^\]]*\]\s*[=;]")
_REQUESTS = re.compile(r"\bMPI_Request \w+\[\w*\] = \{[^{};0-9]*\};")
"""Arrays of requests at the start of a function: they hold no numbers."""
_MOST = {"short": 2**15 - 1, "int": 2**31 - 1}


@dataclass(frozen=True)
class CFile:
    """The contents of a C file.

    Attributes:
        name: of the file.
        code: its text without comments and tables.
        arrays: by name, the numbers of each table.
        constants: by name, the values of enumerations.
        fields: by name, the constants of each enumeration.
    """

    name: str
    code: str
    arrays: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, int]
    fields: Mapping[str, tuple[str, ...]]

    def array(self, name: str) -> tuple[int, ...]:
        """Return an array.

        Raises:
            ScheduleError: there is none of that name.
        """
        if name not in self.arrays:
            raise ScheduleError(f"there is no table {name}[]")
        return self.arrays[name]

    def divided(self, name: str, parts: int, count: int, what: str) -> tuple[int, ...]:
        """Return a table that says where each part of `count` records begins, and the last ends.

        Raises:
            ScheduleError: it does not divide the records.
        """
        first = self.array(name)
        if len(first) != parts + 1:
            raise ScheduleError(f"{name}[] has {len(first)} numbers, not {parts + 1}")
        ascending = all(one <= other for one, other in pairwise(first))
        if not ascending or (first[0], first[-1]) != (0, count):
            raise ScheduleError(f"{name}[] does not divide the {count} {what} into {parts} parts")
        return first

    def constant(self, name: str) -> int:
        """Return a constant.

        Raises:
            ScheduleError: there is none of that name with a value.
        """
        if name not in self.constants:
            raise ScheduleError(f"there is no constant {name}")
        return self.constants[name]

    def require(self, **constants: int) -> None:
        """Check the values of constants.

        Raises:
            ScheduleError: one is missing, or has another value.
        """
        for name, value in constants.items():
            if self.constant(name) != value:
                raise ScheduleError(f"{name} is {self.constants[name]}, not {value}")


def read_c_file(path: Path) -> CFile:
    """Return the contents of a C file.

    Raises:
        InputError: it cannot be read.
        ScheduleError: its tables, or its lines for the preprocessor, are not understood.
    """
    code = read_source(path)
    arrays: dict[str, tuple[int, ...]] = {}
    for c_type, name, body in _ARRAY.findall(code):
        if name in arrays:
            raise ScheduleError(f"table {name}[] is defined twice")
        arrays[name] = numbers(name, body)
        if max(map(abs, arrays[name]), default=0) > _MOST[c_type]:
            raise ScheduleError(f"table {name}[] has a number that is too large for {c_type}")
    rest = _ARRAY.sub("", code)
    if (unknown := _ANY_ARRAY.search(_REQUESTS.sub("", rest))) is not None:
        raise ScheduleError(f"the table {' '.join(unknown[0].split())!r} is not understood")
    return CFile(path.name, rest, arrays, *enumerations(rest))
