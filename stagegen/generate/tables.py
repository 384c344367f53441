"""Numbers as the text of C tables, in lines that are quick to compile and to read.

The lines are made here and not in a template's loops: a cluster of 512 ranks has a million of
them. ``docs/interfaces.md`` (Generated C tables) says what they mean.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from stagegen.schedule import Rows, Step, Token

NOBODY = -1
_INDENT = "    "
#: The most ranks of a table that has comments for people.
_EXPLAINED_MOST = 64
_SHORT_MOST = 2**15 - 1


def numbers(values: Iterable[int]) -> str:
    """Return indented lines of comma-separated numbers."""
    text = ", ".join(map(str, values))
    return textwrap.fill(
        f"{text},", 88, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )


def rank_lines(rows: Iterable[Iterable[str]]) -> str:
    """Return the lines of every rank below a comment with its position."""
    lines: list[str] = []
    for position, row in enumerate(rows):
        lines.append(f"{_INDENT}/* position {position} */")
        lines += row
    return "\n".join(lines)


def per_rank(rows: Iterable[Iterable[Sequence[int]]]) -> str:
    """Return a table with a row of numbers for every rank and, say, root."""
    return rank_lines((f"{_INDENT}{', '.join(map(str, row))}," for row in rank) for rank in rows)


def aapc_tables(rows: Rows, windowed: bool) -> dict[str, Any]:
    """Return the values for ``alltoall/_aapc.c.j2`` from a schedule.

    Args:
        rows: the schedule by ranks.
        windowed: whether tokens carry the windows that they belong to.
    """
    step_fields = ["PHASE", "TO", "FROM"]
    step_fields += ["DUMMY_TO", "DUMMY_FROM"] if rows.scheme.dummies else []
    step_fields += ["PLACE"] if rows.placed else []
    values: dict[str, Any] = {
        "phase_count": rows.phase_count,
        "scheme": rows.scheme,
        "c_type": "short" if max(rows.phase_count, len(rows.rows)) <= _SHORT_MOST else "int",
        "first_step": numbers(accumulate(map(len, rows.rows), initial=0)),
    }
    if rows.scheme.giver is not None:
        step_fields += ["AWAITED", "OWED"]
        values |= _token_tables(rows.rows, windowed)
    values["step_fields"] = step_fields
    lines = (_step_lines(row, step_fields) for row in rows.rows)
    values["steps"] = rank_lines(lines) if any(rows.rows) else _nothing(len(step_fields))
    return values


def _nothing(fields: int) -> str:
    """Return a row that no rank uses: a C table cannot be empty."""
    return numbers([NOBODY] * fields)


def _step_lines(row: Sequence[Step], fields: Sequence[str]) -> Iterator[str]:
    dummies, placed, tokens = (name in fields for name in ("DUMMY_TO", "PLACE", "OWED"))
    for step in row:
        line = (
            f"{_INDENT}{step.phase}, {_or_nobody(step.send_to)}, {_or_nobody(step.receive_from)},"
        )
        if dummies:
            line += f" {_or_nobody(step.dummy_to)}, {_or_nobody(step.dummy_from)},"
        if placed:
            line += f" {_or_nobody(step.place)},"
        if tokens:
            line += f" {len(step.await_from)}, {len(step.owed)},"
        yield line


def _or_nobody(rank: int | None) -> int:
    return NOBODY if rank is None else rank


def _token_tables(rows: Sequence[Sequence[Step]], windowed: bool) -> Mapping[str, Any]:
    counts = [sum(len(step.await_from) + len(step.owed) for step in row) for row in rows]
    explained = len(rows) <= _EXPLAINED_MOST
    fields = ["PEER", "OTHER_PHASE", *(["WINDOWS"] if windowed else [])]
    return {
        "token_fields": fields,
        "first_token": numbers(accumulate(counts, initial=0)),
        "tokens": rank_lines(_token_lines(row, windowed, explained) for row in rows)
        if any(counts)
        else _nothing(len(fields)),
        "awaited_most": max((len(step.await_from) for row in rows for step in row), default=0),
        "owed_most": max((sum(len(step.owed) for step in row) for row in rows), default=0),
    }


def _token_lines(row: Sequence[Step], windowed: bool, explained: bool) -> Iterator[str]:
    """Yield the tokens of each step: a line of awaited tokens, then a line of owed ones."""
    for step in row:
        for tokens, word in ((step.await_from, "awaited"), (step.owed, "owed")):
            if tokens:
                line = _INDENT + " ".join(_token(token, windowed) for token in tokens)
                yield f"{line} /* {word} in phase {step.phase} */" if explained else line


def _token(token: Token, windowed: bool) -> str:
    windows = f" {token.windows}," if windowed else ""
    return f"{token.peer}, {token.phase},{windows}"
