"""The messages of a call as a time line: by phases or steps, and on the links of the network."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagegen.inspection.series import Call, Series
from stagegen.inspection.trace import NO_DATA, EventType
from stagegen.topology import Topology
from stagegen.topology.host_names import host_named

#: In place of the phase of a message that is of none, in a call that has phases.
OUTSIDE = -1


@dataclass(frozen=True)
class Message:
    """A message of a call.

    Attributes:
        sender: rank in the communicator.
        receiver: likewise.
        step: the phase of a schedule, or :data:`OUTSIDE`; in a call without phases, how many
            messages the sender had begun before.
        start: when its send began; seconds of the reference clock.
        end: when its receive had ended.
    """

    sender: int
    receiver: int
    step: int
    start: float
    end: float


def messages_of(call: Call) -> list[Message]:
    """Return the messages of a call by their starts.

    If the call has phases, these are the messages of phases, and those of other parts, such as a
    gather on each host before the phases. Tokens and dummies do not count then.
    """
    if has_phases(call):
        found = _pairs(call, EventType.STARTED, EventType.ARRIVED)
        found += _not_of(call, found, _pairs(call, EventType.SENT, EventType.RECEIVED, NO_DATA))
    else:
        found = _in_steps(_pairs(call, EventType.SENT, EventType.RECEIVED))
    return sorted(found, key=lambda one: (one.start, one.sender, one.receiver))


def has_phases(call: Call) -> bool:
    """Whether some of its messages are of the phases of a schedule."""
    return any(event.type is EventType.STARTED for own in call.events for event in own)


def _pairs(
    call: Call, sends: EventType, receives: EventType, but: Collection[int] = ()
) -> list[Message]:
    """Match begins of sends with ends of receives, in the order of each sender and receiver.

    Args:
        call: the call.
        sends: the type of the events where sends begin.
        receives: that of the events where receives have ended.
        but: tags of messages that are left out.
    """
    of_phases = sends is EventType.STARTED
    started: dict[tuple[int, int, int], list[float]] = defaultdict(list)
    arrived: dict[tuple[int, int, int], list[float]] = defaultdict(list)
    for rank, own in enumerate(call.events):
        for event in own:
            if event.a == rank or (not of_phases and event.b in but):
                continue
            phase = event.b if of_phases else OUTSIDE
            if event.type is sends:
                started[rank, event.a, phase].append(event.at)
            elif event.type is receives:
                arrived[event.a, rank, phase].append(event.at)
    return [
        Message(sender, receiver, phase, start, end)
        for (sender, receiver, phase), starts in started.items()
        for start, end in zip(starts, arrived[sender, receiver, phase], strict=False)
    ]


def _not_of(call: Call, phases: Iterable[Message], messages: Iterable[Message]) -> list[Message]:
    """Return the messages that are none of a phase, nor segments of one.

    What a rank sends to another after it began a phase's message to it is that message, or a
    segment of it: the last one may even leave when the others have arrived. In another part of a
    composition, it is neither.
    """
    ends = [[one.at for one in own if one.type is EventType.PART] for own in call.events]

    def place(one: Message) -> tuple[int, int, int]:
        return one.sender, one.receiver, bisect_right(ends[one.sender], one.start)

    first: dict[tuple[int, int, int], float] = {}
    for one in phases:
        first[place(one)] = min(first.get(place(one), one.start), one.start)
    return [one for one in messages if one.start < first.get(place(one), np.inf)]


def _in_steps(messages: Iterable[Message]) -> list[Message]:
    """Number the messages of each sender in their order: steps of rings, segments of pipelines."""
    counts: dict[int, int] = defaultdict(int)
    found = []
    for one in sorted(messages, key=lambda one: one.start):
        found.append(Message(one.sender, one.receiver, counts[one.sender], one.start, one.end))
        counts[one.sender] += 1
    return found


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of spans."""
    total, until = 0.0, -np.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return float(total)


@dataclass(frozen=True)
class Step:
    """The messages of a phase or a step, over the calls of a series.

    Attributes:
        number: of the phase or step; :data:`OUTSIDE` for all messages outside of phases.
        messages: how many there are in a call, in the mean.
        start: mean start of its first message, from the last arrival on; seconds.
        end: mean end of its last message.
        took: mean time of a message.
        greatest: the mean of each call's longest message.
    """

    number: int
    messages: float
    start: float
    end: float
    took: float
    greatest: float

    @property
    def title(self) -> str:
        """The step's number, or that its messages are outside of the phases."""
        return "outside" if self.number == OUTSIDE else str(self.number)


