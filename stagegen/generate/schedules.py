"""Schedules in the shape of C tables, each with the summary of its proof.

A schedule is verified before it is written: :meth:`Scheduler.make` raises where the
independent checker finds a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stagegen.errors import ScheduleError
from stagegen.schedule import (
    Message,
    PhaseSchedule,
    alltoall_schedule,
    broadcast_tree,
    depth_first_ranks,
    logical_ring,
)
from stagegen.schedule.verify import Proof, verify_alltoall, verify_ring, verify_tree
from stagegen.topology import Topology


@dataclass(frozen=True)
class Token:
    """A zero-byte message: the rank of its other end, and which send of the waiter it lets go."""

    rank: int
    send: int


@dataclass(frozen=True)
class Send:
    """A row of ``sends[]``; ``token`` is the index of the first awaited one, the owed follow."""

    to: int
    phase: int
    awaited: int
    owed: int
    token: int


@dataclass(frozen=True)
class Receive:
    """A row of ``receives[]``; ``token`` is the index of the first that it owes."""

    sender: int
    phase: int
    owed: int
    token: int


@dataclass
class _Tokens:
    awaited: list[Token] = field(default_factory=list)
    after_send: list[Token] = field(default_factory=list)
    after_receive: list[Token] = field(default_factory=list)


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
    """Return sends, receives and tokens of every position, in the order of the phases.

    A token carries the number of the send that it lets go, because receives may complete in
    another order than that of the phases.
    """
    count = len(schedule.ranks)
    number_of = _send_numbers(schedule)
    owed = _tokens(schedule, number_of)
    tokens: list[Token] = []
    rows: list[dict[str, list[Any]]] = [{"sends": [], "receives": []} for _ in range(count)]
    for phase, message in _in_order(schedule):
        of = owed.get(message, _Tokens())
        send = Send(message.destination, phase, len(of.awaited), len(of.after_send), len(tokens))
        tokens += of.awaited + of.after_send
        receive = Receive(message.source, phase, len(of.after_receive), len(tokens))
        tokens += of.after_receive
        rows[message.source]["sends"].append(send)
        rows[message.destination]["receives"].append(receive)
    return {
        "rows": rows,
        "tokens": tokens,
        "first": [position * (count - 1) for position in range(count + 1)],
        "awaited_most": max((s.awaited for row in rows for s in row["sends"]), default=0),
        "owed_most": max(map(_owed, rows), default=0),
    }


def _in_order(schedule: PhaseSchedule) -> Iterator[tuple[int, Message]]:
    for phase, messages in enumerate(schedule.phases):
        for message in messages:
            yield phase, message


def _send_numbers(schedule: PhaseSchedule) -> dict[Message, int]:
    """Return which send of its source each message is."""
    sent = [0] * len(schedule.ranks)
    numbers = {}
    for _, message in _in_order(schedule):
        numbers[message] = sent[message.source]
        sent[message.source] += 1
    return numbers


def _tokens(schedule: PhaseSchedule, number_of: dict[Message, int]) -> dict[Message, _Tokens]:
    """Return the tokens that each message waits for and owes."""
    tokens: dict[Message, _Tokens] = {}
    for first, then, token in schedule.sync.syncs:
        if token is None:  # a→c and c→d never share an edge (Faraj 2006, Lemma 3)
            raise ScheduleError(f"{then} must wait for {first} without a token")
        giver, taker = token
        number = number_of[then]
        owing = tokens.setdefault(first, _Tokens())
        owed = owing.after_send if giver == first.source else owing.after_receive
        owed.append(Token(taker, number))
        tokens.setdefault(then, _Tokens()).awaited.append(Token(giver, number))
    return tokens


def _owed(row: dict[str, list[Any]]) -> int:
    return sum(one.owed for one in row["sends"] + row["receives"])
