"""Logical rings and broadcast trees as plain data, with the JSON form of ``docs/interfaces.md``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagegen.schedule.model import Message

RING_KINDS = ("lr1", "lr2", "lr3")
"""Logical rings that exist (Faraj, 2006, section 3.3.2)."""
TREE_KINDS = ("linear",)
"""Broadcast trees that exist (section 3.4.2)."""


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
