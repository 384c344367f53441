"""Checks that syncs order all messages that need it, and that none of them is superfluous.

When a message starts, it knows for every rank which of its messages have arrived. It learns this
from the messages that it waits for. From its sender's previous message it learns only what that
one knew at its own start: a send that is under way, or complete, need not have arrived. The check
takes one phase at a time, and forgets messages that no later one waits for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from stagegen.errors import ScheduleError
from stagegen.schedule.model import SyncGraph
from stagegen.schedule.verify.checked_schemes import CheckedScheme
from stagegen.schedule.verify.links import Links, Uses
from stagegen.schedule.verify.plan import Numbers, Plan
from stagegen.schedule.verify.sync import SyncTable


@dataclass(frozen=True)
class Pairs:
    """Pairs of an earlier and a later message, by the number of the later one."""

    first: Numbers
    then: Numbers

    @classmethod
    def sorted(cls, first: Numbers, then: Numbers) -> Pairs:
        """Return pairs in order."""
        order = np.argsort(then, kind="stable")
        return cls(first[order], then[order])

    def distinct(self, messages: int) -> Pairs:
        """Return every pair once."""
        key = np.sort(self.then * messages + self.first)
        key = key[np.diff(key, prepend=-1) > 0]
        return Pairs(key % max(1, messages), key // max(1, messages))


def check_order(
    plan: Plan, links: Links, uses: Uses, table: SyncTable, sync: SyncGraph, scheme: CheckedScheme
) -> None:
    """Check that all messages with contention are ordered, and that each sync is needed.

    With window w the k-th user of an edge of capacity c has to come after the (k - w·⌊c⌋)-th,
    and so, with w = 1, after all users that cannot share the edge with it. Barriers order messages
    of different blocks; a partial scheme takes the order within blocks as given.
    """
    _, first, then = uses.apart(sync.window * links.carried())
    needed = Pairs(first, then).distinct(len(plan.source))
    blocks = plan.phase // sync.block_size
    inside = blocks[needed.first] == blocks[needed.then]
    given = Pairs(needed.first[inside], needed.then[inside])
    if scheme.blocks and scheme.inside:
        needed, given = given, Pairs(first[:0], then[:0])
    elif scheme.blocks:
        needed = Pairs(needed.first[~inside], needed.then[~inside])
    else:
        given = Pairs(first[:0], then[:0])
    told = table.giver >= 0
    syncs = Pairs.sorted(table.first[told], table.then[told])
    # A sender that gives tokens waits for each of its sends, whatever the blocks are.
    own = _own_sends(plan) if scheme.giver == "sender" else Pairs(first[:0], then[:0])
    waits = Pairs.sorted(
        np.concatenate((syncs.first, given.first, own.first)),
        np.concatenate((syncs.then, given.then, own.then)),
    )
    knowledge = _Knowledge(plan, waits, 1 if scheme.giver == "sender" else sync.window)
    check_knowledge(knowledge, links, uses, needed, syncs)


def _own_sends(plan: Plan) -> Pairs:
    """Return the pairs of consecutive messages of each rank."""
    order = np.argsort(plan.source, kind="stable")
    one, other = order[:-1], order[1:]
    same = plan.source[one] == plan.source[other]
    return Pairs(one[same], other[same])


def check_knowledge(
    knowledge: _Knowledge, links: Links, uses: Uses, needed: Pairs, syncs: Pairs
) -> None:
    """Check that all needed pairs are in order, and that no sync follows from others.

    Args:
        knowledge: what every message knows when it starts.
        links: the links of the cluster.
        uses: the messages on each of their edges.
        needed: the pairs that have to be in order.
        syncs: the pairs that have a token; none of them may follow from others.
    """
    plan = knowledge.plan
    ordered = np.zeros(len(needed.first), np.bool_)
    ways = np.zeros(len(syncs.first), np.int64)
    asked, kept = _slices(needed, plan), _slices(syncs, plan)
    for phase, (told, clocks) in enumerate(knowledge.phases()):
        if asked[phase].start < asked[phase].stop:
            ordered[asked[phase]] = knowledge.has(clocks, needed, asked[phase])
        if kept[phase].start < kept[phase].stop:
            ways[kept[phase]] = knowledge.ways(told, syncs, kept[phase])
    for lost in np.flatnonzero(~ordered)[:1]:
        first, then = needed.first[lost], needed.then[lost]
        one, other = (uses.edge[uses.message == message] for message in (first, then))
        raise ScheduleError(
            f"phase {plan.phase[then]}: nothing makes {plan.message(then)} wait for "
            f"{plan.message(first)}, with which it shares the edge "
            f"{links.name(np.intersect1d(one, other)[0])}"
        )
    for spare in np.flatnonzero(ways > 1)[:1]:
        first, then = syncs.first[spare], syncs.then[spare]
        raise ScheduleError(
            f"phase {plan.phase[then]}: {plan.message(then)} waits for {plan.message(first)} "
            "anyway; the sync between them follows from others"
        )


def _slices(pairs: Pairs, plan: Plan) -> list[slice]:
    """Return the slice of the pairs that belong to each phase's messages."""
    ends = np.searchsorted(pairs.then, plan.starts()).tolist()
    return [slice(*span) for span in pairwise(ends)]


