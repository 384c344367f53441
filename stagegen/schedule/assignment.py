"""All-to-all personalised communication in as many phases as the bottleneck has load.

Source: Faraj (2006), section 3.2.2.3; the steps are numbered as in Fig. 3.5, and Table 3.4 is
the result for the cluster of Fig. 3.2. Correct because (Theorem 1)

1. in a phase a subtree sends at most one and receives at most one global message (Lemma 2);
2. such messages meet no other inside the subtree (Lemmas 3 and 4);
3. a local message u→v goes where v sends and u receives a global message, or nobody does
   (Lemma 3), at most one in each subtree and phase.
"""

from __future__ import annotations

from collections.abc import Iterator

from stagegen.schedule.global_phases import GlobalPhases
from stagegen.schedule.model import Message
from stagegen.schedule.patterns import broadcast, rotate
from stagegen.schedule.root import RootedView

_Placed = tuple[int, int, int]
"""A phase, and sender and receiver by their numbers within their subtrees."""


class _Assignment:
    """The phases under construction; within a phase, columns as in Table 3.4."""

    def __init__(self, view: RootedView):
        self.subtrees = view.subtrees
        self.sizes = tuple(len(subtree) for subtree in view.subtrees)
        self.slots = GlobalPhases(self.sizes)
        self.phases: list[list[tuple[int, Message]]] = [[] for _ in range(self.slots.count)]
        self.root_senders = [0] * self.slots.count

    def place(self, i: int, j: int, placed: Iterator[_Placed]) -> None:
        """Add messages t_i→t_j; global ones in column i, local ones in column k + i."""
        column = i if i != j else len(self.sizes) + i
        senders, receivers = self.subtrees[i], self.subtrees[j]
        for phase, sender, receiver in placed:
            message = Message(senders[sender], receivers[receiver])
            self.phases[phase].append((column, message))

    def broadcast(self, i: int, j: int) -> Iterator[_Placed]:
        """Realise t_i→t_j in its phases by the broadcast pattern."""
        pairs = broadcast(self.sizes[i], self.sizes[j])
        for phase, (sender, receiver) in enumerate(pairs, self.slots.start(i, j)):
            yield phase, sender, receiver

    def from_largest(self, j: int) -> Iterator[_Placed]:
        """Step 1: t_0→t_j.

        1.a The receiver of phase p is (p - phases) mod M_j. 1.b The senders rotate.
        """
        start = self.slots.start(0, j)
        aligned = (start - self.slots.count) % self.sizes[j]
        pairs = rotate(self.sizes[0], self.sizes[j], aligned)
        for phase, (sender, receiver) in enumerate(pairs, start):
            self.root_senders[phase] = sender
            yield phase, sender, receiver

    def to_largest(self, i: int) -> Iterator[_Placed]:
        """Step 2: t_i→t_0.

        2.a The receiver follows from the sender of t_0 in that phase by Table 3.3.
        2.b The senders take turns of M_0 phases (broadcast pattern).
        """
        for phase, sender, _ in self.broadcast(i, 0):
            yield phase, sender, self.receiver_in_largest(phase)

    def receiver_in_largest(self, phase: int) -> int:
        """Return the receiver in t_0 of a phase: Table 3.3, rounds of M_0 phases."""
        size = self.sizes[0]
        return (self.root_senders[phase] + 1 + phase // size) % size

    def local_in_largest(self) -> Iterator[_Placed]:
        """Step 3: the receiver of each of the first M_0·(M_0 - 1) phases sends to its sender."""
        for phase in range(self.sizes[0] * (self.sizes[0] - 1)):
            yield phase, self.receiver_in_largest(phase), self.root_senders[phase]

    def local_in(self, i: int) -> Iterator[_Placed]:
        """Step 5: in the phases of t_i→t_{i-1}, the designated receiver sends to the sender.

        The designated receiver of phase p is (p - phases) mod M_i: it receives a global
        message, or nobody in t_i does. The first phase that pairs two ranks is taken.
        """
        size, turn = self.sizes[i], self.sizes[i - 1]
        start = self.slots.start(i, i - 1)
        done = set()
        for phase in range(start, self.slots.count):
            sender = (phase - start) // turn
            designated = (phase - self.slots.count) % size
            if sender != designated and (designated, sender) not in done:
                done.add((designated, sender))
                yield phase, designated, sender

    def run(self) -> tuple[tuple[Message, ...], ...]:
        """Carry out the six steps."""
        others = range(1, len(self.sizes))
        for j in others:  # Step 1
            self.place(0, j, self.from_largest(j))
        for i in others:  # Step 2
            self.place(i, 0, self.to_largest(i))
        self.place(0, 0, self.local_in_largest())  # Step 3
        for i in others:  # Step 4
            for j in range(1, i):
                self.place(i, j, self.broadcast(i, j))
        for i in others:  # Step 5
            self.place(i, i, self.local_in(i))
        for i in others:  # Step 6
            for j in range(i + 1, len(self.sizes)):
                self.place(i, j, self.broadcast(i, j))
        return tuple(tuple(message for _, message in sorted(phase)) for phase in self.phases)


def assign_phases(view: RootedView) -> tuple[tuple[Message, ...], ...]:
    """Return the phases of an alltoall, every ordered pair of ranks in exactly one.

    A phase lists the global messages by the sender's subtree, then the local ones by subtree.
    Takes time and memory in proportion to the number of messages.
    """
    if len(view.subtrees) < 2:
        return ()
    return _Assignment(view).run()
