"""Reads the text of generated C without comments; refuses text that a preprocessor would change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path

from stagegen.errors import InputError, ScheduleError

_COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S
)
_INCLUDE = re.compile(r'[ \t]*#include (?:<\w+\.h>|"(?:coll|dispatch)\.h")[ \t]*')
_UNREADABLE = re.compile(r"^[ \t]*(?:#|%:)[^\n]*|\\\n|\?\?[^\n]*|<%|%>|<:|:>|\b_Pragma\b", re.M)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,9})")
_ENUM = re.compile(r"\benum (\w* ?)\{([^{}]*)\}")


def read_source(path: Path) -> str:
    """Return the text of a C file, a blank in place of each comment.

    Raises:
        InputError: it cannot be read.
        ScheduleError: it has `#if`, `#define` or the like, so the compiler may see another text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("cannot read it", path) from error
    code = _COMMENT_OR_STRING.sub(lambda m: m[0] if m[0][0] in "\"'" else " ", text)
    lines = [line for line in code.split("\n") if not _INCLUDE.fullmatch(line)]
    if (found := _UNREADABLE.search("\n".join(lines))) is not None:
        raise ScheduleError(f"{path}: {found[0].strip()!r} hides what is compiled")
    return code


def number(text: str) -> int | None:
    """Return a decimal number of C; None for anything else, such as an octal one."""
    return int(text) if _NUMBER.fullmatch(text) else None


def numbers(name: str, body: str) -> tuple[int, ...]:
    """Return the numbers of an initialiser.

    Raises:
        ScheduleError: it holds something else; names the table.
    """
    items = [item.strip() for item in body.split(",")]
    if not items[-1]:
        items.pop()
    values = [number(item) for item in items]
    for item, value in zip(items, values, strict=True):
        if value is None:
            raise ScheduleError(f"table {name}[] holds {item!r}, which is no number")
    return tuple(value for value in values if value is not None)


def rows_of(name: str, body: str, row: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the rows of an initialiser, each of which ends in a comma.

    Raises:
        ScheduleError: something there is not understood; names the table.
    """
    at, body = 0, body.strip()
    while at < len(body):
        found = row.match(body, at)
        if found is None:
            raise ScheduleError(f"table {name}[] holds {body[at : at + 40]!r}, which is no row")
        yield found
        at = found.end()


def only(pattern: str, code: str, what: str) -> re.Match[str]:
    """Return the only place of a pattern.

    Raises:
        ScheduleError: there is none, or there are several; names what was looked for.
    """
    found = list(re.finditer(pattern, code, re.S))
    if len(found) != 1:
        raise ScheduleError(f"there is {'no' if not found else 'more than one'} {what}")
    return found[0]


def enumerations(code: str) -> tuple[Mapping[str, int], Mapping[str, tuple[str, ...]]]:
    """Return the values of all constants, and the names of each enumeration that has a name.

    Constants that are not sums of products of numbers and constants have no value here.

    Raises:
        ScheduleError: a constant is defined twice.
    """
    values: dict[str, int] = {}
    fields: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for tag, body in _ENUM.findall(code):
        names: list[str] = []
        last: int | None = -1
        for item in (item.strip() for item in body.split(",")):
            name, given, right = (part.strip() for part in item.partition("="))
            last = _sum(right, values) if given else None if last is None else last + 1
            if name in seen:
                raise ScheduleError(f"the constant {name} is defined twice")
            seen.add(name)
            names.append(item)
            if last is not None:
                values[name] = last
        if tag.strip():
            fields[tag.strip()] = tuple(names)
    return values, fields


def _sum(text: str, values: Mapping[str, int]) -> int | None:
    terms = [_product(term, values) for term in text.split(" + ")]
    return None if None in terms else sum(term for term in terms if term is not None)


def _product(text: str, values: Mapping[str, int]) -> int | None:
    factors = [values.get(factor, number(factor)) for factor in text.split(" * ")]
    return None if None in factors else prod(factor for factor in factors if factor is not None)
