"""Phases for clusters in which a link carries several messages of a phase.

Three steps, in modules of this package:

1. ``traffic``: the traffic between groups of ranks that the network cannot tell apart;
2. ``fit`` and ``repair``: the phase of each of its messages;
3. ``spread``: the sender and the receiver of each message.

The last step always succeeds, so only the second one can need more phases than the bound.
"""

from __future__ import annotations

from stagegen.schedule.alltoall.capacity import bound_phases
from stagegen.schedule.alltoall.phases.fit import first_fit, orders
from stagegen.schedule.alltoall.phases.repair import Repair
from stagegen.schedule.alltoall.phases.spread import spread
from stagegen.schedule.alltoall.phases.traffic import Pair, Traffic, traffic
from stagegen.schedule.model import Message
from stagegen.topology import Topology

_MANY = 100_000
"""The number of messages above which only the most promising first fits are repaired."""


def capacity_phases(topology: Topology) -> tuple[tuple[Message, ...], ...]:
    """Return the phases of an alltoall in which each link carries what its capacity allows.

    Args:
        topology: a cluster of two or more ranks without a link slower than the slowest host's.
    """
    asked = traffic(topology)
    return spread(asked.groups, _timetable(asked, bound_phases(topology)))


def _timetable(asked: Traffic, bound: int) -> list[list[Pair]]:
    """Deal all messages to phases, as few as the bound if such a timetable is found."""
    messages = sum(asked.demands.values())
    many = messages > _MANY
    tables = []
    for order, together in ((o, together) for o in orders(asked) for together in (False, True)):
        tables.append(first_fit(asked, order, bound, together))
        if len(tables[-1].left) <= many * messages // 1000:
            break
    tables.sort(key=lambda table: len(table.left))
    repairs = []
    for table in tables[: 3 if many else None]:
        repairs.append(Repair(asked, table))
        if repairs[-1].run(steps=min(2000 + 2 * len(table.left), 20000)):
            return repairs[-1].phases
    return _lengthened(min(repairs, key=lambda repair: len(repair.left)))


def _lengthened(repair: Repair) -> list[list[Pair]]:
    """Add phases, few at a time, until no message is left over."""
    while repair.left:
        repair.add_phases(1 + len(repair.phases) // 256)
        repair.run(steps=500 + 2 * len(repair.left))
    return [messages for messages in repair.phases if messages]
