"""Reads tables back from generated C: what docs/interfaces.md says of them, and nothing else."""

from __future__ import annotations

import re
from itertools import pairwise

from stagegen.schedule import Step, Token

_TABLE = re.compile(
    r"^static const (?:short|int) (\w+)\[\] = \{(.*?)^\};", re.MULTILINE | re.DOTALL
)
_RECORDS = re.compile(
    r"^static const struct \w+ (\w+)\[\] = \{\n(.*?)^\};", re.MULTILINE | re.DOTALL
)
_RECORD = re.compile(r"\{([-\d, ]*)\}")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def tables(text: str) -> dict[str, list[int]]:
    """Every table of numbers of a C file, by name."""
    plain = _COMMENT.sub("", text)
    return {
        name: [int(number) for number in body.replace("\n", " ").split(",") if number.strip()]
        for name, body in _TABLE.findall(plain)
    }


def records(text: str) -> dict[str, list[list[int]]]:
    """Every table of records of a C file, by name, without the one that stands for nothing."""
    found = {}
    for name, body in _RECORDS.findall(_COMMENT.sub("", text)):
        rows = [[int(number) for number in row.split(",")] for row in _RECORD.findall(body)]
        found[name] = [] if len(rows) == 1 and set(rows[0]) == {-1} else rows
    return found


def members(text: str) -> dict[str, str]:
    """The members of a schedule, by name, as text."""
    return dict(re.findall(r"^    \.(\w+) = (\w+),$", text, re.MULTILINE))


def _rank(number: int) -> int | None:
    return None if number == -1 else number


def steps_of(text: str) -> tuple[tuple[Step, ...], ...]:
    """The steps of every position, as rows of the schedule say them."""
    every, rows = tables(text), records(text)
    tokens = [Token(*row) for row in rows.get("tokens", [])]
    dummies = rows.get("dummies", [[-1, -1]] * len(rows["steps"]))
    places = every.get("places", [-1] * len(rows["steps"]))
    found = []
    for position, (start, end) in enumerate(pairwise(every["first_step"])):
        row, place = [], every["first_token"][position] if tokens else 0
        for number in range(start, end):
            phase, to, source, awaited, owed = rows["steps"][number]
            middle, after = place + awaited, place + awaited + owed
            ends = (to, source, *dummies[number])
            row.append(
                Step(
                    phase,
                    *map(_rank, ends),
                    tuple(tokens[place:middle]),
                    tuple(tokens[middle:after]),
                    _rank(places[number]),
                )
            )
            place = after
        found.append(tuple(row))
    return tuple(found)
