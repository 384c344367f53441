"""Finds the ranks of the messages between groups: always possible, by two edge colourings.

The input says for each phase how many messages go from group to group: no more from (to) a group
than it has ranks, and over all phases as many as there are pairs of ranks. Then

1. *senders*: for each group, a graph with the phases on the left and its messages as edges. On
   the right is a node for each receiver, which has as many messages as the group has ranks.
   Colours are senders: each sends once in a phase at most, and once to each receiver node.
2. *receivers*: for each group, phases on the left, messages as edges, and on the right their
   senders, each with as many messages as the group has ranks. Colours are receivers: each receives
   once in a phase at most, and each pair of ranks has one message.

Each rank of the group adds one edge, for a message to itself in a phase that does not exist; the
colour of this edge names the rank. Both colourings exist by Kőnig's theorem, since no degree is
larger than the number of ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stagegen.schedule.alltoall.phases.colouring import colour_edges
from stagegen.schedule.alltoall.phases.traffic import Pair
from stagegen.schedule.model import Message

_Slot = tuple[int, int, int]
"""A message with a phase and groups, but without ranks."""


def spread(
    groups: Sequence[Sequence[int]], phases: Sequence[Sequence[Pair]]
) -> tuple[tuple[Message, ...], ...]:
    """Return phases with the same messages between groups, each with a sender and a receiver.

    Args:
        groups: the ranks of each group.
        phases: for each phase the pair of groups of each of its messages.
    """
    slots = [(phase, *pair) for phase, pairs in enumerate(phases) for pair in pairs]
    senders = _senders(groups, slots)
    receivers = _receivers(groups, slots, senders)
    found: list[list[Message]] = [[] for _ in phases]
    for slot, source, destination in zip(slots, senders, receivers, strict=True):
        found[slot[0]].append(Message(source, destination))
    return tuple(tuple(sorted(messages)) for messages in found)


def _senders(groups: Sequence[Sequence[int]], slots: Sequence[_Slot]) -> list[int]:
    """Return the sending rank of each slot."""
    own: list[list[int]] = [[] for _ in groups]
    for number, (_, group, _) in enumerate(slots):
        own[group].append(number)
    senders = [0] * len(slots)
    for ranks, numbers in zip(groups, own, strict=True):
        seen: Counter[int] = Counter()
        ends = []
        for number in numbers:
            phase, _, receivers = slots[number]
            # The messages to a group, in their order, are dealt to its ranks in runs.
            ends.append((phase, (receivers, seen[receivers] // len(ranks))))
            seen[receivers] += 1
        for number, colour in zip(numbers, _coloured(ends, len(ranks)), strict=True):
            senders[number] = ranks[colour]
    return senders


def _receivers(
    groups: Sequence[Sequence[int]], slots: Sequence[_Slot], senders: Sequence[int]
) -> list[int]:
    """Return the receiving rank of each slot."""
    own: list[list[int]] = [[] for _ in groups]
    for number, (_, _, group) in enumerate(slots):
        own[group].append(number)
    receivers = [0] * len(slots)
    for ranks, numbers in zip(groups, own, strict=True):
        ends = [(-1, rank) for rank in ranks]
        ends += [(slots[number][0], senders[number]) for number in numbers]
        colours = _coloured(ends, len(ranks))
        rank_of = dict(zip(colours, ranks))  # noqa: B905 (colours of the first edges only)
        for number, colour in zip(numbers, colours[len(ranks) :], strict=True):
            receivers[number] = rank_of[colour]
    return receivers


def _coloured(ends: Sequence[tuple[object, object]], colours: int) -> list[int]:
    """Number the nodes of both sides by their first edge, and colour the edges."""
    left: dict[object, int] = {}
    right: dict[object, int] = {}
    numbered = [
        (left.setdefault(one, len(left)), right.setdefault(other, len(right)))
        for one, other in ends
    ]
    return colour_edges(numbered, colours)
