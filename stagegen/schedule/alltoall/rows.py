"""An alltoall schedule by ranks: the view that C tables are made from.

The contract of a program that carries out a row depends on which rank gives the tokens.

Receivers: the rank has two streams, neither of which waits for the other.

1. The sends start in the order of the steps, each when its `await_from` tokens have arrived.
   An earlier send need not be complete.
2. The receives are posted in the order of the steps, one or more at a time. When the message of
   a step has arrived, and those of all earlier steps, the step's `owed` tokens are given.

Senders, or no rank: the rank does its steps one after the other.

1. Post the receive of the step, then wait for its `await_from` tokens, then send.
2. When the send is complete, give the `owed` tokens.
3. Go on when both are complete.

Where the scheme has barriers, all messages of a block of phases are complete before the barrier
after it; the rank takes part in every barrier, even after blocks in which it has no step.

Tokens are zero-byte messages. Both ends of a token know the phases of both of its messages and
the windows that it belongs to. So tables are made once, with every token, and both ends skip the
tokens that the size of blocks or the window at hand does not need. Between two ranks the
remaining tokens are given and awaited in the same order, so one tag is enough for all of them.
Every token goes from an earlier phase to a later one, and receives are posted before anything is
waited for; so nothing can deadlock even where a send completes only when its receive is posted
(:mod:`stagegen.schedule.verify` checks it for every size of blocks and window, and for steps,
which wait for more than streams do).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stagegen.errors import ScheduleError
from stagegen.schedule.alltoall.sync.schemes import SCHEMES, Scheme
from stagegen.schedule.model import Message, PhaseSchedule, Sync


class Token(NamedTuple):
    """One end of a token.

    Attributes:
        peer: the rank at the other end.
        phase: of the message at the other end, which the token lets start or reports as over.
        windows: bit w - 1 is set if the token belongs to window w.
    """

    peer: int
    phase: int
    windows: int = 1


class Step(NamedTuple):
    """What one rank does in one phase.

    Attributes:
        phase: its number.
        send_to: the rank to send to, or None.
        receive_from: the rank to receive from, or None.
        dummy_to: the rank to send a dummy message to, or None.
        dummy_from: the rank to receive one from, or None.
        await_from: tokens that must have arrived before the send starts.
        owed: tokens to give when the scheme's half of the step is complete.
        place: of the message to send among the messages of its phase; None where the order within
            a phase does not matter, or the rank sends nothing.
    """

    phase: int
    send_to: int | None
    receive_from: int | None
    dummy_to: int | None = None
    dummy_from: int | None = None
    await_from: tuple[Token, ...] = ()
    owed: tuple[Token, ...] = ()
    place: int | None = None


@dataclass(frozen=True)
class Rows:
    """A schedule by ranks.

    Attributes:
        phase_count: how many phases there are.
        scheme: the scheme that keeps them apart.
        rows: the steps of each rank, without phases in which it has none.
        placed: whether steps hold the places of their messages.
    """

    phase_count: int
    scheme: Scheme
    rows: tuple[tuple[Step, ...], ...]
    placed: bool = False


def schedule_rows(schedule: PhaseSchedule, *others: PhaseSchedule, placed: bool = False) -> Rows:
    """Return the view by ranks.

    Args:
        schedule: with the tokens of its window.
        others: the same phases with other windows, whose tokens are merged in.
        placed: whether to hold the place of each message in its phase. Where an edge carries
            several messages of a phase, the place decides which of them a later one follows.

    Raises:
        ScheduleError: a rank sends or receives twice in a phase.
    """
    tokens = _Tokens((schedule, *others))
    rows: list[list[Step]] = [[] for _ in schedule.ranks]
    dummies = schedule.dummies or ((),) * len(schedule.phases)
    for phase, (messages, idle) in enumerate(zip(schedule.phases, dummies, strict=True)):
        to, source = _peers(phase, messages)
        dummy_to, dummy_from = _peers(phase, idle)
        places = {m.source: at for at, m in enumerate(messages)} if placed else {}
        for rank in sorted({*to, *source, *dummy_to, *dummy_from}):
            send_to, receive_from = to.get(rank), source.get(rank)
            rows[rank].append(
                Step(
                    phase=phase,
                    send_to=send_to,
                    receive_from=receive_from,
                    dummy_to=dummy_to.get(rank),
                    dummy_from=dummy_from.get(rank),
                    await_from=() if send_to is None else tokens.awaited((rank, send_to)),
                    owed=tokens.owed(rank, send_to, receive_from),
                    place=places.get(rank),
                )
            )
    scheme = SCHEMES[schedule.sync.scheme]
    return Rows(len(schedule.phases), scheme, tuple(map(tuple, rows)), placed)


def _peers(phase: int, messages: Sequence[Message]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the rank that each rank sends to, and the rank that it receives from."""
    to = dict(messages)
    source = {destination: sender for sender, destination in messages}
    if len(to) < len(messages) or len(source) < len(messages):
        raise ScheduleError(f"phase {phase}: a rank sends or receives more than one message")
    return to, source


class _Tokens:
    """The tokens of schedules that differ in their windows, by the messages at their ends."""

    def __init__(self, schedules: Sequence[PhaseSchedule]):
        self._giver = SCHEMES[schedules[0].sync.scheme].giver
        self._awaited: dict[tuple[int, int], list[Token]] = defaultdict(list)
        self._owed: dict[tuple[int, int], list[Token]] = defaultdict(list)
        phase_of = {
            message: phase
            for phase, messages in enumerate(schedules[0].phases)
            for message in messages
        }
        windows: dict[Sync, int] = defaultdict(int)
        for schedule in schedules:
            bit = 1 << (schedule.sync.window - 1)
            for sync in schedule.sync.syncs:
                windows[sync] |= bit
        for (first, then, token), bits in windows.items():
            if token is not None:
                giver, taker = token
                self._awaited[then].append(Token(giver, phase_of[first], bits))
                self._owed[first].append(Token(taker, phase_of[then], bits))

    def awaited(self, message: tuple[int, int]) -> tuple[Token, ...]:
        """Return the tokens that the sender of a message waits for, in the order of phases."""
        return tuple(sorted(self._awaited.get(message, ()), key=_by_phase))

    def owed(self, rank: int, to: int | None, source: int | None) -> tuple[Token, ...]:
        """Return the tokens that a rank owes after its send, or its receive, of a phase."""
        if self._giver == "sender" and to is not None:
            return tuple(sorted(self._owed.get((rank, to), ()), key=_by_phase))
        if self._giver == "receiver" and source is not None:
            return tuple(sorted(self._owed.get((source, rank), ()), key=_by_phase))
        return ()


def _by_phase(token: Token) -> tuple[int, int]:
    return token.phase, token.peer
