"""Broadcast and reduce trees, with the JSON form of ``docs/interfaces.md``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from stagegen.schedule.model.alltoall import Message

TREE_CONSTRUCTIONS = ("linear", "binary", "kary", "binomial", "flat")
"""Broadcast trees that exist (Faraj, 2006, section 3.4.2)."""


class SharedEdge(NamedTuple):
    """A network edge on which messages of a tree can meet.

    Attributes:
        edge: from one node of the network to another.
        ranks: how many different senders use it in a broadcast, or receivers in a reduce.
    """

    edge: tuple[str, str]
    ranks: int


_PEERS = {"bcast": "senders", "reduce": "receivers"}


@dataclass(frozen=True)
class Tree:
    """A tree on the ranks for broadcast, or reversed for reduce.

    Attributes:
        ranks: the host of every rank.
        construction: how it was made, such as `linear`.
        root: the rank that has the data, or that gets the reduced data.
        edges: (parent, child), the children of one parent in sending order; for reduce (child,
            parent), the children of one parent in the order of receiving.
        height: the most edges between the root and a rank.
        contention_free: whether messages of different senders never share a network edge
            (one sender sends to one child after the other, section 3.4.2); for reduce, messages
            to different receivers.
        arity: the most children that the construction allows a rank; None for any number.
        contention: all edges that are shared, the worst first. All messages count, since in a
            pipeline all can be under way at once.
        in_step: the most senders (receivers) that share an edge in one step of an atomic
            broadcast (reduce), where a rank serves one child in each step.
        collective: `bcast` or `reduce`.
    """

    ranks: tuple[str, ...]
    construction: str
    root: int
    edges: tuple[Message, ...]
    height: int
    contention_free: bool
    arity: int | None = None
    contention: tuple[SharedEdge, ...] = ()
    in_step: int = 1
    collective: str = "bcast"

    @property
    def peers(self) -> str:
        """The ranks that must not share an edge: `senders` or `receivers`."""
        return _PEERS[self.collective]

    @property
    def least_height(self) -> int | None:
        """The least height of a tree of this arity on any network."""
        return None if self.arity is None else least_height(len(self.ranks), self.arity)

    def reversed(self) -> Tree:
        """Return the same tree for reduce instead of broadcast, or the other way round.

        Every message runs the other way, and in reverse order, so a reduce receives first what a
        broadcast sends last. Links are full-duplex: edge a→b becomes b→a, one sender becomes one
        receiver, and contention stays the same.
        """
        shared = [SharedEdge((b, a), ranks) for (a, b), ranks in self.contention]
        return replace(
            self,
            edges=tuple(Message(b, a) for a, b in reversed(self.edges)),
            contention=tuple(sorted(shared, key=lambda one: (-one.ranks, one.edge))),
            collective="reduce" if self.collective == "bcast" else "bcast",
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the contract."""
        return {
            "collective": self.collective,
            "ranks": list(self.ranks),
            "tree": self.construction,
            "arity": self.arity,
            "root": self.root,
            "edges": [list(edge) for edge in self.edges],
            "height": self.height,
            "least_height": self.least_height,
            "contention_free": self.contention_free,
            "contention": [
                {"edge": list(edge), self.peers: ranks} for edge, ranks in self.contention
            ],
            f"{self.peers}_in_step": self.in_step,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Tree:
        """Return the tree of a JSON form."""
        peers = _PEERS[form["collective"]]
        return cls(
            ranks=tuple(form["ranks"]),
            construction=form["tree"],
            root=form["root"],
            edges=tuple(Message(*edge) for edge in form["edges"]),
            height=form["height"],
            contention_free=form["contention_free"],
            arity=form["arity"],
            contention=tuple(
                SharedEdge((one["edge"][0], one["edge"][1]), one[peers])
                for one in form["contention"]
            ),
            in_step=form[f"{peers}_in_step"],
            collective=form["collective"],
        )


def least_height(count: int, arity: int) -> int:
    """Return the height of a complete tree of at least `count` ranks: ⌈log₂(P+1)⌉−1 for arity 2."""
    height, level, held = 0, 1, 1
    while held < count:
        level *= arity
        held += level
        height += 1
    return height
