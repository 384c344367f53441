"""Phases for clusters in which a link carries several messages of a phase.

Three steps, each with its own module: the traffic between groups of ranks that the network
cannot tell apart (:mod:`stagegen.schedule.traffic`), its messages dealt to phases
(:mod:`stagegen.schedule.fit`, :mod:`stagegen.schedule.repair`), and the messages' ranks
(:mod:`stagegen.schedule.spread`). The last step always succeeds, so only the second one can
need more phases than the bound.
"""

from __future__ import annotations

from stagegen.schedule.capacity import bound_phases
from stagegen.schedule.fit import Timetable, first_fit, orders
from stagegen.schedule.model import Message
from stagegen.schedule.repair import Repair
from stagegen.schedule.spread import spread
from stagegen.schedule.traffic import Pair, Traffic, traffic
from stagegen.topology import Topology

_REPAIRS = 3
"""How many first fits are repaired, those with the fewest left over."""
_STEPS = 2000
"""Of a repair, besides two for each message left over."""
_STEPS_PER_PHASE = 500
"""Of a repair after a phase has been added."""


def capacity_phases(topology: Topology) -> tuple[tuple[Message, ...], ...]:
    """Return the phases of an alltoall in which each link carries what its capacity allows.

    Args:
        topology: a cluster of two or more ranks without a link slower than the slowest host's.
    """
    asked = traffic(topology)
    return spread(asked.groups, _timetable(asked, bound_phases(topology)))


def _timetable(asked: Traffic, bound: int) -> list[list[Pair]]:
    """Deal all messages to phases, to as few as the bound if that can be found."""
    tables: list[Timetable] = []
    for order in orders(asked):
        for together in (False, True):
            table = first_fit(asked, order, bound, together)
            if not table.left:
                return table.phases
            tables.append(table)
    tables.sort(key=lambda table: len(table.left))
    repairs = []
    for table in tables[:_REPAIRS]:
        repair = Repair(asked, table)
        if repair.run(_STEPS + 2 * len(table.left)):
            return repair.phases
        repairs.append(repair)
    return _lengthened(min(repairs, key=lambda repair: len(repair.left)), bound)


def _lengthened(repair: Repair, bound: int) -> list[list[Pair]]:
    """Add phases until nothing is left over."""
    while repair.left:
        repair.add_phases(1 + bound // 256)
        repair.run(_STEPS_PER_PHASE + 2 * len(repair.left))
    return [messages for messages in repair.phases if messages]
