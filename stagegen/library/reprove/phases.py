"""Rebuilds the schedules of an alltoall in phases from the tables of its C file.

What the tables mean is said in ``templates/alltoall/_aapc.c.j2``. Three things that a proof needs
are not in them, and the scheduler is asked for them: the root, the order of messages within a
phase, and which syncs need no token. None is trusted. The checker checks the root. The order is
used only if it is of the same messages, and whatever order is used, the messages on a link must be
found kept apart. A sync without a token is true in any case, if it is one: a rank ends each step
before the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from stagegen.errors import ScheduleError
from stagegen.library.reprove.c_file import CFile
from stagegen.library.reprove.scheme import scheme_kind
from stagegen.schedule import SCHEMES, Message, PhaseSchedule, Sync, SyncGraph
from stagegen.schedule.alltoall import alltoall_phases, with_sync
from stagegen.topology import Topology

_NOBODY = -1
_Row = Mapping[str, int]


@dataclass(frozen=True)
class _Token:
    """A token, as either of its ends tells it."""

    giver: int
    taker: int
    first_phase: int
    then_phase: int
    windows: int


@dataclass(frozen=True)
class _Step:
    """A row of steps[] with its tokens."""

    rank: int
    fields: _Row
    awaited: tuple[_Row, ...] = ()
    owed: tuple[_Row, ...] = ()

    @property
    def phase(self) -> int:
        return self.fields["PHASE"]


def phase_schedules(
    topology: Topology, c_file: CFile, block_sizes: frozenset[int]
) -> Iterator[tuple[str, PhaseSchedule]]:
    """Yield a schedule, with a label, for each size of blocks or window that the routine has.

    Args:
        topology: whose positions the tables are of.
        c_file: the routine.
        block_sizes: that the folder uses.

    Raises:
        ScheduleError: the tables contradict themselves; names rank, phase and message.
    """
    kind = scheme_kind(c_file)
    scheme = SCHEMES[kind]
    steps = list(_steps(topology, c_file))
    plain = _without_syncs(topology, c_file, steps)
    tokens = _tokens(plain, steps, scheme.giver or "sender")
    every = chain.from_iterable(_bits(token.windows) for token in tokens)
    windows = sorted(set(every)) if "WINDOWS" in c_file.fields.get("token_field", ()) else [1]
    for block_size in sorted(block_sizes or {1}) if scheme.blocks else [1]:
        for window in windows:
            graph = SyncGraph(kind, (), block_size, window)
            chosen = [
                token
                for token in tokens
                if token.windows >> (window - 1) & 1
                and scheme.keeps(token.first_phase, token.then_phase, block_size)
            ]
            label = f"block_size {block_size}" if scheme.blocks else ""
            label = f"window {window}" if len(windows) > 1 else label
            yield label, _with_syncs(topology, plain, graph, chosen)


def _bits(windows: int) -> Iterator[int]:
    return (bit + 1 for bit in range(windows.bit_length()) if windows >> bit & 1)


def _steps(topology: Topology, c_file: CFile) -> Iterator[_Step]:
    """Yield every step of every rank with its tokens."""
    rows = _rows(c_file, "steps", "step_field")
    first = c_file.array("first_step")
    tokens, first_token = _token_rows(c_file)
    ranks = topology.rank_count
    if len(first) != ranks + 1 or list(first) != sorted(first) or first[-1] > len(rows):
        raise ScheduleError(f"first_step[] does not divide the steps among {ranks} ranks")
    for rank in range(ranks):
        at = first_token[rank] if first_token else 0
        owed_by_rank = 0
        for fields in rows[first[rank] : first[rank + 1]]:
            awaited, owed = fields.get("AWAITED", 0), fields.get("OWED", 0)
            step = _Step(
                rank, fields, tuple(tokens[at : at + awaited]), tuple(tokens[at + awaited :][:owed])
            )
            _check_room(c_file, step, awaited, owed_by_rank := owed_by_rank + owed)
            at += awaited + owed
            yield step
        if first_token and at != first_token[rank + 1]:
            raise ScheduleError(f"rank {rank}: first_token[] does not fit its steps")


def _check_room(c_file: CFile, step: _Step, awaited: int, owed: int) -> None:
    """Check that the program's arrays of requests are long enough."""
    if awaited > c_file.constants.get("AWAITED_MOST", 0):
        raise ScheduleError(f"rank {step.rank}, phase {step.phase}: more tokens than AWAITED_MOST")
    if owed > c_file.constants.get("OWED_MOST", 0):
        raise ScheduleError(f"rank {step.rank}, phase {step.phase}: more tokens than OWED_MOST")


def _token_rows(c_file: CFile) -> tuple[list[_Row], tuple[int, ...]]:
    if "token_field" not in c_file.fields:
        return [], ()
    return _rows(c_file, "tokens", "token_field"), c_file.array("first_token")


def _rows(c_file: CFile, array: str, fields: str) -> list[_Row]:
    *names, last = c_file.fields.get(fields, ("",))
    numbers = c_file.array(array)
    if not names or not last.endswith("_FIELDS") or len(numbers) % len(names):
        raise ScheduleError(f"{array}[] is no table of enum {fields}")
    width = len(names)
    return [
        dict(zip(names, numbers[i : i + width], strict=True)) for i in range(0, len(numbers), width)
    ]


