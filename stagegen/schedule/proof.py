"""What a checker found to hold, as it goes into the headers of generated files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Proof:
    """What has been checked of a schedule.

    Attributes:
        collective: that it is for.
        ranks: how many there are.
        phases: how many there are; None where there are no phases.
        bound_phases: the least possible number of phases; None likewise.
        syncs: how many synchronisations there are; None likewise.
        checked: the properties that hold, in words.
    """

    collective: str
    ranks: int
    phases: int | None
    bound_phases: int | None
    syncs: int | None
    checked: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON form."""
        return {**asdict(self), "checked": list(self.checked)}

    def lines(self) -> tuple[str, ...]:
        """Return the summary for a generated header, without line ends."""
        head = f"{self.ranks} rank{'s' if self.ranks != 1 else ''}"
        if self.phases is not None:
            head += f", {self.phases} phases (lower bound {self.bound_phases})"
            head += f", {self.syncs} synchronisations"
        return (head, *self.checked)
