"""The fewest synchronisations that keep messages with contention apart.

Source: Faraj (2006), section 3.2.3.2. The dissertation compares all pairs of messages and reduces
the graph in O(|M|⁶) steps for |M| ranks. But only the last user of an edge (with a window and a
capacity: an earlier one) can be a predecessor that nothing else implies, so there are few to
examine, and vector clocks tell which of them are implied: O(|M|³·L) for paths of L edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from stagegen.errors import InputError
from stagegen.schedule.alltoall.sync.contention import Ints, Placed, predecessors
from stagegen.schedule.alltoall.sync.overtaking import overtaken, with_pairs
from stagegen.schedule.alltoall.sync.reduction import irredundant
from stagegen.schedule.alltoall.sync.schemes import SCHEME_NAMES, SCHEMES, Scheme
from stagegen.schedule.model import Message, Sync, SyncGraph
from stagegen.topology import Topology

Phases = Sequence[Sequence[Message]]


def synchronise(
    topology: Topology, phases: Phases, scheme_name: str, block_size: int = 1, window: int = 1
) -> SyncGraph:
    """Return the synchronisation that keeps the phases apart.

    Receiver-based tokens say that the earlier message has arrived: with window 1 no edge ever
    carries more than its capacity. Sender-based ones say that its send is complete; over TCP
    some of it may still be under way when the later one starts. A sender needs no token for
    its own messages: there the token is None.

    Args:
        topology: the cluster.
        phases: the messages that start in each phase, no edge used beyond its capacity. A link
            that is slower than the hosts' counts as one of capacity 1.
        scheme_name: one of `SCHEME_NAMES`.
        block_size: phases of a block, from 1; not used by schemes without blocks.
        window: how many times its capacity an edge may carry at a time, from 1; not used by
            schemes without tokens.

    Raises:
        InputError: there is no such scheme, or a block size or window is below 1.
    """
    if scheme_name not in SCHEMES:
        raise InputError(f"unknown sync {scheme_name!r}; choose from {', '.join(SCHEME_NAMES)}")
    for name, number in (("block", block_size), ("window", window)):
        if number < 1:
            raise InputError(f"the size of a {name} is {number}; it must be at least 1")
    scheme = SCHEMES[scheme_name]
    block_size = block_size if scheme.blocks else 1
    if scheme.giver is None:
        return SyncGraph(scheme_name, block_size=block_size)
    placed = Placed.of(phases)
    first, then = _minimal_pairs(topology, placed, scheme, block_size, window)
    return SyncGraph(scheme_name, _syncs(phases, placed, scheme, first, then), block_size, window)


def _givers(placed: Placed, scheme: Scheme) -> Ints:
    """Return the rank that gives the tokens for each message."""
    return placed.source if scheme.giver == "sender" else placed.destination


def _minimal_pairs(
    topology: Topology, placed: Placed, scheme: Scheme, block_size: int, window: int
) -> tuple[Ints, Ints]:
    """Return the pairs (earlier message, later message) of a scheme.

    With the pairs that the scheme leaves out they imply the whole order, and none follows from
    others.
    """
    # A sender that gives tokens waits for each of its sends; otherwise only tokens order messages.
    sends = 1 if scheme.giver == "sender" else window
    before = predecessors(topology, placed, window, sends)
    while True:
        first, then = _reduced(before, placed, topology.rank_count, sends)
        kept = scheme.keeps(placed.phase[first], placed.phase[then], block_size)
        first, then = first[kept], then[kept]
        late, earlier = overtaken(placed, _givers(placed, scheme), first, then)
        if not len(late):
            return first, then
        before = with_pairs(before, late, earlier)


def _reduced(before: Ints, placed: Placed, ranks: int, sends: int) -> tuple[Ints, Ints]:
    """Return the transitive reduction.

    Sorted by the later message, then by the phase and the ranks of the earlier one.
    """
    row, column = np.nonzero(irredundant(before, placed, ranks, sends))
    first, then = before[row, column], row.astype(np.int32)
    by = (placed.destination[first], placed.source[first], placed.phase[first], then)
    order = np.lexsort(by)
    return first[order], then[order]


def _syncs(
    phases: Phases, placed: Placed, scheme: Scheme, first: Ints, then: Ints
) -> tuple[Sync, ...]:
    """Return pairs of messages with the tokens between their ranks.

    The sender of `then` cannot have received `first`: a message to a rank and a message from it
    have no directed edge in common. So a token is missing only where both have the same
    sender, which would give it to itself.
    """
    messages = list(chain.from_iterable(phases))
    givers, takers = _givers(placed, scheme)[first], placed.source[then]
    columns = (column.tolist() for column in (first, then, givers, takers))
    return tuple(
        Sync(messages[one], messages[other], None if giver == taker else (giver, taker))
        for one, other, giver, taker in zip(*columns, strict=True)
    )
