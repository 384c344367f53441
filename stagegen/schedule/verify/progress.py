"""Checks that the steps of all ranks can be carried out to the end.

The events are those of the contract in :mod:`stagegen.schedule.alltoall.rows`, under the least
favourable rules: a send completes only when its receive has been posted, a receive is posted
only when the rank has finished its steps before, and a token is given only at the end of the
step. Nothing can hang exactly if no event waits for itself, directly or through others.
"""

from __future__ import annotations

import numpy as np
import scipy

from stagegen.errors import ScheduleError
from stagegen.schedule.model import SyncGraph
from stagegen.schedule.verify.checked_schemes import CheckedScheme
from stagegen.schedule.verify.plan import Numbers, Plan
from stagegen.schedule.verify.sync import SyncTable


def check_progress(plan: Plan, table: SyncTable, sync: SyncGraph, scheme: CheckedScheme) -> None:
    """Check that no message waits for itself.

    Args:
        plan: all messages between two ranks, dummies included.
        table: the syncs, by the numbers of the same messages.
        sync: holds the size of the blocks.
        scheme: says whether there are barriers between them.
    """
    graph = _Events(plan)
    graph.wait_for_syncs(table)
    if scheme.barriers:
        graph.wait_for_barriers(sync.block_size)
    number, component = graph.components()
    if number < graph.count:
        stuck = np.flatnonzero(np.bincount(component)[component] > 1)
        message = next(m for m in map(graph.message_of, stuck.tolist()) if m is not None)
        raise ScheduleError(f"message {plan.message(message)} waits for itself: a deadlock")


class _Events:
    """The events, and which of them wait for which: a directed graph.

    The events are numbered: the start of every message, its end, the end of every step of a
    rank, and the barriers.
    """

    def __init__(self, plan: Plan):
        self.plan = plan
        messages = np.arange(len(plan.source))
        key = np.concatenate((plan.source, plan.destination)) * plan.phases + np.tile(plan.phase, 2)
        self.steps, step = np.unique(key, return_inverse=True)
        self.sends, self.receives = step[: len(messages)], step[len(messages) :]
        self.done = len(messages)
        self.ends = 2 * len(messages)
        self.barriers = self.ends + len(self.steps)
        self.count = self.barriers
        self.rank = self.steps // max(1, plan.phases)
        self.edges: list[tuple[Numbers, Numbers]] = []
        started, done = messages, self.done + messages
        self._wait(done, started)
        self._wait_for_step_before(started, self.sends)
        self._wait_for_step_before(done, self.receives)
        self._wait(self.ends + self.sends, done)
        self._wait(self.ends + self.receives, done)

    def _wait(self, waiting: Numbers, awaited: Numbers) -> None:
        self.edges.append((awaited, waiting))

    def _wait_for_step_before(self, waiting: Numbers, step: Numbers) -> None:
        """Let events wait for the end of the same rank's previous step."""
        has = np.flatnonzero((step > 0) & (self.rank[step - 1] == self.rank[step]))
        self._wait(waiting[has], self.ends + step[has] - 1)

    def wait_for_syncs(self, table: SyncTable) -> None:
        """Let messages wait for tokens, or for what their senders know."""
        by_sender = table.giver == self.plan.source[table.first]
        step = np.where(by_sender, self.sends[table.first], self.receives[table.first])
        told = np.where(table.giver < 0, self.done + table.first, self.ends + step)
        self._wait(table.then, told)

    def wait_for_barriers(self, block_size: int) -> None:
        """Let the steps of each block wait for a barrier after the block before."""
        plan = self.plan
        blocks = -(-plan.phases // block_size)
        self.count = self.barriers + blocks
        barrier = np.arange(self.barriers, self.count)
        self._wait(barrier[1:], barrier[:-1])
        block = plan.phase // block_size
        done = self.done + np.arange(len(block))
        # A step waits as its messages do; a message does not end before its receive is posted.
        later = np.flatnonzero(block > 0)
        self._wait(later, barrier[block[later] - 1])
        block_of_step = self.steps % max(1, plan.phases) // block_size
        self._wait(barrier[block_of_step], self.ends + np.arange(len(self.steps)))
        self._wait(done[later], barrier[block[later] - 1])

    def components(self) -> tuple[int, Numbers]:
        """Return how many strongly connected components there are, and which each event is in."""
        awaited = np.concatenate([edge[0] for edge in self.edges])
        waiting = np.concatenate([edge[1] for edge in self.edges])
        every = np.ones(len(awaited), np.bool_)
        graph = scipy.sparse.coo_array(
            (every, (awaited, waiting)), shape=(self.count, self.count)
        ).tocsr()
        number, component = scipy.sparse.csgraph.connected_components(
            graph, directed=True, connection="strong"
        )
        return int(number), component

    def message_of(self, event: int) -> int | None:
        """Return the message that starts or ends in an event; None for other events."""
        return event % self.done if event < self.ends else None
