"""Numbers as the text of C tables, in lines that are quick to compile and to read.

The lines are made here and not in a template's loops: a cluster of 512 ranks has a million of
them. ``docs/interfaces.md`` (Generated C tables) says what they mean.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from stagegen.schedule import Rows, Step

NOBODY = -1
_INDENT = "    "
#: The most ranks of a table that has comments for people.
_EXPLAINED_MOST = 64


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


def aapc_tables(rows: Rows) -> dict[str, Any]:
    """Return the values for ``alltoall/_tables.h.j2`` from a schedule by ranks.

    There are dummies, places and tokens only if the schedule has them.
    """
    steps = any(rows.rows)
    values: dict[str, Any] = {
        "phase_count": rows.phase_count,
        "scheme": rows.scheme,
        "first_step": numbers(accumulate(map(len, rows.rows), initial=0)),
        "steps": rank_lines(map(_step_lines, rows.rows)) if steps else _nothing(5),
    }
    if rows.scheme.dummies:
        dummies = (map(_dummies_line, row) for row in rows.rows)
        values["dummies"] = rank_lines(dummies) if steps else _nothing(2)
    if rows.placed:
        places = ([numbers(_or_nobody(s.place) for s in row)] if row else [] for row in rows.rows)
        values["places"] = rank_lines(places) if steps else numbers([NOBODY])
    if rows.scheme.giver is not None:
        values |= _token_tables(rows.rows)
    return values


def _nothing(members: int) -> str:
    """Return a record that no rank uses: a C table cannot be empty."""
    return f"{_INDENT}{_record([NOBODY] * members)}"


def _record(members: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, members))}}},"


def _step_lines(row: Sequence[Step]) -> Iterator[str]:
    for step in row:
        ends = _or_nobody(step.send_to), _or_nobody(step.receive_from)
        yield _INDENT + _record((step.phase, *ends, len(step.await_from), len(step.owed)))


def _dummies_line(step: Step) -> str:
    return _INDENT + _record((_or_nobody(step.dummy_to), _or_nobody(step.dummy_from)))


def _or_nobody(rank: int | None) -> int:
    return NOBODY if rank is None else rank


def _token_tables(rows: Sequence[Sequence[Step]]) -> Mapping[str, Any]:
    counts = [sum(len(step.await_from) + len(step.owed) for step in row) for row in rows]
    explained = len(rows) <= _EXPLAINED_MOST
    return {
        "first_token": numbers(accumulate(counts, initial=0)),
        "tokens": rank_lines(_token_lines(row, explained) for row in rows)
        if any(counts)
        else _nothing(3),
        "awaited_most": max((len(step.await_from) for row in rows for step in row), default=0),
        "owed_most": max((sum(len(step.owed) for step in row) for row in rows), default=0),
    }


def _token_lines(row: Sequence[Step], explained: bool) -> Iterator[str]:
    """Yield the tokens of each step: a line of awaited tokens, then a line of owed ones."""
    for step in row:
        for tokens, word in ((step.await_from, "awaited"), (step.owed, "owed")):
            if tokens:
                line = _INDENT + " ".join(map(_record, tokens))
                yield f"{line} /* {word} in phase {step.phase} */" if explained else line
