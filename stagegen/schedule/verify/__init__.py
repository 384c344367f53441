"""An independent checker of schedules: proves what a generated header claims.

It shares no code with the schedulers, takes a topology's plain lists and recomputes paths,
loads and orders. Every violation is a :class:`~stagegen.errors.ScheduleError` that names the
rank, phase or message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stagegen.schedule.model import PatternSchedule, PhaseSchedule, Ring, RingPipeline, Tree
from stagegen.schedule.verify.alltoall import verify_alltoall
from stagegen.schedule.verify.apart import used_by
from stagegen.schedule.verify.configured import facts_of, verify_configured
from stagegen.schedule.verify.pattern import verify_pattern
from stagegen.schedule.verify.proof import Proof
from stagegen.schedule.verify.ring import verify_order, verify_ring
from stagegen.schedule.verify.ring_pipeline import verify_ring_pipeline
from stagegen.schedule.verify.tree import verify_tree
from stagegen.topology import Topology

__all__ = [
    "Proof",
    "facts_of",
    "used_by",
    "verify",
    "verify_alltoall",
    "verify_configured",
    "verify_order",
    "verify_pattern",
    "verify_ring",
    "verify_tree",
]

_CHECKERS: dict[type, Callable[[Topology, Any], Proof]] = {
    PatternSchedule: verify_pattern,
    PhaseSchedule: verify_alltoall,
    Ring: verify_ring,
    RingPipeline: verify_ring_pipeline,
    Tree: verify_tree,
}
"""The checker of each type of schedule; a new type adds one line."""


def verify(
    topology: Topology, schedule: PatternSchedule | PhaseSchedule | Ring | RingPipeline | Tree
) -> Proof:
    """Check any schedule.

    Raises:
        ScheduleError: a property does not hold.
    """
    return _CHECKERS[type(schedule)](topology, schedule)