class _Knowledge:
    """What is known at the start of every message, as a vector for as long as it is needed.

    A rank has at most `sends` messages under way. So its messages form as many chains, and a
    vector says for each chain how many of its messages have arrived. (The check covers the order
    of the chains, too, phase by phase, so it holds as far as the check relies on it.)

    Args:
        plan: the messages.
        waits: pairs of messages; the later one starts when the earlier one has arrived, and
            learns all that the earlier one knew.
        sends: how many messages of a sender may be under way.
    """

    def __init__(self, plan: Plan, waits: Pairs, sends: int):
        self.plan = plan
        messages = len(plan.source)
        order = np.argsort(plan.source, kind="stable")
        first = np.searchsorted(plan.source[order], np.arange(plan.ranks + 1))
        place = np.empty(messages, np.int64)
        place[order] = np.arange(messages) - first[plan.source[order]]
        sends = min(sends, max(1, int(np.diff(first).max(initial=0))))
        self.chains = plan.ranks * sends
        self.chain = plan.source * sends + place % sends
        self.turn = place // sends + 1
        own = _own_sends(plan)
        self.known = Pairs(
            np.concatenate((waits.first, own.first)), np.concatenate((waits.then, own.then))
        )
        by_then = np.argsort(self.known.then, kind="stable")
        self.known = Pairs(self.known.first[by_then], self.known.then[by_then])
        self.arrived = by_then < len(waits.first)
        self.last = np.full(messages, -1, np.int64)
        np.maximum.at(self.last, self.known.first, plan.phase[self.known.then])
        self.begin = np.searchsorted(self.known.then, np.arange(messages + 1))
        self.vector = np.zeros(messages, np.int64)
        self.start, self.span = 0, slice(0, 0)

    def phases(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield, for each phase, what its messages are told and what they then know.

        The first array has a row for each pair of the phase, the second one for each message.
        """
        plan, first = self.plan, self.known.first
        spans = _slices(self.known, plan)
        leaving = np.argsort(self.last, kind="stable")
        ends = np.searchsorted(self.last[leaving], np.arange(plan.phases + 1)).tolist()
        stored = np.zeros((64, self.chains), np.min_scalar_type(plan.ranks))
        free = list(range(len(stored)))
        for phase, (start, end) in enumerate(pairwise(plan.starts().tolist())):
            self.start, self.span = start, spans[phase]
            told = stored[self.vector[first[self.span]]]
            self._add_arrived(told)
            clocks = self._learn(told, start, end)
            yield told, clocks
            free += self.vector[leaving[ends[phase] : ends[phase + 1]]].tolist()
            stay = np.flatnonzero(self.last[start:end] >= 0)
            while len(free) < len(stay):
                free += range(len(stored), 2 * len(stored))
                stored = np.concatenate((stored, np.zeros_like(stored)))
            rows = free[len(free) - len(stay) :]
            del free[len(free) - len(stay) :]
            self.vector[start + stay] = rows
            stored[rows] = clocks[stay]

    def _add_arrived(self, told: Numbers) -> None:
        """Add the awaited messages themselves to what they knew when they started."""
        arrived = np.flatnonzero(self.arrived[self.span])
        first = self.known.first[self.span][arrived]
        told[arrived, self.chain[first]] = np.maximum(
            told[arrived, self.chain[first]], self.turn[first]
        )

    def _learn(self, told: Numbers, start: int, end: int) -> Numbers:
        """Return what the messages of a phase know when they start: all that they are told."""
        clocks = np.zeros((end - start, self.chains), told.dtype)
        # The first pair of each message, the second one, and so on: there are few.
        row = self.begin[start:end] - self.span.start
        left = self.begin[start + 1 : end + 1] - self.span.start - row
        message = np.flatnonzero(left)
        while len(message):
            clocks[message] = np.maximum(clocks[message], told[row[message]])
            row, left = row + 1, left - 1
            message = message[left[message] > 0]
        return clocks

    def has(self, clocks: Numbers, pairs: Pairs, span: slice) -> npt.NDArray[np.bool_]:
        """Tell whether messages of the phase come after others, by what they know."""
        first = pairs.first[span]
        seen = clocks[pairs.then[span] - self.start, self.chain[first]]
        return np.asarray(seen >= self.turn[first])

    def ways(self, told: Numbers, pairs: Pairs, span: slice) -> Numbers:
        """Return for each sync of the phase how many of its message's pairs imply it."""
        first, then = pairs.first[span], pairs.then[span]
        begin, count = self.begin[then], self.begin[then + 1] - self.begin[then]
        which = np.repeat(np.arange(len(first)), count)
        row = np.arange(len(which)) - np.repeat(np.cumsum(count) - count - begin, count)
        asked = first[which]
        seen = told[row - self.span.start, self.chain[asked]] >= self.turn[asked]
        return np.bincount(which[seen], minlength=len(first))
