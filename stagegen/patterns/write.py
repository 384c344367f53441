"""Writes pattern files: YAML with arrays that are short where blocks repeat or are empty."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from stagegen.patterns.model import Pattern

#: Rows with at most this part of blocks are written as `destination: bytes`.
_SPARSE = 0.25
_UNITS = ((1 << 20, "MiB"), (1 << 10, "KiB"))


def patterns_yaml(patterns: Iterable[Pattern]) -> str:
    """Return the text of a pattern file; :func:`stagegen.patterns.read_patterns` reads it."""
    lines = ["patterns:"]
    for pattern in patterns:
        lines += _pattern(pattern)
    return "\n".join(lines) + "\n"


def _pattern(pattern: Pattern) -> Iterator[str]:
    yield f"- name: {_quoted(pattern.name)}"
    yield f"  collective: {pattern.collective}"
    yield f"  ranks: {pattern.ranks}"
    if pattern.is_class:
        yield "  class: true"
    if pattern.scales:
        yield f"  scales: [{', '.join(map(_number, pattern.scales))}]"
    if pattern.site is not None:
        yield f"  site: {_quoted(pattern.site)}"
    if pattern.communicator is not None:
        yield f"  communicator: [{', '.join(_spans(pattern.communicator))}]"
    if pattern.calls:
        yield f"  calls: [{', '.join(_spans(pattern.calls))}]"
    if pattern.is_matrix:
        yield "  bytes:"
        yield from (f"  - {_row(row)}" for row in pattern.sizes)
    else:
        yield f"  bytes: {_row(pattern.sizes[0])}"


def _number(value: float) -> str:
    """Return the shortest text from which the same number is read."""
    return str(int(value)) if value.is_integer() else repr(value)


def _quoted(text: str) -> str:
    """Return a text in quotes as YAML and JSON have them; what cannot be printed is escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(ord(c)) for c in plain)


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def _row(row: Sequence[int]) -> str:
    blocks = [(place, size) for place, size in enumerate(row) if size]
    if len(blocks) <= _SPARSE * len(row):
        return "{" + ", ".join(f"{place}: {_size(size)}" for place, size in blocks) + "}"
    runs = ((size, len(list(group))) for size, group in groupby(row))
    return f"[{', '.join(_size(size) + (f'*{count}' * (count > 1)) for size, count in runs)}]"


def _size(size: int) -> str:
    for factor, unit in _UNITS:
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _spans(numbers: Sequence[int]) -> Iterator[str]:
    """Yield runs of consecutive numbers as `first-last`."""
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
