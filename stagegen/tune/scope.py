"""What to tune, as the user asks for it and as the log's header keeps it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from stagegen.errors import InputError
from stagegen.measure.entries import entry, natural, number
from stagegen.measure.records import TIMINGS, WHOLE, Timing

#: Message sizes of Faraj 2006, §4.1.1.4, in bytes; beyond the last one they double on.
SIZES = (1, 64, 512, *(1024 << k for k in range(9)))


T = TypeVar("T", str, int)


@dataclass(frozen=True)
class Options:
    """What to tune.

    Attributes:
        collectives: sorted names.
        sizes: message sizes in bytes, ascending.
        timing: the timing mechanism.
        budget: seconds of measured time per race after which no further round begins.
        communicators: names of the ones to tune for, as in :mod:`stagegen.tune.communicators`.
    """

    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    timing: Timing
    budget: float
    communicators: tuple[str, ...] = (WHOLE,)

    def to_json(self) -> dict[str, Any]:
        """Return the form of the log's header."""
        return {
            "collectives": list(self.collectives),
            "sizes": list(self.sizes),
            "timing": asdict(self.timing),
            "budget": self.budget,
            "communicators": list(self.communicators),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Options:
        """Read the form of the log's header.

        Raises:
            InputError: it is damaged.
        """
        try:
            form = entry(data, "timing", dict)
            timing = Timing(entry(form, "mechanism", str), natural(form, "computation"))
            if timing.mechanism not in TIMINGS:
                raise ValueError(f"unknown timing {timing.mechanism}")
            return cls(
                _ascending(data, "collectives", str),
                _ascending(data, "sizes", int),
                timing,
                math.inf if data["budget"] == math.inf else number(data["budget"]),
                _communicators(data),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the header of the log is damaged: {error!r}") from error


def _communicators(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the communicators' names; old logs, which know only one, have none.

    Raises:
        TypeError, ValueError: they are not names.
    """
    if "communicators" not in data:
        return (WHOLE,)
    names: list[str] = entry(data, "communicators", list)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError("`communicators` must be names, at least one")
    return tuple(names)


def _ascending(data: Mapping[str, Any], key: str, kind: type[T]) -> tuple[T, ...]:
    """Return a list of names or of sizes.

    Raises:
        KeyError, TypeError, ValueError: it is not one, is empty, or is not in order.
    """
    values: list[T] = entry(data, key, list)
    if not all(type(value) is kind for value in values):
        raise TypeError(f"`{key}` are not of type {kind.__name__}")
    if not values or values != sorted(set(values)) or min(values) <= kind():
        raise ValueError(f"`{key}` must ascend, and not be empty")
    return tuple(values)


def grid(low: int, high: int) -> tuple[int, ...]:
    """Return the sizes to measure from ``low`` to ``high`` bytes, both included.

    Raises:
        InputError: there is none, or a size is below 1.
    """
    if not 1 <= low <= high:
        raise InputError(f"sizes go from at least 1 byte upwards, not from {low} to {high}")
    doubled = list(SIZES)
    while doubled[-1] < high:
        doubled.append(doubled[-1] * 2)
    return tuple(sorted({low, high, *(size for size in doubled if low <= size <= high)}))
