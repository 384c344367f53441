"""Reads the tables of a generated C file: arrays of numbers, constants, and names of fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stagegen.errors import InputError, ScheduleError

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ARRAY = re.compile(r"static const (?:short|int) (\w+)\[\] = \{([^{}]*)\};")
_ENUM = re.compile(r"\benum (\w* ?)\{([^{}]*)\};")
_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class CFile:
    """What a C file holds.

    Attributes:
        name: of the file.
        code: its text without comments.
        arrays: by name, the numbers of each `static const` array of short or int.
        constants: by name, of enumerations that give numbers.
        fields: by name of the enumeration, its names, where it gives no numbers.
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


def read_c_file(path: Path) -> CFile:
    """Return what a C file holds.

    Raises:
        InputError: it cannot be read.
        ScheduleError: an array holds something other than numbers.
    """
    try:
        code = _COMMENT.sub(" ", path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("cannot read it", path) from error
    constants: dict[str, int] = {}
    fields: dict[str, tuple[str, ...]] = {}
    for name, body in _ENUM.findall(code):
        items = [item.strip() for item in body.split(",")]
        if name.strip():
            fields[name.strip()] = tuple(items)
        for item in items:
            left, _, right = item.partition(" = ")
            if _NUMBER.fullmatch(right):
                constants[left] = int(right)
    arrays = {name: _numbers(name, body) for name, body in _ARRAY.findall(code)}
    return CFile(path.name, code, arrays, constants, fields)


def _numbers(name: str, body: str) -> tuple[int, ...]:
    items = [item.strip() for item in body.split(",")]
    if items and not items[-1]:
        items.pop()
    for item in items:
        if not _NUMBER.fullmatch(item):
            raise ScheduleError(f"table {name}[] holds {item!r}, which is no number")
    return tuple(map(int, items))
