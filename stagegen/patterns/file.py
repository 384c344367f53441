"""Reads pattern files: checks everything, and reports a mistake with its line."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from stagegen.errors import InputError
from stagegen.patterns.model import (
    BLOCK_BYTES_MOST,
    COLLECTIVES,
    MATRIX,
    PATTERN_RANKS_MOST,
    Pattern,
)
from stagegen.topology.document import Document, did_you_mean, read_document
from stagegen.topology.units import parse_size

_KEYS = ("name", "collective", "ranks", "site", "communicator", "calls", "class", "scales", "bytes")
_NAME_MOST = 80
_MOST_CALLS = 1 << 24
_MOST_SCALE = 1e6


def read_patterns(path: Path | str) -> tuple[Pattern, ...]:
    """Return the patterns of a file.

    Raises:
        InputError: the file cannot be read, or is wrong; with the line.
    """
    doc = Document(Path(path))
    root = read_document(doc.path, "patterns")
    keys = doc.known_keys(root, "the file", ("patterns",), required=("patterns",))
    found: dict[str, Pattern] = {}
    for node in doc.items(keys["patterns"], "patterns"):
        pattern = _pattern(doc, node)
        if pattern.name in found:
            doc.fail(node, f"there is another pattern {pattern.name!r}; names must differ")
        found[pattern.name] = pattern
    if not found:
        doc.fail(keys["patterns"], "there is no pattern; write at least one")
    return tuple(found.values())


def _pattern(doc: Document, node: yaml.Node) -> Pattern:
    keys = doc.known_keys(node, "a pattern", _KEYS, required=("name", "collective", "bytes"))
    collective = doc.text(keys["collective"], "collective")
    if collective not in COLLECTIVES:
        problem = f"unknown collective {collective!r}{did_you_mean(collective, COLLECTIVES)}"
        doc.fail(keys["collective"], problem)
    ranks = doc.count(keys["ranks"], "ranks", PATTERN_RANKS_MOST) if "ranks" in keys else None
    sizes = _sizes(doc, keys["bytes"], ranks, collective in MATRIX)
    members = (
        _numbers(doc, keys["communicator"], "communicator") if "communicator" in keys else None
    )
    if members is not None and (len(members) != len(sizes[0]) or len(set(members)) < len(members)):
        wanted = f"{len(sizes[0])} different ranks"
        doc.fail(keys["communicator"], f"communicator has {len(members)} ranks; write {wanted}")
    return Pattern(
        name=_name(doc, keys["name"]),
        collective=collective,
        sizes=sizes,
        site=doc.text(keys["site"], "site") if "site" in keys else None,
        communicator=members,
        calls=_numbers(doc, keys["calls"], "calls") if "calls" in keys else (),
        is_class=_is_class(doc, keys["class"], collective) if "class" in keys else False,
        scales=_scales(doc, keys["scales"]) if "scales" in keys else (),
    )


def _is_class(doc: Document, node: yaml.Node, collective: str) -> bool:
    if collective not in MATRIX:
        problem = f"only {' and '.join(MATRIX)} can have `class`, not {collective}; leave it out"
        doc.fail(node, f"{problem} (an allgatherv stands for its class anyway)")
    return doc.parsed(node, "class", _truth)


def _scales(doc: Document, node: yaml.Node) -> tuple[float, ...]:
    items = doc.items(node, "scales")
    if not items:
        doc.fail(node, "scales has no number; write at least one, such as 0.25, or leave it out")
    return tuple(sorted({doc.parsed(item, "a scale", _scale) for item in items}))


def _scale(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= _MOST_SCALE:
        raise ValueError(f"{text!r} is not a number above 0, of at most {_MOST_SCALE:,.0f}")
    return value


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false; write one of these")
    return text == "true"


def require_name(name: str, what: str) -> None:
    """Check the name of a pattern.

    Args:
        name: to check.
        what: has this name, for the error.

    Raises:
        InputError: a pattern may not have such a name.
    """
    if not (1 <= len(name) <= _NAME_MOST and name.isprintable() and name == name.strip()):
        rule = f"1 to {_NAME_MOST} printable characters, with no space at the ends"
        raise InputError(f"{what} {name!r} has to have {rule}")


def _name(doc: Document, node: yaml.Node) -> str:
    name = doc.text(node, "name")
    try:
        require_name(name, "name")
    except InputError as error:
        doc.fail(node, error.message)
    return name


def _sizes(
    doc: Document, node: yaml.Node, ranks: int | None, is_matrix: bool
) -> tuple[tuple[int, ...], ...]:
    if not is_matrix:
        return (_row(doc, node, ranks),)
    rows = doc.items(node, "bytes")
    if ranks is not None and len(rows) != ranks:
        doc.fail(node, f"bytes has {len(rows)} rows, but there are {ranks} ranks; write a row each")
    if not rows:
        doc.fail(node, "bytes has no row; write one for each rank")
    return tuple(_row(doc, row, len(rows)) for row in rows)


def _row(doc: Document, node: yaml.Node, ranks: int | None) -> tuple[int, ...]:
    if isinstance(node, yaml.MappingNode):
        return _sparse_row(doc, node, ranks)
    row: list[int] = []
    for entry in doc.items(node, "a row of bytes"):
        size, count = doc.parsed(entry, "bytes", _run)
        if len(row) + count > (ranks or PATTERN_RANKS_MOST):
            doc.fail(
                entry, f"the row has more than {ranks or PATTERN_RANKS_MOST} blocks; shorten it"
            )
        row += [size] * count
    if not row or (ranks is not None and len(row) != ranks):
        doc.fail(node, f"the row has {len(row)} blocks, expected {ranks or 'at least 1'}")
    return tuple(row)


def _sparse_row(doc: Document, node: yaml.MappingNode, ranks: int | None) -> tuple[int, ...]:
    if ranks is None:
        doc.fail(node, "a row of `rank: bytes` needs the key `ranks`; add it")
    row = [0] * ranks
    seen: set[int] = set()
    for key, value in node.value:
        rank = doc.parsed(key, "a rank", _whole)
        if rank >= ranks or rank in seen:
            problem = "is given twice" if rank in seen else "does not exist"
            doc.fail(key, f"rank {rank} {problem}; ranks are 0 to {ranks - 1}")
        seen.add(rank)
        row[rank] = doc.parsed(value, "bytes", _bytes)
    return tuple(row)


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f"{text!r} is not a whole number; write 0 to 999999999")
    return int(text)


def _bytes(text: str) -> int:
    size = 0 if text == "0" else parse_size(text)
    if size > BLOCK_BYTES_MOST:
        raise ValueError(f"a block of {text!r} is too long; write at most 64GiB")
    return size


def _run(text: str) -> tuple[int, int]:
    """Read `bytes` or `bytes*repetitions`."""
    size, star, count = text.partition("*")
    repetitions = _whole(count) if star else 1
    if not 1 <= repetitions <= PATTERN_RANKS_MOST:
        problem = f"{text!r} repeats a block {repetitions} times"
        raise ValueError(f"{problem}; write 1 to {PATTERN_RANKS_MOST}")
    return _bytes(size), repetitions


def _numbers(doc: Document, node: yaml.Node, what: str) -> tuple[int, ...]:
    """Read a list of numbers and of spans `first-last`."""
    found: list[int] = []
    for entry in doc.items(node, what):
        first, last = doc.parsed(entry, what, _span)
        if last - first >= _MOST_CALLS:
            doc.fail(entry, f"{what} has too many numbers; use at most {_MOST_CALLS}")
        found += range(first, last + 1)
    return tuple(found)


def _span(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    span = _whole(first), _whole(last if dash else first)
    if span[1] < span[0]:
        raise ValueError(f"{text!r} goes backwards; write {span[1]}-{span[0]}")
    return span
