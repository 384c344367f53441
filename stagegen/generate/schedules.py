"""Schedules in the shape of C tables, each with the summary of its proof.

A schedule is verified before it is written: :meth:`Scheduler.make` raises where the
independent checker finds a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from stagegen.schedule import (
    PhaseSchedule,
    Step,
    alltoall_schedule,
    broadcast_tree,
    depth_first_ranks,
    logical_ring,
    schedule_rows,
)
from stagegen.schedule.verify import Proof, verify_alltoall, verify_ring, verify_tree
from stagegen.topology import Topology


@dataclass(frozen=True)
class CStep:
    """A row of ``steps[]``; -1 is nobody; ``token`` is the index of its first token."""

    phase: int
    to: int
    sender: int
    awaited: int
    after_send: int
    after_receive: int
    token: int


class Scheduler:
    """Makes the values that a template which ``needs`` a schedule is rendered with."""

    def __init__(self, topology: Topology):
        self._topology = topology

    def make(self, needs: str, sync: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the template's ``schedule`` and the lines of its proof.

        Args:
            needs: ``aapc``, ``ring`` or ``tree``.
            sync: of ``aapc``.

        Raises:
            ScheduleError: the schedule fails its proof.
        """
        makers = {"aapc": self._aapc, "ring": self._ring, "tree": self._tree}
        values, proofs = makers[needs](sync or "none")
        return values, tuple(f"proven: {line}" for proof in proofs for line in proof.lines())

    def _ring(self, _: str) -> tuple[dict[str, Any], list[Proof]]:
        ring = logical_ring(self._topology, "lr1")
        values = {"ring": ring.order, "place_of": _inverse(ring.order)}
        return values, [verify_ring(self._topology, ring)]

    def _tree(self, _: str) -> tuple[dict[str, Any], list[Proof]]:
        order = depth_first_ranks(self._topology)
        values = {"order": order, "place_of": _inverse(order)}
        # Around the order from any root: each such tree is a part of the ring.
        ring = verify_ring(self._topology, logical_ring(self._topology, "lr1"))
        tree = broadcast_tree(self._topology, order[0], "linear")
        return values, [verify_tree(self._topology, tree), ring]

    def _aapc(self, sync: str) -> tuple[dict[str, Any], list[Proof]]:
        schedule = alltoall_schedule(self._topology, sync)
        proof = verify_alltoall(self._topology, schedule)
        values = barrier_tables(schedule) if sync == "barrier" else token_tables(schedule)
        return values, [proof]


def _inverse(order: tuple[int, ...]) -> list[int]:
    places = [0] * len(order)
    for place, position in enumerate(order):
        places[position] = place
    return places


def barrier_tables(schedule: PhaseSchedule) -> dict[str, Any]:
    """Return, for every position and phase, whom it sends to and receives from (-1: nobody)."""
    count = len(schedule.ranks)
    steps = [[{"to": -1, "sender": -1} for _ in schedule.phases] for _ in range(count)]
    for phase, messages in enumerate(schedule.phases):
        for source, destination in messages:
            steps[source][phase]["to"] = destination
            steps[destination][phase]["sender"] = source
    return {"phase_count": len(schedule.phases), "steps": steps}


def token_tables(schedule: PhaseSchedule) -> dict[str, Any]:
    """Return the steps of every position in the order of the phases, and their tokens."""
    rows = schedule_rows(schedule).rows
    tokens: list[int] = []
    c_rows = [[_c_step(step, tokens) for step in row.steps] for row in rows]
    return {
        "rows": c_rows,
        "tokens": tokens,
        "first": list(accumulate((len(row) for row in c_rows), initial=0)),
        "awaited_most": max((step.awaited for row in c_rows for step in row), default=0),
        "owed_most": max(map(_owed, c_rows), default=0),
    }


def _c_step(step: Step, tokens: list[int]) -> CStep:
    """Return the row of a step; its tokens are added to those of all."""
    start = len(tokens)
    tokens += step.await_from + step.after_send + step.after_receive
    return CStep(
        phase=step.phase,
        to=-1 if step.send_to is None else step.send_to,
        sender=-1 if step.receive_from is None else step.receive_from,
        awaited=len(step.await_from),
        after_send=len(step.after_send),
        after_receive=len(step.after_receive),
        token=start,
    )


def _owed(row: list[CStep]) -> int:
    return sum(step.after_send + step.after_receive for step in row)
