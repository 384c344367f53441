"""Host lists with ranges, as cluster tools write them: ``n[0-3,7]``, ``r[1-2]n[01-12]``."""

from __future__ import annotations

import itertools
import math
import re

MOST_NAMES = 1_000_000
"""The most names that one text may stand for; more are taken for a mistake."""

_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def _numbers(item: str, text: str) -> list[str]:
    """Expand one entry of a bracket; a leading zero fixes the width of all its numbers."""
    match = _RANGE.fullmatch(item.strip())
    if match is None:
        raise ValueError(f"{item!r} in {text!r} is no number or range; write it as [0-3,7]")
    low, high = match[1], match[2] or match[1]
    if int(low) > int(high):
        raise ValueError(f"the range {item} in {text!r} runs backwards; write [{high}-{low}]")
    if int(high) - int(low) >= MOST_NAMES:
        raise ValueError(f"the range {item} in {text!r} has more than {MOST_NAMES:,} hosts")
    width = len(low) if low.startswith("0") else 0
    return [str(number).zfill(width) for number in range(int(low), int(high) + 1)]


def _split_at_commas(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise ValueError(f"the brackets in {text!r} do not match; write a range as n[0-3]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if depth:
        raise ValueError(f"a bracket in {text!r} is not closed; write a range as n[0-3]")
    return [part.strip() for part in parts]


def expand_hostlist(text: str) -> list[str]:
    """Return the names that a host list stands for, in its order.

    Args:
        text: names separated by commas, each with any number of brackets; with several
            brackets the last one varies fastest.

    Raises:
        ValueError: brackets that do not match, an empty name, a range that runs backwards.
    """
    names: list[str] = []
    for part in _split_at_commas(text):
        if not part:
            raise ValueError(f"{text!r} holds an empty host name")
        choices = []
        for bracket, plain in _PIECE.findall(part):
            items = [plain] if plain else [n for i in bracket.split(",") for n in _numbers(i, text)]
            choices.append(items)
        if len(names) + math.prod(map(len, choices)) > MOST_NAMES:
            raise ValueError(f"{text!r} stands for more than {MOST_NAMES:,} hosts")
        names += ["".join(pieces) for pieces in itertools.product(*choices)]
    return names
