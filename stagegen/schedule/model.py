"""Schedules as plain data: phases with their synchronisation, logical rings, broadcast trees.

All are frozen and have the JSON form of ``docs/interfaces.md``. What a generated routine has
to do with them is the contract of :mod:`stagegen.schedule.rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

SYNC_KINDS = ("none", "sender", "receiver", "barrier")
"""Ways to keep the phases of an alltoall apart (section 3.2.3 of Faraj, 2006)."""
RING_KINDS = ("lr1",)
"""Logical rings that exist (section 3.3.2)."""
TREE_KINDS = ("linear",)
"""Broadcast trees that exist (section 3.4.2)."""


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
        token: the ranks between which a zero-byte token tells it; None where the sender of
            `then` knows, because it received `first` itself.
    """

    first: Message
    then: Message
    token: tuple[int, int] | None


@dataclass(frozen=True)
class SyncGraph:
    """What keeps messages of different phases apart.

    Attributes:
        kind: `none`, `sender` (the sender of the earlier message gives the token), `receiver`
            (its receiver does), or `barrier` (a barrier after every phase but the last).
        syncs: by the phase of `then`, its place in the phase, and the phase of `first`. With
            the order of each rank's own sends they imply every order that is needed, and none
            of them follows from the others. Empty for `none` and `barrier`.
    """

    kind: str
    syncs: tuple[Sync, ...] = ()


@dataclass(frozen=True)
class PhaseSchedule:
    """An alltoall in contention-free phases.

    Attributes:
        ranks: the host of every rank.
        root: the switch (or host with several ranks) that the schedule is made around.
        subtrees: the ranks of each subtree of the root, larger subtrees first.
        bound_phases: the load of the bottleneck, which no schedule can have fewer phases than.
        phases: the messages of each phase.
        sync: what keeps the phases apart.
    """

    ranks: tuple[str, ...]
    root: str
    subtrees: tuple[tuple[int, ...], ...]
    bound_phases: int
    phases: tuple[tuple[Message, ...], ...]
    sync: SyncGraph

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the contract."""
        return {
            "collective": "alltoall",
            "ranks": list(self.ranks),
            "root": self.root,
            "subtrees": [list(subtree) for subtree in self.subtrees],
            "bound_phases": self.bound_phases,
            "phases": [[list(message) for message in phase] for phase in self.phases],
            "sync": self.sync.kind,
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
            phases=tuple(tuple(Message(*m) for m in phase) for phase in form["phases"]),
            sync=SyncGraph(form["sync"], syncs),
        )


@dataclass(frozen=True)
class Ring:
    """A logical ring for allgather.

    Attributes:
        ranks: the host of every rank.
        kind: how it was made, such as `lr1`.
        order: every rank once; each sends to the next, the last one to the first.
        max_hops: the most switches that a message between neighbours passes.
    """

    ranks: tuple[str, ...]
    kind: str
    order: tuple[int, ...]
    max_hops: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the contract."""
        return {
            "collective": "allgather",
            "ranks": list(self.ranks),
            "kind": self.kind,
            "ring": list(self.order),
            "max_hops": self.max_hops,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Ring:
        """Return the ring of a JSON form."""
        return cls(tuple(form["ranks"]), form["kind"], tuple(form["ring"]), form["max_hops"])


@dataclass(frozen=True)
class Tree:
    """A broadcast tree on the ranks.

    Attributes:
        ranks: the host of every rank.
        kind: how it was made, such as `linear`.
        root: the rank that has the data.
        edges: (parent, child); the children of one parent in sending order.
        height: the most edges between the root and a rank.
        contention_free: whether messages of different senders never share a network edge
            (one sender sends to one child after the other, section 3.4.2).
    """

    ranks: tuple[str, ...]
    kind: str
    root: int
    edges: tuple[Message, ...]
    height: int
    contention_free: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the contract."""
        return {
            "collective": "bcast",
            "ranks": list(self.ranks),
            "tree": self.kind,
            "root": self.root,
            "edges": [list(edge) for edge in self.edges],
            "height": self.height,
            "contention_free": self.contention_free,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Tree:
        """Return the tree of a JSON form."""
        return cls(
            ranks=tuple(form["ranks"]),
            kind=form["tree"],
            root=form["root"],
            edges=tuple(Message(*edge) for edge in form["edges"]),
            height=form["height"],
            contention_free=form["contention_free"],
        )
