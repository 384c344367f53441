"""What each rank does in an alltoall schedule: the view that C tables are made from.

The contract of the program that carries out a row, step by step in order:

1. post the receive of the step, then wait for its `await_from` tokens, then send;
2. when the send is complete, give the `after_send` tokens; when the receive is complete, give
   the `after_receive` tokens;
3. go on when both are complete; where `barriers` is set, after a barrier at the end of every
   phase but the last, also of phases in which the rank has no step.

Tokens are zero-byte messages. Between two ranks they are given and awaited in the same order,
so one tag is enough for all of them. Every token goes from an earlier phase to a later one,
and receives are posted before anything is waited for; so the steps cannot deadlock even where
a send completes only when its receive is posted (:mod:`stagegen.schedule.verify` checks it).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stagegen.schedule.model import Message, PhaseSchedule


@dataclass(frozen=True)
class Step:
    """What one rank does in one phase.

    Attributes:
        phase: its number.
        send_to: the rank to send to, or None.
        receive_from: the rank to receive from, or None.
        await_from: ranks whose tokens must have come before the send starts.
        after_send: ranks to give a token to when the send is complete.
        after_receive: ranks to give a token to when the receive is complete.
    """

    phase: int
    send_to: int | None
    receive_from: int | None
    await_from: tuple[int, ...] = ()
    after_send: tuple[int, ...] = ()
    after_receive: tuple[int, ...] = ()


@dataclass(frozen=True)
class Row:
    """The steps of one rank, of the phases in which it has any."""

    rank: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Rows:
    """A schedule by ranks.

    Attributes:
        phase_count: how many phases there are.
        barriers: whether a barrier ends every phase but the last.
        rows: one for each rank.
    """

    phase_count: int
    barriers: bool
    rows: tuple[Row, ...]


@dataclass
class _Tokens:
    """The tokens of one message, while they are collected."""

    await_from: list[int] = field(default_factory=list)
    by_sender: list[int] = field(default_factory=list)
    by_receiver: list[int] = field(default_factory=list)


def schedule_rows(schedule: PhaseSchedule) -> Rows:
    """Return the view by ranks; tokens are in the order of the schedule's syncs."""
    tokens: dict[Message, _Tokens] = {}
    for first, then, token in schedule.sync.syncs:
        if token is None:
            continue
        giver, taker = token
        owed = tokens.setdefault(first, _Tokens())
        (owed.by_sender if giver == first.source else owed.by_receiver).append(taker)
        tokens.setdefault(then, _Tokens()).await_from.append(giver)
    steps: list[list[Step]] = [[] for _ in schedule.ranks]
    for phase, messages in enumerate(schedule.phases):
        sends = {message.source: message for message in messages}
        receives = {message.destination: message for message in messages}
        for rank in sorted(sends.keys() | receives.keys()):
            steps[rank].append(_step(phase, sends.get(rank), receives.get(rank), tokens))
    return Rows(
        phase_count=len(schedule.phases),
        barriers=schedule.sync.kind == "barrier",
        rows=tuple(Row(rank, tuple(row)) for rank, row in enumerate(steps)),
    )


def _step(
    phase: int, send: Message | None, receive: Message | None, tokens: dict[Message, _Tokens]
) -> Step:
    none = _Tokens()
    sent = none if send is None else tokens.get(send, none)
    received = none if receive is None else tokens.get(receive, none)
    return Step(
        phase=phase,
        send_to=None if send is None else send.destination,
        receive_from=None if receive is None else receive.source,
        await_from=tuple(sent.await_from),
        after_send=tuple(sent.by_sender),
        after_receive=tuple(received.by_receiver),
    )
