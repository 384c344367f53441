"""Finds the predecessors of a message that no other one implies, with vector clocks.

With w sends of a rank under way at a time, every w-th of its messages forms a chain. A message's
clock counts for every chain the messages that come before it, and itself; q comes before r
exactly if r's clock has reached q's turn in q's chain. A predecessor that comes before another
predecessor is implied: the rest is the transitive reduction, which is unique for an order without
cycles (Aho, Garey & Ullman, 1972). Only messages that a later one may ask for hold a clock.

A rank starts its sends in the order of their phases. So the messages that had arrived before its
last send started (it waited for them) have also arrived before the next send starts. With one
send at a time that adds nothing: the last message itself has then arrived, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stagegen.schedule.alltoall.sync.contention import Ints, Placed


def irredundant(before: Ints, placed: Placed, ranks: int, sends: int) -> npt.NDArray[np.bool_]:
    """Tell which predecessors no other one implies.

    Args:
        before: for every message its predecessors, in earlier phases, the latest first, then
            -1; the message of the same sender `sends` turns before is implied by them or
            among them.
        placed: the messages.
        ranks: how many there are.
        sends: how many sends of a rank may be under way, and so how many chains it has.

    Returns:
        A mask in the shape of `before`. Takes time in proportion to messages times chains.
    """
    clocks = _Clocks(before, placed, ranks, sends)
    kept = np.zeros(before.shape, np.bool_)
    widths = (before >= 0).sum(axis=1)
    for phase, (begin, end) in enumerate(zip(placed.starts[:-1], placed.starts[1:], strict=True)):
        if begin < end:
            width = max(1, int(widths[begin:end].max()))
            kept[begin:end, :width] = clocks.advance(phase, int(begin), int(end), width)
    return kept


class _Clocks:
    """The clocks of the messages that are still needed, in a pool of rows; row 0 is all zero."""

    def __init__(self, before: Ints, placed: Placed, ranks: int, sends: int):
        self.before = before
        chain, turn, chains = _chains(placed.source, ranks, sends)
        # One more element each, for the predecessor -1: no clock ever reaches its turn.
        self.chain = np.append(chain, 0)
        self.turn = np.append(turn, np.iinfo(np.int32).max)
        self.row = np.zeros(len(self.chain), np.int64)
        phase, phases = placed.phase, len(placed.starts) - 1
        self.previous = _previous(placed.source) if sends > 1 else None
        asked = before if self.previous is None else np.column_stack((before, self.previous))
        self.last_use = _last_use(asked, phase)
        self.leaving = np.argsort(self.last_use, kind="stable")
        self.leave = np.searchsorted(self.last_use[self.leaving], np.arange(phases + 1))
        self.free = np.arange(_most_alive(phase, self.last_use, phases), 0, -1)
        self.free_count = len(self.free)
        # A rank has one message for each other one, or, in a pattern, one for each piece.
        size = np.int16 if turn.max(initial=0) < np.iinfo(np.int16).max else np.int32
        self.pool = np.zeros((len(self.free) + 1, chains), size)

    def advance(self, phase: int, begin: int, end: int, width: int) -> npt.NDArray[np.bool_]:
        """Take in the messages of a phase; tell which of their predecessors are kept."""
        before = self.before[begin:end, :width]
        rows, chain, turn = self.row[before], self.chain[before], self.turn[before]
        known = self.pool[rows[:, :, None], chain[:, None, :]]
        # A predecessor is kept if, of all predecessors' clocks, only its own has reached its turn.
        kept: npt.NDArray[np.bool_] = (known >= turn[:, None, :]).sum(axis=1) == 1
        # Another predecessor knows all that an implied one knows.
        clock = self.pool[rows * kept].max(axis=1)
        if self.previous is not None:
            started = self._started(self.previous[begin:end])
            kept &= np.take_along_axis(started, chain, axis=1) < turn
            clock = np.maximum(clock, started)
        clock[np.arange(end - begin), self.chain[begin:end]] = self.turn[begin:end]
        self._forget(phase)
        self._remember(begin, end, clock)
        return kept

    def _started(self, messages: Ints) -> npt.NDArray[np.signedinteger]:
        """Return what had arrived when messages started: all that they know except themselves."""
        known = self.pool[self.row[messages] * (messages >= 0)]
        known[np.arange(len(messages)), self.chain[messages]] -= messages >= 0
        return known

    def _forget(self, phase: int) -> None:
        """Free the rows that no later phase asks for."""
        gone = self.leaving[self.leave[phase] : self.leave[phase + 1]]
        self.free[self.free_count : self.free_count + len(gone)] = self.row[gone]
        self.free_count += len(gone)

    def _remember(self, begin: int, end: int, clock: npt.NDArray[np.signedinteger]) -> None:
        """Keep the clocks that a later phase asks for."""
        needed = np.flatnonzero(self.last_use[begin:end] >= 0)
        self.free_count -= len(needed)
        rows = self.free[self.free_count : self.free_count + len(needed)]
        self.row[begin + needed] = rows
        self.pool[rows] = clock[needed]


def _previous(source: Ints) -> Ints:
    """Return the message that the same sender sends before each message, or -1."""
    order = np.argsort(source, kind="stable")
    previous = np.full(len(source), -1, np.int32)
    same = source[order[1:]] == source[order[:-1]]
    previous[order[1:][same]] = order[:-1][same]
    return previous


def _chains(source: Ints, ranks: int, sends: int) -> tuple[Ints, Ints, int]:
    """Return the chain of each message, its turn in the chain from 1, and the number of chains."""
    order = np.argsort(source, kind="stable")
    first = np.searchsorted(source[order], np.arange(ranks + 1))
    turn = np.empty(len(source), np.int32)
    turn[order] = np.arange(len(source)) - first[source[order]]
    sends = min(sends, max(1, int(np.diff(first).max(initial=0))))
    return source * sends + turn % sends, turn // sends + 1, ranks * sends


def _last_use(before: Ints, phase: Ints) -> Ints:
    """Return the last phase in which each message is a predecessor, or -1."""
    last = np.full(len(phase) + 1, -1, np.int32)
    for column in before.T:
        use = np.full(len(phase) + 1, -1, np.int32)
        use[column] = phase  # where an index repeats, the last value holds
        np.maximum(last, use, out=last)
    return last[:-1]


def _most_alive(phase: Ints, last_use: Ints, phases: int) -> int:
    """Return the largest number of messages that are needed after some phase."""
    used = last_use >= 0
    born = np.bincount(phase[used], minlength=phases)
    gone = np.bincount(last_use[used], minlength=phases)
    return int(np.cumsum(born - gone).max(initial=0))
