"""What to tune, as the user asks for it and as the log's header keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stagegen.errors import InputError
from stagegen.measure.records import TIMINGS, Timing

#: Message sizes of Faraj 2006, §4.1.1.4, in bytes; beyond the last one they double on.
SIZES = (1, 64, 512, *(1024 << k for k in range(9)))


@dataclass(frozen=True)
class Options:
    """What to tune.

    Attributes:
        collectives: sorted names.
        sizes: message sizes in bytes, ascending.
        timing: the timing mechanism.
        budget: seconds of measured time per race after which no further round begins.
    """

    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    timing: Timing
    budget: float

    def to_json(self) -> dict[str, Any]:
        """Return the form of the log's header."""
        return {
            "collectives": list(self.collectives),
            "sizes": list(self.sizes),
            "timing": asdict(self.timing),
            "budget": self.budget,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Options:
        """Read the form of the log's header.

        Raises:
            InputError: it is damaged.
        """
        try:
            timing = Timing(**data["timing"])
            if timing.mechanism not in TIMINGS:
                raise ValueError(timing.mechanism)
            return cls(
                tuple(data["collectives"]), tuple(data["sizes"]), timing, float(data["budget"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the header of the log is damaged: {error!r}") from error


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
