"""A row of ``stagegen bench``: native and tuned at one size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Time:
    """A median with its interval.

    Attributes:
        median: in seconds.
        interval: its ends. None if they are unknown, as of a row that only a page still has.
    """

    median: float
    interval: tuple[float, float] | None

    @property
    def low(self) -> float:
        """The lower end, or the median."""
        return self.interval[0] if self.interval else self.median

    @property
    def high(self) -> float:
        """The upper end, or the median."""
        return self.interval[1] if self.interval else self.median


@dataclass(frozen=True)
class Row:
    """Times of one collective at one size.

    Attributes:
        collective: which one.
        size: bytes, as it counts them.
        native: of the MPI library.
        tuned: of libcoll.
        bound: the lower bound, None or 0 where there is none.
        routine: the algorithm that served the tuned calls.
    """

    collective: str
    size: int
    native: Time
    tuned: Time
    bound: float | None
    routine: str

    @property
    def speedup(self) -> float:
        """Native over tuned."""
        return self.native.median / self.tuned.median

    @property
    def over_bound(self) -> float | None:
        """Tuned over the bound, None where there is none."""
        return self.tuned.median / self.bound if self.bound else None

    @property
    def has_intervals(self) -> bool:
        """Whether the intervals of both medians are known."""
        return None not in (self.native.interval, self.tuned.interval)


def row_of(form: Mapping[str, Any]) -> Row:
    """Read a row of the command's JSON, or one that was kept."""

    def time(name: str) -> Time:
        interval = form.get(f"{name}_interval_s")
        return Time(form[f"{name}_s"], interval and (interval[0], interval[1]))

    return Row(
        form["collective"],
        form["size"],
        time("native"),
        time("tuned"),
        form["bound_s"],
        form["routine"],
    )
