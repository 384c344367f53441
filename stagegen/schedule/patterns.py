"""The two ways to realise the messages from one subtree to another, one in each phase.

Source: Faraj (2006), section 3.2.2.3, Lemmas 5 and 6, Table 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm


def broadcast(senders: int, receivers: int) -> Iterator[tuple[int, int]]:
    """Yield (sender, receiver): each sender in turn sends to all receivers in turn.

    A sender occupies `receivers` phases on end (Lemma 5).
    """
    for sender in range(senders):
        for receiver in range(receivers):
            yield sender, receiver


def rotate(senders: int, receivers: int, first_receiver: int = 0) -> Iterator[tuple[int, int]]:
    """Yield (sender, receiver): both in turn, the senders' sequence rotated now and then.

    Every sender comes once in `senders` phases and every receiver once in `receivers` phases
    (Lemma 6). The senders' sequence moves on by one after each least common multiple of both
    numbers, when the pairs would begin to repeat. For 6 and 4 this is Table 3.2.

    Args:
        senders: how many there are.
        receivers: how many there are.
        first_receiver: the receiver of the first phase.
    """
    turn = lcm(senders, receivers)
    for phase in range(senders * receivers):
        yield (phase + phase // turn) % senders, (phase + first_receiver) % receivers
