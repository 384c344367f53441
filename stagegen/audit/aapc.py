"""Rebuilds the schedules of an alltoall in phases from its file of tables.

``docs/interfaces.md`` (Generated C tables) says what the tables mean. No scheduler takes part. The
tables name no root, so any root that the checker accepts will do: one whose largest subtree is as
small as possible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil

from stagegen.audit.routine import BuildRoutine
from stagegen.audit.scheme import check_room, phase_count, scheme_name
from stagegen.audit.steps import Step, TokenEnd, read_steps
from stagegen.audit.tables import NOBODY, Tables
from stagegen.errors import ScheduleError
from stagegen.schedule import Message, PhaseSchedule, Sync, SyncGraph
from stagegen.schedule.verify.checked_schemes import CHECKED_SCHEMES, CheckedScheme
from stagegen.schedule.verify.links import Links
from stagegen.schedule.verify.paths import Network
from stagegen.topology import Topology

_WINDOWS_MOST = 31
"""Bits of an int that a program can shift down."""

_OF_STREAMS = ("receives_ahead", "segment_size", "tail")
"""The parameters of every program with tokens from receivers."""


@dataclass(frozen=True)
class _Token:
    """A token, as either of its ends describes it."""

    giver: int
    taker: int
    first_phase: int
    then_phase: int
    windows: int


def phase_schedules(
    topology: Topology, tables: Tables, routine: BuildRoutine
) -> Iterator[tuple[str, PhaseSchedule]]:
    """Yield a schedule, with a label, for each size of blocks or window that the routine has.

    These are the sizes and windows that the folder calls it with, and the windows of tokens.

    Args:
        topology: of the positions in the tables.
        tables: of the routine.
        routine: how it is called.

    Raises:
        ScheduleError: the tables contradict themselves; names rank, phase and message.
    """
    name = scheme_name(tables, routine.function)
    scheme, network = CHECKED_SCHEMES[name], Network(topology)
    links = Links(topology, network)
    steps = read_steps(tables, topology.rank_count)
    if scheme.giver is not None:
        check_room(tables, steps, topology.rank_count)
    for parameter in _OF_STREAMS if scheme.giver == "receiver" else ():
        routine.values(parameter)
    if scheme.giver is not None and not links.equal:
        tables.array("places")  # the order of the messages of a phase matters
    plain = _without_syncs(topology, tables, steps, network, links)
    windowed = "window" in routine.parameters
    tokens = _tokens(steps, _WINDOWS_MOST if windowed else 1)
    syncs = [_sync(plain, token, scheme.giver) for token in tokens]
    sizes = routine.values("block_size") if scheme.blocks else [1]
    windows = _windows(tokens, routine) if windowed else [1]
    for size, window in ((size, window) for size in sizes for window in windows):
        chosen = tuple(
            sync
            for sync, token in zip(syncs, tokens, strict=True)
            if token.windows >> (window - 1) & 1
            and _keeps(scheme, token.first_phase, token.then_phase, size)
        )
        if scheme.giver == "sender":
            chosen += tuple(_known_to_senders(plain, scheme, size))
        label = f"block_size {size}" if scheme.blocks else f"window {window}" if windowed else ""
        yield label, replace(plain, sync=SyncGraph(name, chosen, size, window))


def _known_to_senders(
    schedule: PhaseSchedule, scheme: CheckedScheme, block_size: int
) -> Iterator[Sync]:
    """Yield the syncs that need no token: a rank knows that its own last send is complete."""
    sent: dict[int, list[tuple[int, Message]]] = defaultdict(list)
    for phase, messages in enumerate(schedule.phases):
        for message in messages:
            sent[message.source].append((phase, message))
    for own in sent.values():
        for (early, first), (late, then) in pairwise(own):
            if _keeps(scheme, early, late, block_size):
                yield Sync(first, then, None)


def _keeps(scheme: CheckedScheme, early: int, late: int, block_size: int) -> bool:
    """Tell whether a scheme has a sync between messages of two phases."""
    within = early // block_size == late // block_size
    return not scheme.blocks or (scheme.inside if within else scheme.apart)


def _windows(tokens: Sequence[_Token], routine: BuildRoutine) -> list[int]:
    """Return the windows that tokens belong to, and those that the routine is called with."""
    used = 0
    for token in tokens:
        used |= token.windows
    bits = {bit + 1 for bit in range(used.bit_length()) if used >> bit & 1}
    return sorted(bits.union(routine.values("window", most=_WINDOWS_MOST)))


def _without_syncs(
    topology: Topology, tables: Tables, steps: Sequence[Step], network: Network, links: Links
) -> PhaseSchedule:
    """Return the phases that the steps of all ranks make together."""
    count = phase_count(tables)
    last = max((step.phase for step in steps), default=-1)
    slowest = min(links.capacity, default=Fraction(1))
    if not last < count <= last + 1 + ceil(1 / slowest):
        raise ScheduleError(f"schedule.phases is {count}, but the last phase of steps[] is {last}")
    _check_phases(steps)
    phases = _messages(count, ((step, step.to, step.source) for step in steps))
    dummies: Sequence[set[Message]] = ()
    if "dummies" in tables.records:
        ends = ((step, step.dummy_to, step.dummy_source) for step in steps)
        dummies = _messages(count, ends)
    root, subtrees = _root(topology, network)
    return PhaseSchedule(
        ranks=topology.ranks,
        root=root,
        subtrees=subtrees,
        bound_phases=links.bound(),
        phases=tuple(_placed(steps, phases)),
        sync=SyncGraph("none"),
        dummies=tuple(map(tuple, map(sorted, dummies))),
    )


def _root(topology: Topology, network: Network) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """Return a node whose largest branch is as small as possible, and its branches by size."""
    shared = sorted(host for host, ranks in Counter(topology.ranks).items() if ranks > 1)
    names = [switch.name for switch in topology.switches] + shared
    branches = {name: sorted(network.branches(name), key=lambda b: (-len(b), b)) for name in names}
    root = min(names, key=lambda name: len(branches[name][0]))
    return root, tuple(branches[root])


def _check_phases(steps: Sequence[Step]) -> None:
    last: dict[int, int] = {}
    for step in steps:
        if not last.get(step.rank, -1) < step.phase:
            least = last.get(step.rank, -1) + 1
            problem = f"phase {step.phase} of steps[] is not in order; expected {least} or more"
            raise ScheduleError(f"rank {step.rank}: {problem}")
        last[step.rank] = step.phase


def _messages(count: int, ends: Iterable[tuple[Step, int, int]]) -> list[set[Message]]:
    """Return the messages of each phase, on which senders and receivers must agree.

    Args:
        count: how many phases there are.
        ends: steps, each with the rank that it sends to and the rank that it receives from.
    """
    sent: list[set[Message]] = [set() for _ in range(count)]
    received: list[set[Message]] = [set() for _ in range(count)]
    for step, to, source in ends:
        if to != NOBODY:
            sent[step.phase].add(Message(step.rank, to))
        if source != NOBODY:
            received[step.phase].add(Message(source, step.rank))
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
    return sent


def _placed(steps: Sequence[Step], phases: Sequence[set[Message]]) -> Iterator[tuple[Message, ...]]:
    """Yield the messages of each phase by their places, or by ranks if they have none."""
    if not steps or steps[0].place is None:
        yield from map(tuple, map(sorted, phases))
        return
    places: list[dict[int | None, Message]] = [{} for _ in phases]
    for step in steps:
        if step.to != NOBODY:
            places[step.phase][step.place] = Message(step.rank, step.to)
        elif step.place != NOBODY:
            raise ScheduleError(f"rank {step.rank}, phase {step.phase}: a place without a message")
    for phase, (at, messages) in enumerate(zip(places, phases, strict=True)):
        if set(at) != set(range(len(messages))):
            missing = min({*range(len(messages))}.difference(at))
            problem = f"no message has place {missing}, expected 0 to {len(messages) - 1}"
            raise ScheduleError(f"phase {phase}: places[] does not number its messages: {problem}")
        yield tuple(at[place] for place in range(len(messages)))


def _tokens(steps: Sequence[Step], most: int) -> list[_Token]:
    """Return all tokens, on which their two ends must agree.

    Args:
        steps: of all ranks.
        most: the largest window that a token may count for.
    """
    given: Counter[_Token] = Counter()
    taken: Counter[_Token] = Counter()
    for step in steps:
        for end in step.owed:
            windows = _windows_of(step, end, most)
            given[_Token(step.rank, end.peer, step.phase, end.other_phase, windows)] += 1
        for end in step.awaited:
            windows = _windows_of(step, end, most)
            taken[_Token(end.peer, step.rank, end.other_phase, step.phase, windows)] += 1
    for token in sorted((given - taken) + (taken - given), key=_by_phase):
        has, lacks = ("gives", "await") if given[token] > taken[token] else ("awaits", "give")
        told = [(token.giver, token.first_phase), (token.taker, token.then_phase)]
        (rank, phase), (other, other_phase) = told if has == "gives" else told[::-1]
        raise ScheduleError(
            f"rank {rank}, phase {phase}: {has} a token that rank {other} does not {lacks} "
            f"in phase {other_phase}"
        )
    for token in (token for token, times in given.items() if times > 1):
        raise ScheduleError(f"rank {token.giver}, phase {token.first_phase}: gives a token twice")
    return sorted(given, key=_by_phase)


def _windows_of(step: Step, token: TokenEnd, most: int) -> int:
    if not 0 < token.windows < 1 << most:
        raise ScheduleError(
            f"rank {step.rank}, phase {step.phase}: a token counts for windows {token.windows}; "
            f"expected 1 to {(1 << most) - 1}"
        )
    return token.windows


def _by_phase(token: _Token) -> tuple[int, int, int, int]:
    return token.then_phase, token.taker, token.first_phase, token.giver


def _sync(schedule: PhaseSchedule, token: _Token, giver: str | None) -> Sync:
    """Return the two messages of a token."""
    first = _message(schedule, token.first_phase, token.giver, giver == "receiver")
    then = _message(schedule, token.then_phase, token.taker, False)
    return Sync(first, then, (token.giver, token.taker))


def _message(schedule: PhaseSchedule, phase: int, rank: int, received: bool) -> Message:
    messages = schedule.phases[phase] if 0 <= phase < len(schedule.phases) else ()
    for message in messages:
        if message[received] == rank:
            return message
    raise ScheduleError(f"rank {rank}, phase {phase}: a token names a message that does not exist")
