"""What was promised, beside what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One promise about a result.

    Attributes:
        met: whether it is kept; None where nothing was measured that could tell.
        text: what was promised, beside what was seen.
    """

    met: bool | None
    text: str

    def __str__(self) -> str:
        word = {True: "met", False: "MISSED", None: "not measured"}[self.met]
        return f"{word:12} {self.text}"

    @classmethod
    def at_most(cls, most: float, ratios: Mapping[str, float], what: str) -> Target:
        """Return the promise that no ratio is above a number."""
        met = max(ratios.values()) <= most if ratios else None
        return cls(met, f"{what}, at most {most}: {_told(ratios)}")

    @classmethod
    def at_least(cls, least: float, ratios: Mapping[str, float], what: str) -> Target:
        """Return the promise that no ratio is below a number."""
        met = min(ratios.values()) >= least if ratios else None
        return cls(met, f"{what}, at least {least}: {_told(ratios)}")


def _told(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
