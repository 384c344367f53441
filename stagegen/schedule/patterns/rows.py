"""A pattern's schedule by ranks: the view that C tables are made from.

Steps are those of :mod:`stagegen.schedule.alltoall.rows` with tokens from receivers. Beside each of
them is the part of its message that it sends, and the part that it receives.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from stagegen.schedule.alltoall.rows import Rows, Step, Token
from stagegen.schedule.alltoall.sync.schemes import SCHEMES
from stagegen.schedule.model import PatternSchedule, Piece


class Cut(NamedTuple):
    """The parts of their messages that a step sends and receives: part `sent` of `sent_of`."""

    sent: int = 0
    sent_of: int = 1
    received: int = 0
    received_of: int = 1


def pattern_rows(schedule: PatternSchedule) -> tuple[Rows, tuple[tuple[Cut, ...], ...]]:
    """Return the steps of each rank, and the parts of messages that belong to each step."""
    phase_of = {piece: place for place, phase in enumerate(schedule.phases) for piece in phase}
    awaited: dict[Piece, list[Token]] = defaultdict(list)
    owed: dict[Piece, list[Token]] = defaultdict(list)
    for first, then in schedule.waits:
        awaited[then].append(Token(first.destination, phase_of[first]))
        owed[first].append(Token(then.source, phase_of[then]))
    steps: list[list[Step]] = [[] for _ in schedule.ranks]
    cuts: list[list[Cut]] = [[] for _ in schedule.ranks]
    for number, phase in enumerate(schedule.phases):
        sent = {piece.source: (place, piece) for place, piece in enumerate(phase)}
        received = {piece.destination: piece for piece in phase}
        for rank in sorted({*sent, *received}):
            place, out = sent.get(rank, (None, None))
            come = received.get(rank)
            steps[rank].append(
                Step(
                    phase=number,
                    send_to=None if out is None else out.destination,
                    receive_from=None if come is None else come.source,
                    await_from=_in_order(awaited, out),
                    owed=_in_order(owed, come),
                    place=place,
                )
            )
            cuts[rank].append(Cut(*(Piece(0, 0) if out is None else out)[2:],
                                  *(Piece(0, 0) if come is None else come)[2:]))  # fmt: skip
    rows = Rows(len(schedule.phases), SCHEMES["receiver"], tuple(map(tuple, steps)), placed=True)
    return rows, tuple(map(tuple, cuts))


def _in_order(tokens: dict[Piece, list[Token]], piece: Piece | None) -> tuple[Token, ...]:
    own = [] if piece is None else tokens.get(piece, [])
    return tuple(sorted(own, key=lambda token: (token.phase, token.peer)))