def _without_syncs(topology: Topology, c_file: CFile, steps: list[_Step]) -> PhaseSchedule:
    """Return the phases that the steps of all ranks make together."""
    count = c_file.constants.get("PHASES", 0)
    hint = alltoall_phases(topology)
    phases = _messages(steps, count, "TO", "FROM")
    if len(hint.phases) == count:
        ordered = zip(phases, hint.phases, strict=True)
        phases = [like if set(like) == set(own) else own for own, like in ordered]
    has_dummies = any("DUMMY_TO" in step.fields for step in steps)
    dummies = _messages(steps, count, "DUMMY_TO", "DUMMY_FROM") if has_dummies else []
    return replace(hint, phases=tuple(phases), dummies=tuple(dummies), sync=SyncGraph("none"))


def _messages(steps: list[_Step], count: int, to: str, source: str) -> list[tuple[Message, ...]]:
    """Return the messages of each phase, on which senders and receivers must agree."""
    sent: list[set[Message]] = [set() for _ in range(count)]
    received: list[set[Message]] = [set() for _ in range(count)]
    last: dict[int, int] = {}
    for step in steps:
        if not last.get(step.rank, -1) < step.phase < count:
            raise ScheduleError(f"rank {step.rank}: phase {step.phase} is not in order")
        last[step.rank] = step.phase
        if step.fields[to] != _NOBODY:
            sent[step.phase].add(Message(step.rank, step.fields[to]))
        if step.fields[source] != _NOBODY:
            received[step.phase].add(Message(step.fields[source], step.rank))
    for phase, (given, taken) in enumerate(zip(sent, received, strict=True)):
        for message in sorted(given - taken):
            raise ScheduleError(
                f"rank {message.source}, phase {phase}: sends {message}, "
                f"but rank {message.destination} does not receive it"
            )
        for message in sorted(taken - given):
            raise ScheduleError(
                f"rank {message.destination}, phase {phase}: receives {message}, "
                f"but rank {message.source} does not send it"
            )
    return [tuple(sorted(messages)) for messages in sent]


def _tokens(schedule: PhaseSchedule, steps: list[_Step], giver: str) -> list[_Token]:
    """Return all tokens, on which their two ends must agree."""
    given, taken = set(), set()
    for step in steps:
        for row in step.owed:
            windows = row.get("WINDOWS", 1)
            given.add(_Token(step.rank, row["PEER"], step.phase, row["OTHER_PHASE"], windows))
        for row in step.awaited:
            windows = row.get("WINDOWS", 1)
            taken.add(_Token(row["PEER"], step.rank, row["OTHER_PHASE"], step.phase, windows))
    for token in sorted(given ^ taken, key=lambda t: (t.then_phase, t.taker, t.giver)):
        has, lacks = ("gives", "await") if token in given else ("awaits", "give")
        rank, other = (token.giver, token.taker)[:: 1 if token in given else -1]
        phase, peer_phase = (token.first_phase, token.then_phase)[:: 1 if token in given else -1]
        raise ScheduleError(
            f"rank {rank}, phase {phase}: {has} a token that rank {other} does not {lacks} "
            f"in phase {peer_phase}"
        )
    return sorted(given, key=lambda t: (t.then_phase, t.taker, t.first_phase, t.giver))


def _with_syncs(
    topology: Topology, schedule: PhaseSchedule, graph: SyncGraph, tokens: list[_Token]
) -> PhaseSchedule:
    """Return the schedule with the syncs of its tokens, and those that need none."""
    scheme = SCHEMES[graph.kind]
    if scheme.giver is None:
        return replace(schedule, sync=graph)
    sent = [{m.source: m for m in phase} for phase in schedule.phases]
    ended = sent
    if scheme.giver == "receiver":
        ended = [{m.destination: m for m in phase} for phase in schedule.phases]
    syncs = []
    for token in tokens:
        first = _message(ended, token.first_phase, token.giver)
        then = _message(sent, token.then_phase, token.taker)
        syncs.append(Sync(first, then, (token.giver, token.taker)))
    silent = with_sync(topology, schedule, graph.kind, graph.block_size, graph.window).sync.syncs
    syncs += (sync for sync in silent if sync.token is None)
    return replace(schedule, sync=replace(graph, syncs=_in_order(schedule, syncs)))


def _message(of_rank: list[dict[int, Message]], phase: int, rank: int) -> Message:
    message = of_rank[phase].get(rank) if 0 <= phase < len(of_rank) else None
    if message is None:
        raise ScheduleError(f"rank {rank}, phase {phase}: a token is about a message that is not")
    return message


def _in_order(schedule: PhaseSchedule, syncs: list[Sync]) -> tuple[Sync, ...]:
    """Return the syncs by the phase of `then`, its place there, and the phase of `first`."""
    place: dict[Message, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for phase, messages in enumerate(schedule.phases):
        place.update((message, (phase, at)) for at, message in enumerate(messages))
    return tuple(sorted(syncs, key=lambda sync: (place[sync.then], place[sync.first])))
