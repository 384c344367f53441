"""Rebuilds the schedule of an alltoallv's pattern from the tables of its routine.

``docs/interfaces.md`` (Generated C tables) says what the tables mean. No scheduler takes part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stagegen.audit.routine import BuildRoutine
from stagegen.audit.scheme import check_room, phase_count, scheme_name
from stagegen.audit.steps import Step, read_steps
from stagegen.audit.tables import NOBODY, Record, Tables
from stagegen.errors import ScheduleError
from stagegen.schedule import PatternSchedule, Piece, Wait
from stagegen.schedule.verify.pattern import times_of
from stagegen.topology import Topology

_OF_STREAMS = ("receives_ahead", "segment_size", "tail")
#: The members of the engine's ``struct pattern``, each of which is the table of its name.
_MEMBERS = ("schedule", "parts")


def pattern_schedule_of(
    topology: Topology, tables: Tables, routine: BuildRoutine
) -> PatternSchedule:
    """Return the schedule that a routine's tables say.

    Raises:
        ScheduleError: the tables contradict themselves; names rank, phase and message.
    """
    pattern = tables.members_of("pattern", "pattern")
    if pattern != {name: name for name in _MEMBERS}:
        found = ", ".join(f".{member} = {table}" for member, table in pattern.items())
        raise ScheduleError(f"its pattern has {found}; expected {', '.join(_MEMBERS)}")
    scheme = scheme_name(tables, routine.function)
    if scheme != "receiver":
        raise ScheduleError(f"its scheme of synchronisation is {scheme}; expected receiver")
    count = topology.rank_count
    steps = read_steps(tables, count)
    check_room(tables, steps, count)
    for name in _OF_STREAMS:
        routine.values(name)
    phases = _phases(phase_count(tables), steps, tables.records_of("parts", "pattern_step", 4))
    sizes = _sizes(tables.array("sizes"), count)
    seconds, bound = times_of(topology, sizes, phases)
    return PatternSchedule(
        topology.ranks, "segments", sizes, phases, tuple(_waits(steps, phases)), seconds, bound
    )


def _sizes(numbers: Record, count: int) -> tuple[tuple[int, ...], ...]:
    if len(numbers) != count * count or min(numbers) < 0:
        problem = f"has {len(numbers)} numbers, the least of which is {min(numbers, default=0)}"
        raise ScheduleError(f"sizes[] {problem}; expected {count * count}, none below 0")
    return tuple(numbers[row * count : (row + 1) * count] for row in range(count))


def _phases(
    count: int, steps: Sequence[Step], parts: Sequence[Record]
) -> tuple[tuple[Piece, ...], ...]:
    """Return the pieces of each phase by their places; both ends of a piece must agree."""
    if len(parts) != len(steps):
        raise ScheduleError(f"parts[] has {len(parts)} records for {len(steps)} steps")
    sent: list[dict[int | None, Piece]] = [{} for _ in range(count)]
    received: list[set[Piece]] = [set() for _ in range(count)]
    last: dict[int, int] = {}
    for step, (out, out_of, come, come_of) in zip(steps, parts, strict=True):
        if not last.get(step.rank, -1) < step.phase < count:
            allowed = f"{last.get(step.rank, -1) + 1} to {count - 1}"
            problem = f"phase {step.phase} of steps[] is not in order; expected {allowed}"
            raise ScheduleError(f"rank {step.rank}: {problem}")
        last[step.rank] = step.phase
        if step.to != NOBODY:
            sent[step.phase][step.place] = Piece(step.rank, step.to, out, out_of)
        if step.source != NOBODY:
            received[step.phase].add(Piece(step.source, step.rank, come, come_of))
    for phase, (given, taken) in enumerate(zip(sent, received, strict=True)):
        if set(given) != set(range(len(given))):
            missing = min({*range(len(given))}.difference(given))
            problem = f"no message has place {missing}, expected 0 to {len(given) - 1}"
            raise ScheduleError(f"phase {phase}: places[] does not number its messages: {problem}")
        for piece in sorted(taken.symmetric_difference(given.values())):
            sender, receiver = f"rank {piece.source}", f"rank {piece.destination}"
            problem = (
                f"{receiver} receives {piece}, but {sender} does not send it"
                if piece in taken
                else f"{sender} sends {piece}, but {receiver} does not receive it"
            )
            raise ScheduleError(f"phase {phase}: {problem}")
    messages = sum(step.to != NOBODY for step in steps)
    if sum(map(len, sent)) != messages:
        problem = f"{messages} messages have {sum(map(len, sent))} places"
        raise ScheduleError(f"places[] has a place twice: {problem}")
    return tuple(tuple(given[place] for place in range(len(given))) for given in sent)


def _waits(steps: Sequence[Step], phases: Sequence[Sequence[Piece]]) -> list[Wait]:
    """Return the tokens, on which both ends must agree."""
    to = [{piece.source: piece for piece in phase} for phase in phases]
    come = [{piece.destination: piece for piece in phase} for phase in phases]
    given: list[tuple[int, int, int, int]] = []
    taken: list[tuple[int, int, int, int]] = []
    for step in steps:
        for end in (*step.owed, *step.awaited):
            if end.windows != 1:
                problem = f"a token counts for windows {end.windows}; expected 1"
                raise ScheduleError(f"rank {step.rank}, phase {step.phase}: {problem}")
        given += [(step.rank, step.phase, end.peer, end.other_phase) for end in step.owed]
        taken += [(end.peer, end.other_phase, step.rank, step.phase) for end in step.awaited]
    gifts, waits_for = Counter(given), Counter(taken)
    for token in sorted({*gifts, *waits_for}):
        if gifts[token] != 1 or waits_for[token] != 1:
            giver, first, taker, then = token
            which = f"the token of rank {giver} in phase {first} for rank {taker} in phase {then}"
            often = f"is given {gifts[token]} times and awaited {waits_for[token]} times"
            raise ScheduleError(f"{which} {often}; expected once each")
    waits: list[Wait] = []
    for giver, first, taker, then in sorted(given, key=lambda token: (token[3], token[2], token)):
        if not (0 <= first < len(phases) and giver in come[first]):
            raise ScheduleError(f"rank {giver}, phase {first}: gives a token for no message")
        if not (0 <= then < len(phases) and taker in to[then]):
            raise ScheduleError(f"rank {taker}, phase {then}: awaits a token for no message")
        waits.append(Wait(come[first][giver], to[then][taker]))
    return waits
