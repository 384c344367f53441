"""Checks dummy messages: they occupy ranks that would be idle, and block no other message."""

from __future__ import annotations

import numpy as np

from stagegen.errors import ScheduleError
from stagegen.schedule.model import PhaseSchedule
from stagegen.schedule.verify.links import Links, Uses
from stagegen.schedule.verify.paths import require
from stagegen.schedule.verify.plan import Plan, check_ranks, repeated
from stagegen.schedule.verify.slow_links import phases_of


def check_dummies(schedule: PhaseSchedule, plan: Plan, links: Links, uses: Uses) -> Plan:
    """Check that dummies only use ranks and edges that are free.

    A rank sends, and receives, at most one message of a phase, and no rank is idle. No edge
    carries more than its capacity; a dummy from a rank to itself uses no edge. Messages over
    slow links count in all the phases that they last.

    Returns:
        All messages between two ranks, dummies included.
    """
    require(
        len(schedule.dummies) == plan.phases,
        f"there are dummy messages for {len(schedule.dummies)} phases, not for {plan.phases}",
    )
    dummies = Plan.of(schedule.dummies, plan.ranks)
    check_ranks(dummies, " has a dummy message")
    running = plan.lasting(phases_of(plan, links, uses))
    every, added = running.plus(dummies)
    _check_ranks_free(every, added)
    _check_none_idle(every)
    moving = every.only(every.source != every.destination)
    _check_edges_free(moving, added[every.source != every.destination], links)
    away = dummies.only(dummies.source != dummies.destination)
    return plan.plus(away)[0]


def _check_ranks_free(every: Plan, added: np.ndarray) -> None:
    """Check that ranks of dummies have nothing else to send, or to receive."""
    for ranks, does in ((every.source, "sends"), (every.destination, "receives")):
        again = repeated(every.phase * every.ranks + ranks)
        for index in again[added[again]][:1]:
            raise ScheduleError(
                f"phase {every.phase[index]}: rank {ranks[index]} {does} more than the dummy "
                f"message {every.message(index)}"
            )


def _check_none_idle(every: Plan) -> None:
    """Check that every rank sends or receives in every phase."""
    busy = np.zeros((every.phases, every.ranks), np.bool_)
    for ranks in (every.source, every.destination):
        busy[every.phase, ranks] = True
    for phase, rank in np.argwhere(~busy)[:1].tolist():
        raise ScheduleError(f"phase {phase}: rank {rank} is idle, without a dummy message")


def _check_edges_free(moving: Plan, added: np.ndarray, links: Links) -> None:
    """Check that edges have room for dummies, which come last in each phase."""
    edges, firsts, seconds = links.uses(moving).apart(links.carried())
    same = moving.phase[firsts] == moving.phase[seconds]
    for clash in np.flatnonzero(same & added[seconds])[:1]:
        raise ScheduleError(
            f"phase {moving.phase[seconds[clash]]}: {moving.message(firsts[clash])} and the dummy "
            f"message {moving.message(seconds[clash])} share the edge {links.name(edges[clash])}"
        )
