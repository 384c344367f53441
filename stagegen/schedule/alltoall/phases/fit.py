"""First fit: puts the messages of each pair of groups in the first phases with room.

All messages of a pair are placed at once, by a few operations on arrays with an element for each
phase. The orders begin with the pairs that need the most stressed resources; among equals, pairs
with the same distance between their groups come together, which on equal groups gives the ring
of section 3.2.2.2 of Faraj (2006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from stagegen.schedule.alltoall.phases.traffic import Pair, Traffic


@dataclass
class Timetable:
    """A timetable under construction: which messages start in which phase.

    Attributes:
        room: of each resource in each phase, how many more messages may occupy it.
        phases: the pair of every message of each phase.
        left: the pairs of messages without a phase, one entry for each message.
    """

    room: np.ndarray
    phases: list[list[Pair]]
    left: list[Pair] = field(default_factory=list)


_Key = Callable[[list[float], int, Pair, int], object]

# Sort keys, from a pair's stress (most stressed resource first), distance, numbers and demand.
_KEYS: tuple[_Key, ...] = (
    lambda stress, distance, _pair, _demand: (-stress[0], distance),
    lambda stress, distance, _pair, _demand: (-sum(stress), distance),
    lambda stress, _distance, pair, _demand: (-sum(stress), pair[0] ^ pair[1]),
    lambda stress, distance, _pair, demand: (-stress[0], -demand, distance),
    lambda stress, _distance, pair, _demand: (-stress[0], pair),
)


def orders(traffic: Traffic) -> Iterator[list[Pair]]:
    """Yield the pairs in orders that are worth trying, the best in most cases first."""
    stress = {pair: traffic.stress(pair) for pair in traffic.demands}
    groups = len(traffic.groups)
    for key in _KEYS:
        ranked = [
            (key(stress[pair], (pair[1] - pair[0]) % groups, pair, demand), pair)
            for pair, demand in traffic.demands.items()
        ]
        yield [pair for _, pair in sorted(ranked)]


def first_fit(traffic: Traffic, order: list[Pair], count: int, together: bool) -> Timetable:
    """Place the messages of each pair in the first phases where all their resources have room.

    Args:
        traffic: what to place.
        order: all pairs.
        count: how many phases there are; messages that find no room are left over.
        together: take all the room that a phase has before going on to the next. Otherwise a
            phase gets a second message of a pair only when no other has room.
    """
    room = np.repeat(traffic.capacity.astype(np.int32)[:, None], count, axis=1)
    table = Timetable(room, [[] for _ in range(count)])
    for pair in order:
        left = traffic.demands[pair]
        uses = traffic.uses[pair]
        while left:
            common = room[uses[0]].copy()
            for resource in uses[1:]:
                np.minimum(common, room[resource], out=common)
            phases = np.flatnonzero(common)[:left]
            if not len(phases):
                break
            taken = common[phases] if together else np.ones(len(phases), np.int32)
            taken = np.clip(left - (np.cumsum(taken) - taken), 0, taken)
            for resource in uses:
                room[resource, phases] -= taken
            left -= int(taken.sum())
            for phase, messages in zip(phases.tolist(), taken.tolist(), strict=True):
                table.phases[phase] += [pair] * messages
        table.left += [pair] * left
    return table
