"""All-to-all personalised communication in as many phases as the load of the bottleneck.

Source: Faraj (2006), section 3.2.2.3; the steps are numbered as in Fig. 3.5, and Table 3.4 is
the result for the cluster of Fig. 3.2. Correct because (Theorem 1)

1. in a phase a subtree sends at most one and receives at most one global message (Lemma 2);
2. such messages meet no other inside the subtree (Lemmas 3 and 4);
3. a local message u→v goes into a phase in which v, or no rank of the subtree, sends a global
   message, and u, or no rank, receives one (Lemma 3); a subtree has at most one in a phase.

All messages of a step are made at once, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stagegen.schedule.alltoall.phases.global_phases import GlobalPhases, Ints
from stagegen.schedule.alltoall.phases.patterns import broadcast, rotate
from stagegen.schedule.alltoall.phases.root import RootedView
from stagegen.schedule.model import Message


class _Placed(NamedTuple):
    """Messages t_{i,sender}→t_{j,receiver} and their phases; arrays of equal length."""

    phase: Ints
    i: Ints
    sender: Ints
    j: Ints
    receiver: Ints


@dataclass(frozen=True)
class _Assignment:
    """The assignment of messages to phases, for subtrees of given sizes in descending order."""

    sizes: Ints
    slots: GlobalPhases

    def messages(self) -> tuple[_Placed, ...]:
        """Carry out the six steps."""
        total = self._global()
        root_senders = np.empty(self.slots.count, np.int64)
        from_largest = total.i == 0
        root_senders[total.phase[from_largest]] = total.sender[from_largest]
        total = self._to_largest(total, root_senders)
        own = (self._local_in(i) for i in range(1, len(self.sizes)) if self.sizes[i] > 1)
        return total, self._local_in_largest(root_senders), *own

    def _global(self) -> _Placed:
        """Steps 1, 4 and 6, and the phases and senders of step 2.

        1.a The receiver of t_0→t_j in phase p is (p - phases) mod M_j. 1.b The senders rotate.
        2.b, 4 and 6: all others follow the broadcast pattern.
        """
        subtrees = len(self.sizes)
        i, j = np.divmod(np.arange(subtrees**2), subtrees)
        i, j = i[i != j], j[i != j]
        start, lengths = self.slots.start(i, j), self.sizes[i] * self.sizes[j]
        first = np.cumsum(lengths) - lengths
        i, j, start, first = (np.repeat(array, lengths) for array in (i, j, start, first))
        turn = np.arange(len(first)) - first
        aligned = (start - self.slots.count) % self.sizes[j]
        by_rotation = rotate(turn, self.sizes[0], self.sizes[j], aligned)
        by_broadcast = broadcast(turn, self.sizes[j])
        sender, receiver = np.where(i == 0, by_rotation, by_broadcast)
        return _Placed(start + turn, i, sender, j, receiver)

    def _to_largest(self, total: _Placed, root_senders: Ints) -> _Placed:
        """Step 2.a: the receiver in t_0 follows from its sender in the phase by Table 3.3."""
        receiver = self._receiver_in_largest(total.phase, root_senders)
        return total._replace(receiver=np.where(total.j == 0, receiver, total.receiver))

    def _receiver_in_largest(self, phase: Ints, root_senders: Ints) -> Ints:
        """Return the receiver in t_0 of each phase: Table 3.3, rounds of M_0 phases."""
        size = self.sizes[0]
        receiver: Ints = (root_senders[phase] + 1 + phase // size) % size
        return receiver

    def _local_in_largest(self, root_senders: Ints) -> _Placed:
        """Step 3: the receiver of each of the first M_0·(M_0 - 1) phases sends to its sender."""
        phase = np.arange(self.sizes[0] * (self.sizes[0] - 1))
        here = np.zeros_like(phase)
        receiver = self._receiver_in_largest(phase, root_senders)
        return _Placed(phase, here, receiver, here, root_senders[phase])

    def _local_in(self, i: int) -> _Placed:
        """Step 5: in the phases of t_i→t_{i-1}, the designated receiver sends to the sender.

        The designated receiver of phase p is (p - phases) mod M_i: it receives a global
        message, or no rank in t_i does. The first phase that pairs two ranks is taken.
        """
        size = self.sizes[i]
        phase = np.arange(int(self.slots.start(i, i - 1)), self.slots.count)
        sender = (phase - phase[0]) // self.sizes[i - 1]
        designated = (phase - self.slots.count) % size
        _, first = np.unique(designated * size + sender, return_index=True)
        first = first[sender[first] != designated[first]]
        here = np.full_like(first, i)
        return _Placed(phase[first], here, designated[first], here, sender[first])


def assign_phases(view: RootedView) -> tuple[tuple[Message, ...], ...]:
    """Return the phases of an alltoall, every ordered pair of ranks in exactly one.

    A phase lists the global messages by the sender's subtree, then the local ones by subtree.
    Takes time and memory in proportion to the number of messages.
    """
    if len(view.subtrees) < 2:
        return ()
    sizes = tuple(map(len, view.subtrees))
    slots = GlobalPhases(sizes)
    parts = _Assignment(np.array(sizes), slots).messages()
    placed = _Placed(*map(np.concatenate, zip(*parts, strict=True)))
    column = placed.i + len(sizes) * (placed.i == placed.j)
    order = np.lexsort((column, placed.phase))
    return _by_phase(_Placed(*(array[order] for array in placed)), view.subtrees, slots.count)


def _by_phase(
    placed: _Placed, subtrees: Iterable[tuple[int, ...]], count: int
) -> tuple[tuple[Message, ...], ...]:
    """Return the messages of each phase as pairs of ranks; `placed` is sorted by phase."""
    sizes = list(map(len, subtrees))
    ranks, before = np.concatenate(list(subtrees)), np.cumsum(sizes) - sizes
    sources = ranks[before[placed.i] + placed.sender].tolist()
    destinations = ranks[before[placed.j] + placed.receiver].tolist()
    messages = list(map(Message, sources, destinations))
    ends = np.searchsorted(placed.phase, np.arange(count + 1)).tolist()
    return tuple(tuple(messages[a:b]) for a, b in pairwise(ends))
