"""Reads tables back from generated C: what docs/interfaces.md says of them, and nothing else."""

from __future__ import annotations

import re

from stagegen.schedule import Step, Token

_TABLE = re.compile(
    r"^static const (?:short|int) (\w+)\[\] = \{(.*?)^\};", re.MULTILINE | re.DOTALL
)
_ENUM = re.compile(r"enum (?:\w+ )?\{(.*?)\}", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def tables(text: str) -> dict[str, list[int]]:
    """Every table of a C file, by name."""
    plain = _COMMENT.sub("", text)
    return {
        name: [int(number) for number in body.replace("\n", " ").split(",") if number.strip()]
        for name, body in _TABLE.findall(plain)
    }


def fields(text: str, last: str) -> list[str]:
    """The names of the enumeration that ends with `last`, without that one."""
    for body in _ENUM.findall(_COMMENT.sub("", text)):
        names = [name.strip() for name in body.split(",")]
        if names[-1] == last:
            return names[:-1]
    return []


def constant(text: str, name: str) -> int:
    (value,) = re.findall(rf"\b{name} = (-?\d+)", _COMMENT.sub("", text))
    return int(value)


def _records(text: str, table: str, last: str) -> list[dict[str, int]]:
    names, numbers = fields(text, last), tables(text).get(table, [])
    size = len(names) or 1
    return [
        dict(zip(names, numbers[i : i + size], strict=True)) for i in range(0, len(numbers), size)
    ]


def _token(record: dict[str, int]) -> Token:
    return Token(record["PEER"], record["OTHER_PHASE"], record.get("WINDOWS", 1))


def _rank(record: dict[str, int], field: str) -> int | None:
    return None if record.get(field, -1) == -1 else record[field]


def steps_of(text: str) -> tuple[tuple[Step, ...], ...]:
    """The steps of every position, as rows of the schedule say them."""
    every = tables(text)
    steps = _records(text, "steps", "STEP_FIELDS")
    tokens = list(map(_token, _records(text, "tokens", "TOKEN_FIELDS")))
    rows = []
    for position, (start, end) in enumerate(
        zip(every["first_step"], every["first_step"][1:], strict=False)
    ):
        row, place = [], every["first_token"][position] if tokens else 0
        for record in steps[start:end]:
            awaited = place + record.get("AWAITED", 0)
            after = awaited + record.get("OWED", 0)
            row.append(
                Step(
                    record["PHASE"],
                    *(_rank(record, name) for name in ("TO", "FROM", "DUMMY_TO", "DUMMY_FROM")),
                    tuple(tokens[place:awaited]),
                    tuple(tokens[awaited:after]),
                    _rank(record, "PLACE"),
                )
            )
            place = after
        rows.append(tuple(row))
    return tuple(rows)
