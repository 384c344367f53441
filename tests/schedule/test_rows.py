"""Carries out the rows of a schedule as a program would, in any order that is allowed."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.data import TOPOLOGIES
from stagegen.schedule import SYNC_KINDS, Message, Rows, Step, alltoall_schedule, schedule_rows
from stagegen.topology import load_topology
from tests.strategies import oracle_paths, topologies


class Machine:
    """Ranks that follow their rows; a send is under way until its receive takes it."""

    def __init__(self, rows: Rows, rng: random.Random):
        self.rows, self.rng = rows, rng
        count = len(rows.rows)
        self.place = [0] * count  # the index of the step that each rank is in
        self.started = [False] * count
        self.open: list[set[str]] = [self.duties(rank) for rank in range(count)]
        self.tokens: Counter[tuple[int, int]] = Counter()
        self.under_way: set[Message] = set()
        self.delivered: list[Message] = []
        self.most_contention = 0

    def step(self, rank: int) -> Step | None:
        steps = self.rows.rows[rank].steps
        return steps[self.place[rank]] if self.place[rank] < len(steps) else None

    def duties(self, rank: int) -> set[str]:
        step = self.step(rank)
        if step is None:
            return set()
        send = {"send"} if step.send_to is not None else set()
        return send | ({"receive"} if step.receive_from is not None else set())

    def reached(self, rank: int) -> bool:
        """With barriers, a rank starts a phase when nobody has work left in an earlier one."""
        if not self.rows.barriers:
            return True
        phases = [step.phase for r in range(len(self.place)) if (step := self.step(r))]
        return self.step(rank).phase == min(phases)

    def can_start(self, rank: int) -> bool:
        step = self.step(rank)
        if step is None or step.send_to is None or self.started[rank]:
            return False
        told = all(self.tokens[giver, rank] > 0 for giver in step.await_from)
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
        for giver in step.await_from:
            self.tokens[giver, rank] -= 1
        self.started[rank] = True
        self.under_way.add(Message(rank, step.send_to))

    def deliver(self, message: Message) -> None:
        self.under_way.remove(message)
        self.delivered.append(message)
        sender, receiver = self.step(message.source), self.step(message.destination)
        for taker in sender.after_send:
            self.tokens[message.source, taker] += 1
        for taker in receiver.after_receive:
            self.tokens[message.destination, taker] += 1
        self.open[message.source].discard("send")
        self.open[message.destination].discard("receive")
        for rank in message:
            if not self.open[rank]:
                self.place[rank] += 1
                self.started[rank] = False
                self.open[rank] = self.duties(rank)

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


@given(
    topologies(max_hosts=9, max_switches=5, max_ranks=10),
    st.sampled_from(SYNC_KINDS),
    st.integers(0, 10**6),
)
def test_rows_deliver_everything_and_never_block(topology, kind, seed):
    machine = Machine(schedule_rows(alltoall_schedule(topology, kind)), random.Random(seed))
    machine.run(oracle_paths(topology))
    count = topology.rank_count
    assert sorted(machine.delivered) == [
        (a, b) for a in range(count) for b in range(count) if a != b
    ]
    assert all(step is None for step in map(machine.step, range(count)))
    assert not +machine.tokens, "tokens that nobody waits for"
    if kind != "none":
        assert machine.most_contention <= 1


def test_without_synchronisation_messages_do_meet():
    topology = load_topology(TOPOLOGIES / "chain-4x4-cyclic.yaml")
    machine = Machine(schedule_rows(alltoall_schedule(topology, "none")), random.Random(1))
    machine.run(oracle_paths(topology))
    assert machine.most_contention > 1


@given(topologies(), st.sampled_from(SYNC_KINDS))
def test_rows_hold_the_schedule(topology, kind):
    schedule = alltoall_schedule(topology, kind)
    rows = schedule_rows(schedule)
    assert rows.phase_count == len(schedule.phases)
    assert rows.barriers == (kind == "barrier")
    assert [row.rank for row in rows.rows] == list(range(topology.rank_count))
    sends, receives, tokens = [], [], 0
    for row in rows.rows:
        assert [s.phase for s in row.steps] == sorted({s.phase for s in row.steps})
        for step in row.steps:
            tokens += len(step.after_send) + len(step.after_receive) - len(step.await_from)
            assert not (kind == "sender" and step.after_receive)
            assert not (kind == "receiver" and step.after_send)
            assert len(set(step.await_from)) == len(step.await_from)
            if step.send_to is not None:
                sends.append((step.phase, row.rank, step.send_to))
            if step.receive_from is not None:
                receives.append((step.phase, step.receive_from, row.rank))
    placed = [(p, *m) for p, messages in enumerate(schedule.phases) for m in messages]
    assert sorted(sends) == sorted(receives) == sorted(placed)
    assert tokens == 0


def test_row_of_the_example():
    schedule = alltoall_schedule(load_topology(TOPOLOGIES / "fig-3-2.yaml"), "sender")
    assert schedule_rows(schedule).rows[3].steps[:3] == (
        Step(0, send_to=5, receive_from=None, after_send=(4,)),
        Step(1, send_to=None, receive_from=1),
        Step(3, send_to=2, receive_from=0, await_from=(4, 0, 5), after_send=(1,)),
    )


@pytest.mark.parametrize("kind", SYNC_KINDS)
def test_single_rank_has_an_empty_row(kind, tmp_path):
    (tmp_path / "t.yaml").write_text("name: t\nswitches: {s: {hosts: [a]}}\n")
    rows = schedule_rows(alltoall_schedule(load_topology(tmp_path / "t.yaml"), kind))
    assert [row.steps for row in rows.rows] == [()]
