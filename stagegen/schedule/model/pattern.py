"""Schedules of an alltoallv's pattern as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

PATTERN_CONSTRUCTIONS = ("greedy", "all-to-all", "segments")
"""How a schedule of a pattern is made."""


class Piece(NamedTuple):
    """A part of a message: of `parts` equal ones, rounded to bytes, the one with number `part`."""

    source: int
    destination: int
    part: int = 0
    parts: int = 1

    def bytes_of(self, message: int) -> int:
        """Return how many bytes it has, of a message of so many bytes."""
        return message * (self.part + 1) // self.parts - message * self.part // self.parts

    def __str__(self) -> str:
        parts = f" part {self.part + 1} of {self.parts}" if self.parts > 1 else ""
        return f"{self.source}→{self.destination}{parts}"


class Wait(NamedTuple):
    """A piece that may start only when another has arrived: the receiver gives a token."""

    first: Piece
    then: Piece


@dataclass(frozen=True)
class PatternSchedule:
    """An order of the pieces of an alltoallv that overloads no link.

    Attributes:
        ranks: the host of every rank.
        construction: one of `PATTERN_CONSTRUCTIONS`.
        sizes: the pattern: bytes from each rank to each other one.
        phases: the pieces in order. Those of a phase overload no link. Phases need not be in
            step: a piece starts when those that it waits for have arrived.
        waits: the tokens, by the order of `then`; the transitive reduction of the order in which
            pieces use links.
        seconds: how long the data takes in this order, without start-ups and tokens, if messages
            that share a link share its rate evenly.
        bound_seconds: the least time of any schedule: the largest load over rate of a link.
    """

    ranks: tuple[str, ...]
    construction: str
    sizes: tuple[tuple[int, ...], ...]
    phases: tuple[tuple[Piece, ...], ...]
    waits: tuple[Wait, ...]
    seconds: float
    bound_seconds: float

    @property
    def gap(self) -> float | None:
        """The excess of the time over the bound, as a part of the bound; 0 is optimal.

        None if there is no bound, as all data stays on hosts.
        """
        if not self.bound_seconds:
            return None if self.seconds else 0.0
        return max(0.0, self.seconds / self.bound_seconds - 1)

    def to_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "collective": "alltoallv",
            "ranks": list(self.ranks),
            "kind": self.construction,
            "bytes": [list(row) for row in self.sizes],
            "phases": [[list(piece) for piece in phase] for phase in self.phases],
            "waits": [[list(wait.first), list(wait.then)] for wait in self.waits],
            "seconds": self.seconds,
            "bound_seconds": self.bound_seconds,
            "gap": self.gap,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> PatternSchedule:
        """Return the schedule of a JSON form."""
        return cls(
            ranks=tuple(form["ranks"]),
            construction=form["kind"],
            sizes=tuple(map(tuple, form["bytes"])),
            phases=tuple(tuple(Piece(*t) for t in phase) for phase in form["phases"]),
            waits=tuple(Wait(Piece(*one), Piece(*two)) for one, two in form["waits"]),
            seconds=form["seconds"],
            bound_seconds=form["bound_seconds"],
        )
