"""Checks schedules for clusters with links slower than the hosts' in virtual time.

A message over a link of capacity c < 1 lasts 1/c phases, and occupies all edges of its path for
as long. It belongs to the phase in which it starts, perhaps not at its beginning. The check
lets every message start as early as it can: not before its phase, and when every edge of its path
has room after the messages before it. If that is within its phase for all of them, there are
starting times that fit the schedule; if not, there are none, as any others are later.
"""

from __future__ import annotations

from fractions import Fraction
from heapq import heappush, heappushpop
from math import lcm

import numpy as np

from stagegen.errors import ScheduleError
from stagegen.schedule.verify.links import Links, Uses
from stagegen.schedule.verify.plan import Numbers, Plan


def durations(plan: Plan, links: Links, uses: Uses) -> tuple[int, Numbers]:
    """Return the ticks of a phase, and how many ticks every message lasts.

    The tick is chosen to make all of these whole numbers.
    """
    ticks = lcm(*(c.numerator for c in links.capacity if c < 1))
    by_link = [int(ticks / min(capacity, Fraction(1))) for capacity in links.capacity]
    # Python's own integers where rates are so odd that a tick is less than a billionth.
    lasts: Numbers = np.full(len(plan.source), ticks, np.int64 if ticks < 2**31 else np.object_)
    np.maximum.at(lasts, uses.message, np.repeat(by_link, 2)[uses.edge])
    return ticks, lasts


def phases_of(plan: Plan, links: Links, uses: Uses) -> Numbers:
    """Return how many phases every message lasts, rounded up."""
    ticks, lasts = durations(plan, links, uses)
    return (-(-lasts // ticks)).astype(np.int64)


def check_ends(plan: Plan, links: Links, uses: Uses) -> tuple[int, int]:
    """Check that every message can start in its phase.

    Returns:
        After how many phases the last message ends, at the earliest and at the latest.
    """
    if not len(plan.source):
        return 0, 0
    if not links.slow:
        return (int(plan.phase[-1]) + 1,) * 2
    ticks, lasts = durations(plan, links, uses)
    order = np.argsort(uses.message, kind="stable")
    edges = uses.edge[order].tolist()
    starts = np.searchsorted(uses.message[order], np.arange(len(lasts) + 1)).tolist()
    most = links.carried().tolist()
    # For each edge the latest ends of its messages, as many as it carries.
    busy: list[list[int]] = [[] for _ in most]
    end = 0
    for message, (phase, duration) in enumerate(
        zip(plan.phase.tolist(), lasts.tolist(), strict=True)
    ):
        path = edges[starts[message] : starts[message + 1]]
        full = [busy[edge][0] for edge in path if len(busy[edge]) == most[edge]]
        begin = max(phase * ticks, *full, 0)
        if begin >= (phase + 1) * ticks:
            late = next(e for e in path if len(busy[e]) == most[e] and busy[e][0] == begin)
            raise ScheduleError(
                f"phase {phase}: {plan.message(message)} cannot start in it, as messages before "
                f"it keep the edge {links.name(late)} busy"
            )
        for edge in path:
            keep = heappush if len(busy[edge]) < most[edge] else heappushpop
            keep(busy[edge], begin + duration)
        end = max(end, begin + duration)
    latest = int(((plan.phase.astype(lasts.dtype) + 1) * ticks - 1 + lasts).max())
    return -(-end // ticks), -(-latest // ticks)
