"""Tokens that would be taken for others, because they are awaited in another order than given.

All tokens from one rank to another are alike. A rank gives those for what it has received in
the order of its steps. If it gives one for a message u, then one for v, and the taker first
awaits the one for v, it gets that for u. With window 1 that cannot be: u comes before v, as both
use the giver's own link, and the sync of u would follow from others. With larger windows it
happens. As the giver has received u when it gives the token for v, the taker may as well wait
for u at the earlier step, and waits no longer than it would have.
"""

from __future__ import annotations

import numpy as np

from stagegen.schedule.sync.contention import Ints, Placed, distinct


def overtaken(placed: Placed, giver: Ints, first: Ints, then: Ints) -> tuple[Ints, Ints]:
    """Return the messages whose tokens are awaited too late, and the messages to await them.

    Args:
        placed: the messages.
        giver: the rank that gives the tokens for a message, of every message.
        first: the earlier message of every sync.
        then: the later one.
    """
    stream = giver[first].astype(np.int64) * len(placed.source) + placed.source[then]
    order = np.lexsort((first, stream))
    first, then = first[order], then[order]
    # The least of the later ones of the same stream: each stream lies below the next one.
    _, number = np.unique(stream[order], return_inverse=True)
    key = number * len(placed.source) + then
    least = np.minimum.accumulate(key[::-1])[::-1]
    late = np.flatnonzero(least < key)
    return first[late], (least[late] % len(placed.source)).astype(np.int32)


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
