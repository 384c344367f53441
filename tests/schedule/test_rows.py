"""Carries out the rows of a schedule as a program would, in any order that is allowed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.data import TOPOLOGIES
from stagegen.errors import ScheduleError
from stagegen.schedule import SCHEME_NAMES, SCHEMES, Message, Rows, Step, Token, schedule_rows
from stagegen.schedule.alltoall.schedule import alltoall_phases, with_sync
from stagegen.topology import load_topology
from tests.strategies import oracle_paths, topologies

GIVERS = sorted(name for name, scheme in SCHEMES.items() if scheme.giver)
BLOCKS = sorted(name for name, scheme in SCHEMES.items() if scheme.blocks)
NO_CONTENTION = {"receiver", "sender", "barrier", "barrier-partial-receiver"}
clusters = topologies(max_hosts=9, max_switches=5, max_ranks=10)


def filtered(rows: Rows, block_size: int = 1, window: int = 1) -> Rows:
    """What a program leaves of a table for a size of blocks and a window."""

    def counts(step: Step, token: Token) -> bool:
        same = step.phase // block_size == token.phase // block_size
        in_block = not rows.scheme.blocks or same == rows.scheme.barriers
        return in_block and bool(token.windows >> (window - 1) & 1)

    def left(step: Step) -> Step:
        kept = {
            name: tuple(Token(t.peer, t.phase) for t in getattr(step, name) if counts(step, t))
            for name in ("await_from", "owed")
        }
        return step._replace(**kept)

    return replace(rows, rows=tuple(tuple(map(left, row)) for row in rows.rows))


class Machine:
    """Ranks that follow their rows; a send is under way until its receive takes it."""

    def __init__(self, rows: Rows, block_size: int, rng: random.Random):
        self.rows, self.rng = rows, rng
        self.block_size = block_size if rows.scheme.blocks else 1
        count = len(rows.rows)
        self.place = [-1] * count  # the index of the step that each rank is in
        self.started = [False] * count
        self.open: list[set[str]] = [set() for _ in range(count)]
        self.tokens: Counter[tuple[int, int]] = Counter()
        self.under_way: set[Message] = set()
        self.delivered: list[Message] = []
        self.most_contention = 0
        for rank in range(count):
            self.go_on(rank)

    def go_on(self, rank: int) -> None:
        """Enter the next step with a message; dummies come and go with their phase."""
        self.place[rank] += 1
        while self.step(rank) is not None and not self.duties(rank):
            self.place[rank] += 1
        self.started[rank] = False
        self.open[rank] = self.duties(rank)

    def step(self, rank: int) -> Step | None:
        steps = self.rows.rows[rank]
        return steps[self.place[rank]] if self.place[rank] < len(steps) else None

    def duties(self, rank: int) -> set[str]:
        step = self.step(rank)
        if step is None:
            return set()
        send = {"send"} if step.send_to is not None else set()
        return send | ({"receive"} if step.receive_from is not None else set())

    def block(self, step: Step) -> int:
        return step.phase // self.block_size

    def reached(self, rank: int) -> bool:
        """With barriers, a rank starts a block when no rank has work left in an earlier one."""
        if not self.rows.scheme.barriers:
            return True
        blocks = [self.block(step) for r in range(len(self.place)) if (step := self.step(r))]
        return self.block(self.step(rank)) == min(blocks)

    def can_start(self, rank: int) -> bool:
        step = self.step(rank)
        if step is None or step.send_to is None or self.started[rank]:
            return False
        awaited = Counter(token.peer for token in step.await_from)
        told = all(self.tokens[giver, rank] >= number for giver, number in awaited.items())
        return told and self.reached(rank)

    def can_deliver(self, message: Message) -> bool:
        step = self.step(message.destination)
        return (
            step is not None
            and step.receive_from == message.source
            and "receive" in self.open[message.destination]
            and self.reached(message.destination)
        )

    def start(self, rank: int) -> None:
        step = self.step(rank)
        for token in step.await_from:
            self.tokens[token.peer, rank] -= 1
        self.started[rank] = True
        self.under_way.add(Message(rank, step.send_to))

    def deliver(self, message: Message) -> None:
        self.under_way.remove(message)
        self.delivered.append(message)
        giver = message.source if self.rows.scheme.giver == "sender" else message.destination
        for token in self.step(giver).owed:
            self.tokens[giver, token.peer] += 1
        self.open[message.source].discard("send")
        self.open[message.destination].discard("receive")
        for rank in message:
            if not self.open[rank]:
                self.go_on(rank)

    def run(self, paths) -> None:
        while True:
            actions = [
                (self.start, rank) for rank in range(len(self.place)) if self.can_start(rank)
            ]
            actions += [(self.deliver, m) for m in sorted(self.under_way) if self.can_deliver(m)]
            if not actions:
                return
            action, subject = self.rng.choice(actions)
            action(subject)
            edges = Counter(edge for message in self.under_way for edge in paths[message])
            self.most_contention = max(self.most_contention, *edges.values(), 0)


class StreamMachine:
    """Ranks with a stream of sends and one of receives; nothing is waited for but tokens.

    A send is under way until its receive takes it. A rank starts its next one meanwhile, as a
    program does whose send is complete when the kernel has its bytes.
    """

    def __init__(self, rows: Rows, block_size: int, rng: random.Random):
        self.rng, self.ahead = rng, rng.randint(1, 3)
        self.block_size = block_size if rows.scheme.barriers else None
        self.sends = [[s for s in row if s.send_to is not None] for row in rows.rows]
        self.receives = [[s for s in row if s.receive_from is not None] for row in rows.rows]
        self.sent = [0] * len(rows.rows)
        self.paid = [0] * len(rows.rows)
        self.tokens: Counter[tuple[int, int]] = Counter()
        self.under_way: set[Message] = set()
        self.delivered: list[Message] = []
        self.most_contention = 0

    def step(self, rank: int) -> Step | None:
        left = self.sends[rank][self.sent[rank] :] + self.receives[rank][self.paid[rank] :]
        return left[0] if left else None

    def reached(self, step: Step) -> bool:
        if self.block_size is None:
            return True
        places = zip(self.receives, self.paid, strict=True)
        waiting = [steps[paid].phase for steps, paid in places if paid < len(steps)]
        return step.phase // self.block_size <= min(waiting) // self.block_size

    def can_start(self, rank: int) -> bool:
        if self.sent[rank] == len(self.sends[rank]):
            return False
        step = self.sends[rank][self.sent[rank]]
        awaited = Counter(token.peer for token in step.await_from)
        told = all(self.tokens[giver, rank] >= number for giver, number in awaited.items())
        return told and self.reached(step)

    def start(self, rank: int) -> None:
        step = self.sends[rank][self.sent[rank]]
        for token in step.await_from:
            self.tokens[token.peer, rank] -= 1
        self.sent[rank] += 1
        self.under_way.add(Message(rank, step.send_to))

    def posted(self, rank: int) -> list[Step]:
        return self.receives[rank][self.paid[rank] :][: self.ahead]

    def can_deliver(self, message: Message) -> bool:
        posted = self.posted(message.destination)
        return any(s.receive_from == message.source and self.reached(s) for s in posted)

    def deliver(self, message: Message) -> None:
        self.under_way.remove(message)
        self.delivered.append(message)
        rank = message.destination
        for step in self.posted(rank):
            if Message(step.receive_from, rank) not in self.delivered:
                break
            for token in step.owed:
                self.tokens[rank, token.peer] += 1
            self.paid[rank] += 1

    run = Machine.run

    @property
    def place(self) -> list[int]:
        return self.sent


def carry_out(topology, scheme_name: str, block_size: int, window: int, seed: int) -> Machine:
    phases = alltoall_phases(topology)
    scheme = SCHEMES[scheme_name]
    windows = range(1, window + 1) if scheme.giver else [1]
    every = len(phases.phases) + 1 if scheme.blocks and scheme.barriers else 1
    table = schedule_rows(*(with_sync(topology, phases, scheme_name, every, w) for w in windows))
    rows = filtered(table, block_size, windows[-1])
    made = StreamMachine if scheme.giver == "receiver" else Machine
    machine = made(rows, block_size, random.Random(seed))
    machine.run(oracle_paths(topology))
    return machine


@given(clusters, st.sampled_from(SCHEME_NAMES), st.integers(1, 5), st.integers(1, 3), st.integers())
def test_rows_deliver_everything_and_never_block(topology, scheme_name, block_size, window, seed):
    machine = carry_out(topology, scheme_name, block_size, window, seed)
    count = topology.rank_count
    assert sorted(machine.delivered) == [
        (a, b) for a in range(count) for b in range(count) if a != b
    ]
    assert all(step is None for step in map(machine.step, range(count)))
    assert not +machine.tokens, "tokens that no rank waits for"
    if scheme_name in NO_CONTENTION:
        assert machine.most_contention <= (window if SCHEMES[scheme_name].giver else 1)


def test_without_synchronisation_messages_do_meet():
    topology = load_topology(TOPOLOGIES / "chain-4x4-cyclic.yaml")
    assert carry_out(topology, "none", 1, 1, 1).most_contention > 1


@given(topologies(), st.sampled_from(SCHEME_NAMES))
def test_rows_hold_the_schedule(topology, scheme_name):
    schedule = with_sync(topology, alltoall_phases(topology), scheme_name)
    rows = schedule_rows(schedule)
    assert rows.phase_count == len(schedule.phases)
    assert rows.scheme == SCHEMES[scheme_name]
    assert len(rows.rows) == topology.rank_count
    messages: dict[str, list] = {name: [] for name in ("to", "from", "dummy to", "dummy from")}
    tokens = 0
    for rank, row in enumerate(rows.rows):
        assert [s.phase for s in row] == sorted({s.phase for s in row})
        for step in row:
            tokens += len(step.owed) - len(step.await_from)
            for name, source, destination in (
                ("to", rank, step.send_to),
                ("from", step.receive_from, rank),
                ("dummy to", rank, step.dummy_to),
                ("dummy from", step.dummy_from, rank),
            ):
                if None not in (source, destination):
                    messages[name].append((step.phase, source, destination))
    placed = sorted((p, *m) for p, phase in enumerate(schedule.phases) for m in phase)
    dummies = sorted((p, *m) for p, phase in enumerate(schedule.dummies) for m in phase)
    assert sorted(messages["to"]) == sorted(messages["from"]) == placed
    assert sorted(messages["dummy to"]) == sorted(messages["dummy from"]) == dummies
    assert tokens == 0


@given(clusters, st.sampled_from(BLOCKS), st.integers(1, 12))
def test_a_table_with_all_tokens_has_those_of_each_size_of_blocks(
    topology, scheme_name, block_size
):
    """Leaving out by phases gives what the scheme has with blocks of that size."""
    phases = alltoall_phases(topology)
    scheme = SCHEMES[scheme_name]
    every = len(phases.phases) + 1 if scheme.blocks and scheme.barriers else 1
    table = schedule_rows(with_sync(topology, phases, scheme_name, every))
    wanted = schedule_rows(with_sync(topology, phases, scheme_name, block_size))
    assert filtered(table, block_size) == wanted


@given(clusters, st.sampled_from(["sender", "receiver"]))
def test_a_table_of_several_windows_has_those_of_each(topology, scheme_name):
    phases = alltoall_phases(topology)
    schedules = {
        window: with_sync(topology, phases, scheme_name, window=window) for window in (1, 2, 4)
    }
    table = schedule_rows(*schedules.values())
    for window, schedule in schedules.items():
        wanted = filtered(schedule_rows(schedule), window=window)
        assert filtered(table, window=window) == wanted


def test_a_row_of_the_example_has_the_steps_made_by_hand():
    topology = load_topology(TOPOLOGIES / "fig-3-2.yaml")
    schedule = with_sync(topology, alltoall_phases(topology), "sender")
    assert schedule_rows(schedule).rows[3][:3] == (
        Step(0, send_to=5, receive_from=None, owed=(Token(4, 1),)),
        Step(1, send_to=None, receive_from=1),
        Step(
            3,
            send_to=2,
            receive_from=0,
            await_from=(Token(4, 1), Token(0, 2), Token(5, 2)),
            owed=(Token(1, 5),),
        ),
    )


def test_a_rank_that_sends_two_messages_of_a_phase_is_refused():
    topology = load_topology(TOPOLOGIES / "single-16.yaml")
    phases = alltoall_phases(topology)
    both = (phases.phases[0] + phases.phases[1], *phases.phases[2:])
    with pytest.raises(ScheduleError, match="phase 0: a rank sends or receives more than one"):
        schedule_rows(replace(phases, phases=both))


@pytest.mark.parametrize("scheme_name", SCHEME_NAMES)
def test_single_rank_has_an_empty_row(scheme_name, tmp_path):
    (tmp_path / "t.yaml").write_text("name: t\nswitches: {s: {hosts: [a]}}\n")
    topology = load_topology(tmp_path / "t.yaml")
    rows = schedule_rows(with_sync(topology, alltoall_phases(topology), scheme_name))
    assert rows.rows == ((),)
