"""Checks that synchronisation keeps the phases apart, and that it cannot deadlock.

What a token proves: given by the receiver of `first`, that `first` has arrived; given by its
sender, only that its sender has handed it to the network. So the order that is checked here
excludes contention for `receiver`, up to what one sender has sent before (its messages leave
through one link, in order); for `sender` the end of one message can meet the beginning of the
next.
"""

from __future__ import annotations

import graphlib
from collections import Counter, defaultdict
from collections.abc import Hashable
from itertools import pairwise

from stagegen.errors import ScheduleError
from stagegen.schedule.model import Message, PhaseSchedule, Sync
from stagegen.schedule.verify_paths import Network, require
from stagegen.topology import Edge

_GIVERS = {"sender": lambda first: first.source, "receiver": lambda first: first.destination}


def check_syncs(schedule: PhaseSchedule, phase_of: dict[Message, int]) -> None:
    """Check every sync by itself: known messages, forward in time, a token that can be given."""
    kind = schedule.sync.kind
    require(
        kind in _GIVERS or not schedule.sync.syncs, f"a schedule with sync {kind} cannot hold syncs"
    )
    for first, then, token in schedule.sync.syncs:
        where = f"sync {first} before {then}"
        for message in (first, then):
            require(message in phase_of, f"{where}: the schedule has no message {message}")
        early, late = phase_of[first], phase_of[then]
        require(early < late, f"{where}: phase {early} does not come before phase {late}")
        knows = then.source in first
        right = None if knows else (_GIVERS[kind](first), then.source)
        require(token == right, f"{where}: the token is {token}, but has to be {right}")


def check_token_order(schedule: PhaseSchedule, phase_of: dict[Message, int]) -> None:
    """Check that between two ranks tokens are given in the order in which they are awaited."""
    streams: dict[tuple[int, int], list[Sync]] = defaultdict(list)
    for sync in schedule.sync.syncs:
        if sync.token is not None:
            streams[sync.token].append(sync)
    for (giver, taker), syncs in streams.items():
        syncs.sort(key=lambda sync: phase_of[sync.first])
        for one, two in pairwise(syncs):
            apart = phase_of[one.first] < phase_of[two.first]
            require(
                apart and phase_of[one.then] < phase_of[two.then],
                f"the tokens from rank {giver} to rank {taker} for {one.then} and {two.then} "
                "can be mistaken for each other",
            )


def check_order(schedule: PhaseSchedule, network: Network) -> None:
    """Check that all messages with contention are ordered.

    On every edge each user has to come after the one before it, which orders all of them.
    """
    clocks = _Clocks(schedule)
    last: dict[Edge, Message] = {}
    for phase, messages in enumerate(schedule.phases):
        for message in messages:
            clocks.add(message)
            for edge in network.path(message):
                first = last.get(edge)
                if first is not None and not clocks.comes_before(first, message):
                    raise ScheduleError(
                        f"phase {phase}: nothing makes {message} wait for {first}, "
                        f"with which it shares the edge {edge[0]}→{edge[1]}"
                    )
                last[edge] = message


class _Clocks:
    """For each message and rank, how many of the rank's messages surely come before it."""

    def __init__(self, schedule: PhaseSchedule):
        self.ranks = len(schedule.ranks)
        self.before: dict[Message, list[Message]] = defaultdict(list)
        for sync in schedule.sync.syncs:
            self.before[sync.then].append(sync.first)
        self.still_needed = Counter(sync.first for sync in schedule.sync.syncs)
        self.sent: list[list[Message]] = [[] for _ in range(self.ranks)]
        self.turn: dict[Message, int] = {}
        self.clock: dict[Message, list[int]] = {}

    def add(self, message: Message) -> None:
        """Take in the next message; those that it waits for have been taken in before."""
        own = self.sent[message.source]
        told_by = self.before.pop(message, [])
        self.still_needed.subtract(told_by)
        waits_for = told_by + own[-1:]
        vectors = [self.clock[earlier] for earlier in waits_for]
        clock = [max(values) for values in zip([0] * self.ranks, *vectors, strict=True)]
        own.append(message)
        clock[message.source] = self.turn[message] = len(own)
        self.clock[message] = clock
        self._forget(waits_for)

    def _forget(self, used: list[Message]) -> None:
        """Drop clocks that no later message can ask for."""
        for earlier in used:
            newest = self.sent[earlier.source][-1] == earlier
            if self.still_needed[earlier] <= 0 and not newest:
                self.clock.pop(earlier, None)

    def comes_before(self, first: Message, then: Message) -> bool:
        """Tell whether `first` surely comes before `then`, the message just taken in."""
        return self.clock[then][first.source] >= self.turn[first]


def check_progress(schedule: PhaseSchedule) -> None:
    """Check that the steps of all ranks can be carried out to the end.

    The events are those of the contract in :mod:`stagegen.schedule.rows`, under the least
    favourable rules: a send completes only when its receive has been posted, a receive is
    posted only when the rank has finished its steps before, and a token is given only at the
    end of the step.
    """
    waits: dict[Hashable, set[Hashable]] = defaultdict(set)
    latest: dict[int, Hashable] = {}
    done_at: dict[Message, int] = {}
    for phase, messages in enumerate(schedule.phases):
        barrier = ("barrier", phase - 1)
        for message in messages:
            done_at[message] = phase
            for rank in message:
                begin, end = ("begin", rank, phase), ("end", rank, phase)
                waits[end].add(("done", message))
                if latest.get(rank) != end and rank in latest:
                    waits[begin].add(latest[rank])
                latest[rank] = end
                if schedule.sync.kind == "barrier":
                    waits[begin].add(barrier)
                    waits["barrier", phase].add(end)
            waits["start", message].add(("begin", message.source, phase))
            waits["done", message] |= {
                ("start", message),
                ("begin", message.destination, phase),
            }
    for first, then, token in schedule.sync.syncs:
        told = ("done", first) if token is None else ("end", token[0], done_at[first])
        waits["start", then].add(told)
    try:
        graphlib.TopologicalSorter(waits).prepare()
    except graphlib.CycleError as error:
        stuck = next(event[1] for event in error.args[1] if event[0] in ("start", "done"))
        require(False, f"message {stuck} waits for itself: a deadlock")
