"""Checks the records of a search's log (:mod:`stagegen.tune.reconfigure`) before it goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard


def check_record(record: Mapping[str, Any]) -> None:
    """Check that a record of the log has what the search takes from it.

    Raises:
        ValueError: it has not.
    """
    for key, is_right in _FIELDS.items():
        if not is_right(record.get(key)):
            raise ValueError(f"{key} is missing or wrong")
    old, tried = record["times"], record["tried"]
    for one in tried:
        for key, is_right in _TRIED_FIELDS.items():
            if not isinstance(one, dict) or not is_right(one.get(key)):
                raise ValueError(f"tried: {key} is missing or wrong")
        for key in ("looked_s", "raced_s"):
            if not one["times"][key].keys() <= old[key].keys():
                raise ValueError(f"tried: {key} has a launch that the tree before lacks")


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -1e12 < value < 1e12


def _are_seconds(value: object) -> bool:
    """Whether these are times of calls: at least one, all above 0."""
    if not isinstance(value, list) or not value:
        return False
    return all(_is_number(one) and one > 0 for one in value)


def _are_times(value: object) -> bool:
    """Whether these are looks, at least the first, and launches of a race."""
    if not isinstance(value, dict):
        return False
    looked, raced = value.get("looked_s"), value.get("raced_s")
    return _are_launches(looked) and "0" in looked and _are_launches(raced)


def _are_launches(value: object) -> TypeGuard[dict[str, list[float]]]:
    return isinstance(value, dict) and all(
        _LAUNCH.fullmatch(launch) and _are_seconds(seconds) for launch, seconds in value.items()
    )


def _are_numbers(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


_LAUNCH = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)

_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "before": lambda value: isinstance(value, dict),
    "node_s": _are_numbers,
    "measured": lambda value: isinstance(value, bool),
    "part_s": _are_numbers,
    "times": _are_times,
    "tried": lambda value: isinstance(value, list) and bool(value),
}
"""What a record must have; all else in it follows from this."""

_TRIED_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "change": lambda value: isinstance(value, str),
    "after": lambda value: isinstance(value, dict),
    "times": _are_times,
}
