"""The earlier messages that a message has to wait for, implied ones included.

Every directed edge lists its users in the order of the schedule. With capacity c and window w
the k-th user has to follow the (k - w·c)-th, so each edge carries at most w·c messages at a time:
the users whose numbers are equal modulo w·c form a chain. The sender's own link is such an edge,
too: a complete send does not mean that the message has left the link. All messages are handled at
once, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import floor

import numpy as np
import numpy.typing as npt

from stagegen.schedule.alltoall.capacity import edge_capacities
from stagegen.schedule.model import Message
from stagegen.topology import RankTree, Topology

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Placed:
    """The messages of a schedule, numbered phase by phase; message i is `source[i]→destination[i]`.

    Attributes:
        source: of every message.
        destination: of every message.
        starts: the number of the first message of every phase, then the number of messages.
    """

    source: Ints
    destination: Ints
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, phases: Sequence[Sequence[Message]]) -> Placed:
        """Return the messages of some phases."""
        sizes = np.array([len(phase) for phase in phases], np.int64)
        ranks = chain.from_iterable(chain.from_iterable(phases))
        pairs = np.fromiter(ranks, np.int32, 2 * int(sizes.sum())).reshape(-1, 2)
        starts = np.concatenate(([0], np.cumsum(sizes)))
        return cls(pairs[:, 0].copy(), pairs[:, 1].copy(), starts)

    @property
    def phase(self) -> Ints:
        """The phase of every message."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))


def ancestors(tree: RankTree) -> Ints:
    """Return the node above each rank at each depth: shape (depths, ranks), -1 below a rank."""
    above = np.full((max(tree.depth) + 1, tree.rank_count), -1, np.int32)
    for rank, leaf in enumerate(tree.leaf):
        node = leaf
        while node >= 0:
            above[tree.depth[node], rank] = node
            node = tree.parent[node]
    return above


def edge_users(tree: RankTree, placed: Placed) -> Iterator[tuple[npt.NDArray[np.int64], Ints]]:
    """Yield (messages, the edge that each of them uses), with every use exactly once.

    Edges are numbered by their lower node; an array has either upward or downward edges. A message
    uses the upward edges over its source, and the downward edges over its destination, but none
    that is over both.
    """
    for above in ancestors(tree)[1:]:
        up, down = above[placed.source], above[placed.destination]
        differ = up != down
        for edge in (up, down):
            users = np.flatnonzero(differ & (edge >= 0))
            yield users, edge[users]


def shares(topology: Topology, window: int, messages: int) -> Ints:
    """Return how many messages at a time the edges between each node and its parent carry.

    An edge has at most all messages of the schedule, which are far fewer than it may carry if it is
    fast or the window large.
    """
    share = np.full(len(topology.tree.names), min(window, messages), np.int32)
    capacities = edge_capacities(topology)
    for upper, lower in topology.tree.links():
        share[lower] = min(window * max(1, floor(capacities[upper, lower])), messages)
    return share


def predecessors(topology: Topology, placed: Placed, window: int, sends: int) -> Ints:
    """Return the earlier messages that each message follows: one for each edge of its path.

    Args:
        topology: the cluster.
        placed: the messages.
        window: how many times its capacity an edge carries at a time.
        sends: how many sends of a rank may be under way at a time.

    Returns:
        A row for each message: the numbers of its predecessors, the latest first, each once, then
        -1. They imply all that the message has to wait for.
    """
    tree, share = topology.tree, shares(topology, window, len(placed.source))
    columns = [_shifted(placed.source, np.full(tree.rank_count, sends, np.int32))]
    for users, edge in edge_users(tree, placed):
        column = np.full(len(placed.source), -1, np.int32)
        before = _shifted(edge, share)
        column[users] = np.where(before >= 0, users[before], -1)
        columns.append(column)
    return distinct(np.stack(columns, axis=1))


def _shifted(group: Ints, shift: Ints) -> Ints:
    """Return which element is `shift[group]` places earlier in the same group; -1 for none."""
    # Radix sort is stable and linear, but only for small integers.
    order = np.argsort(group.astype(np.min_scalar_type(len(shift))), kind="stable")
    of_group = group[order]
    place = np.arange(len(order)) - shift[of_group]
    earlier = np.maximum(place, 0)
    same = (place >= 0) & (of_group[earlier] == of_group)
    before = np.empty(len(order), np.int32)
    before[order] = np.where(same, order[earlier], -1)
    return before


def distinct(rows: Ints) -> Ints:
    """Sort every row in descending order, each number once, and leave out columns of only -1."""
    rows = -np.sort(-rows, axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = -1
    rows = -np.sort(-rows, axis=1)
    return np.ascontiguousarray(rows[:, : max(1, int((rows >= 0).any(axis=0).sum()))])
