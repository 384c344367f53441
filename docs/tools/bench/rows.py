"""A row of ``stagegen bench``: native and tuned at one size."""

from __future__ import annotations

import statistics
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
class Launches:
    """Medians of one collective at one size in further launches of the job, in their order.

    Attributes:
        run: all that was timed in the same launches has the same.
        native: seconds in each launch, of the MPI library.
        tuned: the same, of libcoll.
    """

    run: str
    native: tuple[float, ...]
    tuned: tuple[float, ...]

    @property
    def speedups(self) -> tuple[float, ...]:
        """Native over tuned in each launch."""
        pairs = zip(self.native, self.tuned, strict=True)
        return tuple(native / tuned for native, tuned in pairs)


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
        launches: further launches, where the job's times raised a suspicion.
    """

    collective: str
    size: int
    native: Time
    tuned: Time
    bound: float | None
    routine: str
    launches: Launches | None = None

    @property
    def speedup(self) -> float:
        """Native over tuned, in one job."""
        return self.native.median / self.tuned.median

    @property
    def judged_speedup(self) -> float:
        """What counts: the median of further launches, or the job's where there are none."""
        return statistics.median(self.launches.speedups) if self.launches else self.speedup

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
