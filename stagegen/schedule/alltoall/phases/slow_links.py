"""Phases for clusters in which some link is slower than all hosts' (a capacity below 1).

A message lasts as long as its slowest link needs for it, 1/c phases, and occupies all edges of
its path and both of its ranks for that long: a phase is only a unit of time here. All times are
whole numbers of *ticks*. A phase has as many ticks as it takes for every message to last a whole
number of them, so a busy slow link never idles merely because 1/c is not whole. Where that would
take too many ticks, durations are rounded up to the next tick. A message belongs to the phase in
which it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, lcm

from stagegen.schedule.alltoall.capacity import NodeEdge, bound_phases, edge_capacities
from stagegen.schedule.model import Message
from stagegen.topology import Topology

TICKS_MOST = 120
"""The most ticks of a phase; rounding lengthens a schedule by less than a 120th."""
ALL_TICKS_MOST = 2**22
"""The most ticks of a whole alltoall, since every edge has a bit for each."""


@dataclass(frozen=True)
class Clock:
    """Durations on a cluster.

    Attributes:
        capacities: of all directed edges.
        ticks: of a phase.
    """

    capacities: dict[NodeEdge, Fraction]
    ticks: int

    @classmethod
    def of(cls, topology: Topology) -> Clock:
        """Return the durations on a cluster."""
        capacities = dict(edge_capacities(topology))
        slow = (capacity.numerator for capacity in capacities.values() if capacity < 1)
        most = min(TICKS_MOST, ALL_TICKS_MOST // bound_phases(topology))
        return cls(capacities, min(lcm(*slow), max(1, most)))

    def duration(self, edges: Iterable[NodeEdge]) -> int:
        """Return how many ticks a message over these edges lasts."""
        slowest = min(self.capacities[edge] for edge in edges)
        return ceil(self.ticks / min(slowest, Fraction(1)))


class _Edge:
    """The messages on an edge at each tick: their number in binary, an integer for each digit."""

    def __init__(self, capacity: Fraction):
        self.capacity = max(1, floor(capacity))
        self.digits = [0] * self.capacity.bit_length()

    def full(self) -> int:
        """Return the ticks at which it carries as many messages as it can."""
        found = -1
        for place, digit in enumerate(self.digits):
            found &= digit if self.capacity >> place & 1 else ~digit
        return found

    def occupy(self, ticks: int) -> None:
        """Add a message."""
        for place, digit in enumerate(self.digits):
            self.digits[place], ticks = digit ^ ticks, digit & ticks


Start = tuple[int, Message]
"""The tick at which a message starts."""


def first_fit_starts(topology: Topology, clock: Clock, order: Iterable[Message]) -> list[Start]:
    """Let each message start as early as its edges are free for as long as it lasts."""
    edges = {edge: _Edge(capacity) for edge, capacity in clock.capacities.items()}
    starts = []
    for message in order:
        path = list(pairwise(topology.tree.node_path(*message)))
        duration = clock.duration(path)
        busy = 0
        for edge in path:
            busy |= edges[edge].full()
        start = _first_gap(busy, duration)
        for edge in path:
            edges[edge].occupy((1 << start + duration) - (1 << start))
        starts.append((start, message))
    return starts


def _first_gap(busy: int, length: int) -> int:
    """Return the first place from which `length` bits are zero."""
    reach = 1
    while reach < length:
        step = min(reach, length - reach)
        busy |= busy >> step
        reach += step
    return (~busy & (busy + 1)).bit_length() - 1


def one_after_the_other(
    topology: Topology, clock: Clock, phases: Sequence[Sequence[Message]]
) -> Iterator[Start]:
    """Let contention-free phases follow each other, each as long as its longest message."""
    now = 0
    for messages in phases:
        yield from ((now, message) for message in messages)
        paths = (pairwise(topology.tree.node_path(*message)) for message in messages)
        now += max(map(clock.duration, paths))


def slow_link_phases(
    topology: Topology, phases: Sequence[Sequence[Message]]
) -> tuple[tuple[Message, ...], ...]:
    """Return the messages that start in each phase, and the last phases, in which they only run.

    The shortest of four: contention-free phases one after the other, which is optimal if each of
    them uses the most loaded link; the same order with every message as early as possible; and
    first the messages whose edges are occupied longest, by the longest edge or by their sum.

    Args:
        topology: a cluster with a slow link.
        phases: of an alltoall, with at most one message on each edge in a phase.
    """
    clock = Clock.of(topology)
    in_order = [message for messages in phases for message in messages]
    longest, together = _occupied(topology, clock, in_order)
    tries = [
        list(one_after_the_other(topology, clock, phases)),
        first_fit_starts(topology, clock, in_order),
        first_fit_starts(topology, clock, sorted(in_order, key=longest.__getitem__, reverse=True)),
        first_fit_starts(topology, clock, sorted(in_order, key=together.__getitem__, reverse=True)),
    ]
    ends = [_end(topology, clock, starts) for starts in tries]
    found: list[list[Start]] = [[] for _ in range(ceil(Fraction(min(ends), clock.ticks)))]
    for start, message in tries[ends.index(min(ends))]:
        found[start // clock.ticks].append((start, message))
    return tuple(tuple(message for _, message in sorted(starts)) for starts in found)


def _end(topology: Topology, clock: Clock, starts: Iterable[Start]) -> int:
    """Return the tick at which the last message ends."""
    return max(
        start + clock.duration(pairwise(topology.tree.node_path(*message)))
        for start, message in starts
    )


def _occupied(
    topology: Topology, clock: Clock, messages: Sequence[Message]
) -> tuple[dict[Message, Fraction], dict[Message, Fraction]]:
    """Return for each message how long its edges are occupied: the longest edge, and the sum.

    In ticks of all messages, divided by how many messages the edge carries at a time.
    """
    paths = {message: list(pairwise(topology.tree.node_path(*message))) for message in messages}
    share = {edge: max(Fraction(1), capacity) for edge, capacity in clock.capacities.items()}
    total = dict.fromkeys(share, Fraction(0))
    for path in paths.values():
        duration = clock.duration(path)
        for edge in path:
            total[edge] += duration / share[edge]
    return (
        {message: max(total[edge] for edge in path) for message, path in paths.items()},
        {message: sum((total[e] for e in path), Fraction(0)) for message, path in paths.items()},
    )
