"""A row of ``stagegen bench``: native and tuned at one size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagegen.measure.statistics import Summary


@dataclass(frozen=True)
class Row:
    """Times in seconds, medians with their intervals.

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
    native: Summary
    tuned: Summary
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


def row_of(form: Mapping[str, Any]) -> Row:
    """Read a row of the command's JSON."""

    def summary(name: str) -> Summary:
        low, high = form[f"{name}_interval_s"]
        return Summary(form[f"{name}_s"], low, high, form["repetitions"])

    return Row(
        form["collective"],
        form["size"],
        summary("native"),
        summary("tuned"),
        form["bound_s"],
        form["routine"],
    )
