"""Tokens that would be mistaken for others, because they are not awaited in the order given.

All tokens from one rank to another are alike. In the order of its steps, a rank gives the tokens
for messages that it has received. If it gives a token for message u, then one for v, and the
taker first awaits the token for v, it gets the token for u. With window 1 that cannot happen: u
comes before v, as both use the giver's own link, so the sync of u would follow from others. With
larger windows it happens. As the giver has received u when it gives the token for v, the taker
can wait for u at the earlier step, and waits no longer than before.

One such wait may make others needless. So where a wait at a later step would be in time for two
messages, only that one is added, and the earlier step is looked at again afterwards.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stagegen.schedule.alltoall.sync.contention import Ints, Placed, distinct


def overtaken(placed: Placed, giver: Ints, first: Ints, then: Ints) -> tuple[Ints, Ints]:
    """Return the messages whose tokens are awaited too late, and messages that can await them.

    Args:
        placed: the messages.
        giver: for every message, the rank that gives its tokens.
        first: the earlier message of every sync.
        then: the later message of every sync.

    Returns:
        None of either if there are no such messages; else some of them, at least one.
    """
    stream = giver[first].astype(np.int64) * len(placed.source) + placed.source[then]
    order = np.lexsort((first, stream))
    first, then = first[order], then[order]
    # `least`: of this sync and those after it in its stream, the least later message. Keys of a
    # stream are below those of the next stream.
    _, number = np.unique(stream[order], return_inverse=True)
    key = number * len(placed.source) + then
    least = np.minimum.accumulate(key[::-1])[::-1]
    late = np.flatnonzero(least < key)
    late = late[_next_above(least[late]) > key[late]]
    return first[late], (least[late] % len(placed.source)).astype(np.int32)


def _next_above(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each key the least of all that is greater; for the greatest, the largest int."""
    every = np.append(np.unique(keys), np.iinfo(np.int64).max)
    return every[np.searchsorted(every, keys, side="right")]


def with_pairs(before: Ints, first: Ints, then: Ints) -> Ints:
    """Return the rows of predecessors with further pairs of (predecessor, message)."""
    columns = [before]
    while len(first):
        then_once, chosen = np.unique(then, return_index=True)
        column = np.full((len(before), 1), -1, np.int32)
        column[then_once, 0] = first[chosen]
        columns.append(column)
        first, then = np.delete(first, chosen), np.delete(then, chosen)
    return distinct(np.concatenate(columns, axis=1))
