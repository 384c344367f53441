"""Places the messages that first fit left over, by moving others out of the way.

A message without a phase looks for a phase in which one or two of its resources are full, and for
messages on these resources that can move to another phase. If there are none, it drives others
out, which then look for a phase themselves: a random walk on which the number of messages without
a phase stays close to the least so far. The walk on *partial solutions* is known from graph
colouring (Blöchliger and Zufferey 2008, A graph coloring heuristic using partial solutions and
a reactive tabu scheme); here the messages of a pair of groups are all alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random

import numpy as np

from stagegen.schedule.alltoall.phases.fit import Timetable
from stagegen.schedule.alltoall.phases.traffic import Pair, Traffic

_TRIES = 24
"""How many phases with one full resource, and with two, are searched for messages to move."""
_GROWTH = 4
"""How many more messages than at best may be without a phase during the walk."""


class Repair:
    """A timetable with, for each resource, the set of phases in which it has room.

    The sets are bits of integers, so an AND gives the phases with room for a message. Random
    numbers have a fixed seed: the same timetable gives the same result.

    Attributes:
        phases: the pair of every message of each phase.
        left: the pairs of messages without a phase.
    """

    def __init__(self, traffic: Traffic, table: Timetable):
        self.phases = table.phases
        self.left = deque(table.left)
        self._fewest = len(self.left)
        self._uses = traffic.uses
        self._capacity = traffic.capacity.tolist()
        self._room = table.room.tolist()
        self._open = [_bits(row) for row in table.room > 0]
        self._random = Random(len(self.phases))

    def run(self, steps: int) -> bool:
        """Place the messages that are left in at most `steps` steps; tell whether none is left."""
        while self.left and steps > 0:
            steps -= 1
            self._fewest = min(self._fewest, len(self.left))
            pair = self.left.popleft()
            phases = self._open_to(pair)
            if phases:
                self._place(pair, _lowest(phases))
            else:
                self._push(pair)
        return not self.left

    def add_phases(self, count: int) -> None:
        """Append phases in which all resources have room."""
        old = len(self.phases)
        self.phases += [[] for _ in range(count)]
        for resource, capacity in enumerate(self._capacity):
            self._room[resource] += [capacity] * count
            self._open[resource] |= (1 << old + count) - (1 << old)

    def _open_to(self, pair: Pair) -> int:
        """Return the phases in which a message of the pair has room."""
        found = -1
        for resource in self._uses[pair]:
            found &= self._open[resource]
        return found

    def _place(self, pair: Pair, phase: int) -> None:
        """Let a message of the pair start in a phase."""
        self.phases[phase].append(pair)
        for resource in self._uses[pair]:
            self._room[resource][phase] -= 1
            if not self._room[resource][phase]:
                self._open[resource] ^= 1 << phase

    def _take(self, pair: Pair, phase: int) -> None:
        """Take a message of the pair out of a phase."""
        self.phases[phase].remove(pair)
        for resource in self._uses[pair]:
            if not self._room[resource][phase]:
                self._open[resource] ^= 1 << phase
            self._room[resource][phase] += 1

    def _push(self, pair: Pair) -> None:
        """Make room for a message in a phase where one or two of its resources are full.

        If there is no such phase, the message goes to the end of the queue.
        """
        one, two = self._almost_open_to(pair)
        tried = self._sample(one) + self._sample(two)
        for phase in tried:
            if self._move_others(pair, phase):
                self._place(pair, phase)
                return
        if not tried:
            self.left.append(pair)
            return
        may_grow = len(self.left) < self._fewest + _GROWTH
        phase = self._random.choice(tried) if may_grow else tried[0]
        self.left += self._driven_out(pair, phase)
        self._place(pair, phase)

    def _almost_open_to(self, pair: Pair) -> tuple[int, int]:
        """Return the phases in which one, and in which two, of the pair's resources are full."""
        one = two = more = 0
        every = (1 << len(self.phases)) - 1
        for resource in self._uses[pair]:
            full = every & ~self._open[resource]
            more |= two & full
            two |= one & full
            one |= full
        return one & ~two, two & ~more

    def _sample(self, phases: int) -> list[int]:
        """Return some of a set of phases, in random order."""
        members = _members(phases)
        return self._random.sample(members, min(_TRIES, len(members)))

    def _full(self, pair: Pair, phase: int) -> Iterator[list[Pair]]:
        """Yield the pairs with messages on a full resource of the pair, until none is full."""
        for resource in self._uses[pair]:
            if not self._open[resource] >> phase & 1:
                there = dict.fromkeys(self.phases[phase])
                yield [other for other in there if resource in self._uses[other]]

    def _move_others(self, pair: Pair, phase: int) -> bool:
        """Move messages to other phases until the pair has room; move none if that fails."""
        moved: list[tuple[Pair, int]] = []
        for others in self._full(pair, phase):
            for other in others:
                if phases := self._open_to(other):
                    self._take(other, phase)
                    self._place(other, _lowest(phases))
                    moved.append((other, _lowest(phases)))
                    break
            else:
                for other, there in moved:
                    self._take(other, there)
                    self._place(other, phase)
                return False
        return True

    def _driven_out(self, pair: Pair, phase: int) -> Iterator[Pair]:
        """Take messages out of a phase until the pair has room; yield them."""
        for others in self._full(pair, phase):
            rivals = [other for other in others if other != pair] or others
            other = self._random.choice(rivals)
            self._take(other, phase)
            yield other


def _bits(row: np.ndarray) -> int:
    """Return the set of the places that are true in a row."""
    return int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little")


def _lowest(members: int) -> int:
    """Return the lowest member of a set that is not empty."""
    return (members & -members).bit_length() - 1


def _members(members: int) -> list[int]:
    """Return all members of a set, ascending."""
    return [place for place, bit in enumerate(bin(members)[:1:-1]) if bit == "1"]
