"""The two ways to realise the messages from one subtree to another, one in each phase.

Source: Faraj (2006), section 3.2.2.3, Lemmas 5 and 6, Table 3.2. All arguments may be arrays;
the results have an element for each.
"""

from __future__ import annotations

import numpy as np

from stagegen.schedule.alltoall.phases.global_phases import Ints


def broadcast(turn: Ints, receivers: int | Ints) -> tuple[Ints, Ints]:
    """Return (sender, receiver): each sender in turn sends to all receivers in turn.

    A sender occupies `receivers` consecutive phases (Lemma 5).

    Args:
        turn: which message it is, from 0.
        receivers: how many there are.
    """
    return turn // receivers, turn % receivers


def rotate(
    turn: Ints, senders: int | Ints, receivers: int | Ints, first_receiver: int | Ints = 0
) -> tuple[Ints, Ints]:
    """Return (sender, receiver): both in turn, the senders' sequence rotated now and then.

    Every sender comes once in `senders` phases and every receiver once in `receivers` phases
    (Lemma 6). After each least common multiple of both numbers, when the pairs would begin to
    repeat, the senders' sequence moves on by one. For 6 and 4 this is Table 3.2.

    Args:
        turn: which message it is, from 0.
        senders: how many there are.
        receivers: how many there are.
        first_receiver: the receiver of the first message.
    """
    rotations = turn // np.lcm(senders, receivers)
    return (turn + rotations) % senders, (turn + first_receiver) % receivers
