"""Checks the load of a schedule's phases, their number, and the root."""

from __future__ import annotations

import numpy as np

from stagegen.errors import ScheduleError
from stagegen.schedule.model import PhaseSchedule
from stagegen.schedule.verify.links import Links, Uses
from stagegen.schedule.verify.paths import Network, require
from stagegen.schedule.verify.plan import Plan


def check_capacities(plan: Plan, links: Links, uses: Uses) -> None:
    """Check that no edge has more messages of a phase than its whole capacity."""
    edges, firsts, seconds = uses.apart(links.carried())
    for clash in np.flatnonzero(plan.phase[firsts] == plan.phase[seconds])[:1]:
        one, other = plan.message(firsts[clash]), plan.message(seconds[clash])
        raise ScheduleError(
            f"phase {plan.phase[firsts[clash]]}: {one} and {other} share "
            f"the edge {links.name(edges[clash])}"
        )


def check_count(schedule: PhaseSchedule, links: Links, ends: tuple[int, int]) -> int:
    """Check the bound and the number of phases; return the bound.

    Where all links carry one message of a phase, the schedule must reach the bound, which is always
    possible (Theorem 1 of Faraj, 2006).

    Args:
        schedule: the schedule to check.
        links: of its cluster.
        ends: after how many phases the last message ends, at the earliest and at the latest.
    """
    bound, count = links.bound(), len(schedule.phases)
    load = f"but the load of the bottleneck is {bound}"
    require(
        schedule.bound_phases == bound, f"the bound of phases is {schedule.bound_phases}, {load}"
    )
    require(
        ends[0] <= count <= ends[1],
        f"the number of phases is {count}, but the last message ends after {ends[0]}",
    )
    require(count == bound or not links.equal, f"the number of phases is {count}, {load}")
    return bound


def check_root(schedule: PhaseSchedule, network: Network, links: Links) -> None:
    """Check that the subtrees are the branches of the root, larger ones first.

    Where all links carry one message of a phase, no subtree may have more than half of the ranks:
    otherwise the construction of section 3.2.2 would not reach the bound.
    """
    subtrees, count = schedule.subtrees, len(schedule.ranks)
    require(
        sorted(subtrees) == network.branches(schedule.root),
        f"the subtrees are not the branches of root {schedule.root}",
    )
    sizes = [len(subtree) for subtree in subtrees]
    require(sizes == sorted(sizes, reverse=True), "the subtrees are not sorted by size")
    require(
        count == 1 or not links.equal or 2 * sizes[0] <= count,
        f"the subtree of rank {subtrees[0][0]} has more than half of the ranks",
    )
