"""Reads JSON that others may have written: every value must have the right type.

``json`` accepts ``true`` in place of a number, ``NaN``, and numbers beyond a float's range; and
``int("12")`` or ``int(1.5)`` would quietly accept what is no integer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")

#: What a value of each type is called in messages.
CALLED: Mapping[type, str] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "an integer",
    list: "a list",
    str: "a text",
}


def entry(form: Mapping[str, Any], key: str, type_: type[T]) -> T:
    """Return a value of exactly this type.

    Raises:
        KeyError, TypeError: it is missing or of another type.
    """
    value = form[key]
    if type(value) is not type_:
        raise TypeError(f"`{key}` is {json.dumps(value):.40}, not {CALLED[type_]}")
    return value


def natural(form: Mapping[str, Any], key: str, least: int = 0) -> int:
    """Return an integer that is not below ``least``.

    Raises:
        KeyError, TypeError, ValueError: it is missing or something else.
    """
    value = entry(form, key, int)
    if value < least:
        raise ValueError(f"`{key}` is {value}, below {least}")
    return value


def number(value: object) -> float:
    """Return a finite number that is not negative.

    Raises:
        TypeError, ValueError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{json.dumps(value):.40} is no number")
    try:
        converted = float(value)
    except OverflowError:
        converted = math.inf
    if not 0 <= converted < math.inf:
        raise ValueError(f"{value!r:.40} is not a finite number from 0 upwards")
    return converted


def rates(form: Mapping[str, Any]) -> tuple[int, ...]:
    """Return what each rank computes in a millisecond: ``rates``, at least 1 for each.

    Raises:
        KeyError, TypeError, ValueError: it is missing or something else.
    """
    values = entry(form, "rates", list)
    return tuple(natural({"rate": value}, "rate", 1) for value in values)


def times(values: object) -> tuple[float, ...]:
    """Return a list of times in seconds, at least one; a time of 0 is an error.

    Raises:
        TypeError, ValueError: it is something else.
    """
    if not isinstance(values, list) or not values:
        raise TypeError(f"{values!r:.40} is no list of times")
    seconds = tuple(map(number, values))
    if not all(seconds):
        raise ValueError("a time of 0 seconds")
    return seconds
