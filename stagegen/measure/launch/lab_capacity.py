"""How fast the emulated links may be on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from stagegen.topology import Topology


@dataclass(frozen=True)
class Scale:
    """Scale."""

    factor: float
    note: str | None = None


def lab_scale(topology: Topology) -> Scale:
    """Return the scale."""
    return Scale(1.0)
