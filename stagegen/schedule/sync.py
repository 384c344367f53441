"""The fewest synchronisations that keep messages with contention apart.

Source: Faraj (2006), section 3.2.3.2 (fully synchronised schemes). Every network edge orders
its users by their phases, so only the *last* user of each edge on a message's path can be a
predecessor that no other message implies; of those the ones that a vector clock shows to be
implied by another are dropped. O(|M|³·L) for |M| ranks and paths of L edges; only messages
that are still the last user of an edge hold a vector. The result, together with the order of
every rank's own sends, is the transitive reduction of "shares an edge and comes later".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from stagegen.schedule.model import Message, Sync, SyncGraph
from stagegen.topology import Topology

Phases = Sequence[Sequence[Message]]

_TOKEN_GIVER = {"sender": itemgetter(0), "receiver": itemgetter(1)}


class _Placed(NamedTuple):
    """A message with its clock.

    Attributes:
        phase: of the message.
        message: itself.
        turn: the how-many-th message of its sender it is, from 1.
        clock: of every rank, how many of its messages are known to come before, or are this.
    """

    phase: int
    message: Message
    turn: int
    clock: list[int]


def predecessors(topology: Topology, phases: Phases) -> Iterator[tuple[Message, list[Message]]]:
    """Yield every message with those that it must directly follow, the earliest phase first.

    Messages of the same sender are among them, as they share the sender's own link.
    """
    last: dict[tuple[int, int], _Placed] = {}
    turns = [0] * topology.rank_count
    for phase, messages in enumerate(phases):
        for message in messages:
            nodes = topology.tree.node_path(*message)
            edges = list(pairwise(nodes))
            found = {last[edge].message: last[edge] for edge in edges if edge in last}
            before = sorted(found.values(), key=lambda placed: (placed.phase, placed.message))
            yield message, [placed.message for placed in before if not _implied(placed, before)]
            clock = [0] * topology.rank_count
            for placed in before:
                clock = list(map(max, clock, placed.clock))
            turns[message.source] += 1
            clock[message.source] = turns[message.source]
            placed = _Placed(phase, message, turns[message.source], clock)
            last.update(dict.fromkeys(edges, placed))


def _implied(early: _Placed, before: list[_Placed]) -> bool:
    """Tell whether another predecessor comes after `early`, and so implies it."""
    source = early.message.source
    return any(other.clock[source] >= early.turn for other in before if other is not early)


def synchronise(topology: Topology, phases: Phases, kind: str) -> SyncGraph:
    """Return what keeps the phases apart.

    `receiver` excludes contention: a token says that the earlier message has arrived.
    `sender` only limits it: a token says that the earlier message has been handed to the
    network, where some of it may still be under way when the later one starts.

    Args:
        topology: the cluster.
        phases: contention-free phases.
        kind: one of `SYNC_KINDS`.
    """
    giver = _TOKEN_GIVER.get(kind)
    if giver is None:
        return SyncGraph(kind)
    syncs = []
    for then, before in predecessors(topology, phases):
        for first in before:
            if first.source == then.source:
                continue  # its sender sends one message after the other anyway
            knows = first.destination == then.source
            syncs.append(Sync(first, then, None if knows else (giver(first), then.source)))
    return SyncGraph(kind, tuple(syncs))
