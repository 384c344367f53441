"""Alltoall schedules as plain data: phases with their synchronisation.

Frozen, with the JSON form of ``docs/interfaces.md``. The contract of a generated routine that
carries them out is in :mod:`stagegen.schedule.alltoall.rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Message(NamedTuple):
    """A message from one rank to another."""

    source: int
    destination: int

    def __str__(self) -> str:
        return f"{self.source}→{self.destination}"


class Sync(NamedTuple):
    """A message that may start only after another.

    Attributes:
        first: the earlier message.
        then: the later message.
        token: the ranks that give and await a zero-byte token; None where the sender of `then`
            needs none, because it sent or received `first` itself.
    """

    first: Message
    then: Message
    token: tuple[int, int] | None


@dataclass(frozen=True)
class SyncGraph:
    """What keeps messages of different phases apart.

    Attributes:
        scheme: its name in :data:`stagegen.schedule.alltoall.sync.schemes.SCHEMES`.
        syncs: sorted by the phase of `then`, its place in the phase, and the phase of `first`.
            Given the order of each rank's own sends, none of them follows from others. Empty for
            schemes without tokens.
        block_size: phases of a block, for schemes with blocks; a scheme with barriers has one
            between consecutive blocks. 1 for all others.
        window: an edge of capacity c carries at most window · c messages at a time.
    """

    scheme: str
    syncs: tuple[Sync, ...] = ()
    block_size: int = 1
    window: int = 1


@dataclass(frozen=True)
class PhaseSchedule:
    """An alltoall in contention-free phases.

    Attributes:
        ranks: the host of every rank.
        root: the switch (or host with several ranks) that the schedule is made around.
        subtrees: the ranks of each subtree of the root, larger subtrees first.
        bound_phases: a lower bound on the number of phases: the maximum of the ranks' own loads
            and of ⌈load/capacity⌉ over all links.
        phases: the messages that start in each phase. A message over a link slower than the
            hosts' lasts more than one phase.
        sync: what keeps the phases apart.
        dummies: for each phase the dummy messages that keep idle ranks busy, some perhaps from a
            rank to itself; empty for schemes without dummies.
    """

    ranks: tuple[str, ...]
    root: str
    subtrees: tuple[tuple[int, ...], ...]
    bound_phases: int
    phases: tuple[tuple[Message, ...], ...]
    sync: SyncGraph
    dummies: tuple[tuple[Message, ...], ...] = ()

    @property
    def gap(self) -> float:
        """The excess of the phases over the bound, as a part of the bound; 0 is optimal."""
        return len(self.phases) / self.bound_phases - 1 if self.bound_phases else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the contract."""
        return {
            "collective": "alltoall",
            "ranks": list(self.ranks),
            "root": self.root,
            "subtrees": [list(subtree) for subtree in self.subtrees],
            "bound_phases": self.bound_phases,
            "phases": [[list(message) for message in phase] for phase in self.phases],
            "gap": self.gap,
            "sync": self.sync.scheme,
            "block_size": self.sync.block_size,
            "window": self.sync.window,
            "dummies": [[list(message) for message in phase] for phase in self.dummies],
            "syncs": [
                {
                    "first": list(sync.first),
                    "then": list(sync.then),
                    "token": None if sync.token is None else list(sync.token),
                }
                for sync in self.sync.syncs
            ],
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> PhaseSchedule:
        """Return the schedule of a JSON form."""
        syncs = tuple(
            Sync(
                Message(*sync["first"]),
                Message(*sync["then"]),
                None if sync["token"] is None else (sync["token"][0], sync["token"][1]),
            )
            for sync in form["syncs"]
        )
        return cls(
            ranks=tuple(form["ranks"]),
            root=form["root"],
            subtrees=tuple(tuple(subtree) for subtree in form["subtrees"]),
            bound_phases=form["bound_phases"],
            phases=_phases(form["phases"]),
            sync=SyncGraph(form["sync"], syncs, form["block_size"], form["window"]),
            dummies=_phases(form["dummies"]),
        )


def _phases(form: Sequence[Sequence[Sequence[int]]]) -> tuple[tuple[Message, ...], ...]:
    return tuple(tuple(Message(*message) for message in phase) for phase in form)