@dataclass(frozen=True, eq=False)
class StepFindings:
    """What a series of calls tells by steps.

    Attributes:
        series: the calls.
        steps: by number.
        idle: of each rank, the mean share of its call in which no message from it or for it was
            on its way.
        shown: the call of median length.
        has_phases: whether steps are phases of a schedule.
    """

    series: Series
    steps: tuple[Step, ...]
    idle: tuple[float, ...]
    shown: int
    has_phases: bool

    def to_json(self) -> dict[str, Any]:
        """Return what the calls tell by steps."""
        return {
            "phases": self.has_phases,
            "steps": [
                {
                    "step": None if one.number == OUTSIDE else one.number,
                    "messages": one.messages,
                    "start_s": one.start,
                    "end_s": one.end,
                    "message_s": one.took,
                    "longest_message_s": one.greatest,
                }
                for one in self.steps
            ],
            "idle": list(self.idle),
        }


def step_findings(series: Series, most: int = 500) -> StepFindings | None:
    """Return what the messages of a series tell; None if it has none.

    Args:
        series: the calls.
        most: how many of them are looked at, the latest.
    """
    rows: dict[int, list[tuple[int, float, float, float, float]]] = defaultdict(list)
    idle: list[list[float]] = []
    phases = False
    chosen = range(max(0, len(series) - most), len(series))
    for number in chosen:
        call = series.call(number)
        phases = phases or has_phases(call)
        messages = messages_of(call)
        last = max(call.begun)
        by_step: dict[int, list[Message]] = defaultdict(list)
        spans: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for one in messages:
            by_step[one.step].append(one)
            spans[one.sender].append((one.start, one.end))
            spans[one.receiver].append((one.start, one.end))
        for step, own in by_step.items():
            took = [one.end - one.start for one in own]
            start, end = min(o.start for o in own) - last, max(o.end for o in own) - last
            rows[step].append((len(own), start, end, float(np.mean(took)), max(took)))
        idle.append(
            [
                max(0.0, 1 - covered(_within(spans[rank], begun, ended)) / (ended - begun))
                if ended > begun
                else 0.0
                for rank, (begun, ended) in enumerate(zip(call.begun, call.ended, strict=True))
            ]
        )
    if not rows:
        return None
    steps = [Step(step, *np.mean(rows[step], axis=0).tolist()) for step in sorted(rows)]
    lengths = series.ended.max(axis=1) - series.begun.max(axis=1)
    shown = int(np.argsort(lengths, kind="stable")[len(lengths) // 2])
    shares = tuple(np.mean(idle, axis=0).tolist())
    return StepFindings(series, tuple(steps), shares, shown, phases)


def _within(
    spans: Sequence[tuple[float, float]], begun: float, ended: float
) -> list[tuple[float, float]]:
    clipped = [(max(start, begun), min(end, ended)) for start, end in spans]
    return [(start, end) for start, end in clipped if end > start]


@dataclass(frozen=True)
class LinkUse:
    """An edge of the network in a call.

    Attributes:
        name: from where to where.
        spans: when messages were on their way over it, merged; seconds of the reference clock.
        messages: how many.
        idle: share of the time from the first start to the last end without a message.
    """

    name: str
    spans: tuple[tuple[float, float], ...]
    messages: int
    idle: float


def link_uses(call: Call, hosts: Sequence[str], topology: Topology) -> list[LinkUse]:
    """Return the use of each edge that messages of a call took, the least idle first.

    Args:
        call: the call.
        hosts: of the communicator's ranks.
        topology: has these hosts, by :func:`~stagegen.topology.host_names.host_named`; messages of
            others are left out.
    """
    places = {host: place for place, host in reversed(list(enumerate(topology.ranks)))}
    position = {
        host: places[name]
        for host in dict.fromkeys(hosts)
        if (name := host_named(topology, host)) in places
    }
    on: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    messages = messages_of(call)
    for one in messages:
        ends = hosts[one.sender], hosts[one.receiver]
        if ends[0] != ends[1] and all(end in position for end in ends):
            for edge in topology.path(position[ends[0]], position[ends[1]]):
                on[edge].append((one.start, one.end))
    if not on:
        return []
    first, last = min(one.start for one in messages), max(one.end for one in messages)
    whole = last - first
    found = [
        LinkUse(
            f"{a} → {b}",
            tuple(_merged(spans)),
            len(spans),
            1 - covered(spans) / whole if whole > 0 else 0.0,
        )
        for (a, b), spans in on.items()
    ]
    return sorted(found, key=lambda use: (use.idle, use.name))


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found
