"""The messages of a schedule as arrays, for the checker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from stagegen.errors import ScheduleError
from stagegen.schedule.model import Message, PhaseSchedule
from stagegen.schedule.verify.paths import require_rank

Numbers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Plan:
    """Messages in the order of a schedule; the arrays have an element for each.

    Attributes:
        ranks: how many there are.
        source: their senders.
        destination: their receivers.
        phase: the phases in which they start.
        phases: how many phases there are.
    """

    ranks: int
    source: Numbers
    destination: Numbers
    phase: Numbers
    phases: int

    @classmethod
    def of(cls, phases: Sequence[Sequence[Message]], ranks: int) -> Plan:
        """Return the messages of some phases, whatever they are."""
        flat = chain.from_iterable(chain.from_iterable(phases))
        pairs = np.fromiter(flat, np.int64).reshape(-1, 2)
        sizes = [len(phase) for phase in phases]
        phase = np.repeat(np.arange(len(phases)), np.array(sizes, np.int64))
        return cls(ranks, pairs[:, 0], pairs[:, 1], phase, len(phases))

    def message(self, number: int | np.integer[Any]) -> Message:
        """Return a message by its number."""
        return Message(int(self.source[number]), int(self.destination[number]))

    def starts(self) -> Numbers:
        """Return the number of the first message of every phase, then the number of messages."""
        return np.searchsorted(self.phase, np.arange(self.phases + 1))

    def numbers(self) -> Numbers:
        """Return the number of each message at `source · ranks + destination`, -1 for none."""
        numbers = np.full(self.ranks * self.ranks, -1, np.int64)
        numbers[self.source * self.ranks + self.destination] = np.arange(len(self.source))
        return numbers

    def only(self, which: npt.NDArray[np.bool_]) -> Plan:
        """Return some of the messages."""
        return replace(
            self,
            source=self.source[which],
            destination=self.destination[which],
            phase=self.phase[which],
        )

    def lasting(self, phases: Numbers) -> Plan:
        """Return every message once for each phase that it lasts, its own one first."""
        again = np.repeat(np.arange(len(phases)), phases)
        later = np.arange(len(again)) - np.repeat(np.cumsum(phases) - phases, phases)
        phase = self.phase[again] + later
        order = np.argsort(phase, kind="stable")
        order = order[phase[order] < self.phases]
        again = again[order]
        return replace(
            self,
            source=self.source[again],
            destination=self.destination[again],
            phase=phase[order],
        )

    def plus(self, other: Plan) -> tuple[Plan, npt.NDArray[np.bool_]]:
        """Return these messages and others, last in each phase, and a mask of the others."""
        phase = np.concatenate((self.phase, other.phase))
        order = np.argsort(phase, kind="stable")
        both = replace(
            self,
            source=np.concatenate((self.source, other.source))[order],
            destination=np.concatenate((self.destination, other.destination))[order],
            phase=phase[order],
        )
        return both, order >= len(self.phase)


def check_ranks(plan: Plan, what: str = "") -> None:
    """Check that senders and receivers are ranks."""
    for ranks in (plan.source, plan.destination):
        for wrong in np.flatnonzero((ranks < 0) | (ranks >= plan.ranks))[:1]:
            require_rank(int(ranks[wrong]), plan.ranks, f"phase {plan.phase[wrong]}{what}")


def check_every_pair_once(schedule: PhaseSchedule) -> Plan:
    """Check that every ordered pair of ranks is in exactly one phase; return the messages."""
    ranks = len(schedule.ranks)
    plan = Plan.of(schedule.phases, ranks)
    check_ranks(plan)
    for wrong in np.flatnonzero(plan.source == plan.destination)[:1]:
        raise ScheduleError(f"phase {plan.phase[wrong]}: {plan.message(wrong)} to itself")
    pairs = plan.source * ranks + plan.destination
    for again in repeated(pairs)[:1]:
        before = np.flatnonzero(pairs == pairs[again])[0]
        raise ScheduleError(
            f"phase {plan.phase[again]}: {plan.message(again)} was in phase "
            f"{plan.phase[before]} already"
        )
    there = np.zeros(ranks * ranks, np.bool_)
    there[pairs] = True
    there[:: ranks + 1] = True
    for pair in np.flatnonzero(~there)[:1]:
        raise ScheduleError(f"message {Message(*divmod(int(pair), ranks))} is in no phase")
    return plan


def check_one_at_a_time(plan: Plan) -> None:
    """Check that in a phase no rank starts two sends, nor two receives."""
    for ranks, does in ((plan.source, "sends"), (plan.destination, "receives")):
        for again in repeated(plan.phase * plan.ranks + ranks)[:1]:
            raise ScheduleError(
                f"phase {plan.phase[again]}: rank {ranks[again]} {does} more than one message, "
                f"the second is {plan.message(again)}"
            )


def repeated(values: Numbers) -> Numbers:
    """Return the places of values that also stand at an earlier place."""
    order = np.argsort(values, kind="stable")
    same = np.flatnonzero(values[order[1:]] == values[order[:-1]])
    return np.sort(order[same + 1])
