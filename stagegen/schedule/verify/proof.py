"""The properties that a checker has proven, for the headers of generated files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Proof:
    """The result of checking a schedule.

    Attributes:
        collective: the collective that it serves.
        ranks: how many there are.
        phases: how many there are; None where there are no phases.
        bound_phases: a lower bound on the number of phases; None where there are no phases.
        syncs: how many synchronisations there are; None where there are no phases.
        checked: the properties that hold, in words.
    """

    collective: str
    ranks: int
    phases: int | None
    bound_phases: int | None
    syncs: int | None
    checked: tuple[str, ...]

    @property
    def gap(self) -> float | None:
        """The excess over the bound, as a part of the bound; 0 is optimal, None without phases."""
        if self.phases is None or self.bound_phases is None:
            return None
        return self.phases / self.bound_phases - 1 if self.bound_phases else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return a JSON form."""
        return {**asdict(self), "gap": self.gap, "checked": list(self.checked)}

    def lines(self) -> tuple[str, ...]:
        """Return the summary for a generated header, without line ends."""
        head = f"{self.ranks} rank{'s' if self.ranks != 1 else ''}"
        if self.phases is not None:
            head += f", {self.phases} phases"
        if self.bound_phases is not None:
            head += f" (lower bound {self.bound_phases}, gap {100 * (self.gap or 0.0):.2g} %)"
        if self.syncs is not None:
            head += f", {self.syncs} synchronisations"
        return (head, *self.checked)
