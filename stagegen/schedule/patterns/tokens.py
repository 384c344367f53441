"""Which pieces wait for which: tokens from receivers, as for AAPC, and how long it all takes."""

from __future__ import annotations

from itertools import chain

import numpy as np

from stagegen.schedule.alltoall.sync.contention import Placed, predecessors
from stagegen.schedule.alltoall.sync.reduction import irredundant
from stagegen.schedule.model import Message, Piece, Wait
from stagegen.schedule.patterns.paths import Paths
from stagegen.topology import Topology

Phases = tuple[tuple[Piece, ...], ...]


def waits_of(topology: Topology, phases: Phases) -> tuple[Wait, ...]:
    """Return the fewest waits that keep every link at its capacity, whatever the messages take.

    The k-th piece over a link of capacity c follows the arrival of the (k - c)-th. The waits
    are the transitive reduction (:mod:`stagegen.schedule.alltoall.sync`).
    """
    pieces = list(chain.from_iterable(phases))
    if not pieces:
        return ()
    placed = Placed.of([[Message(t.source, t.destination) for t in phase] for phase in phases])
    before = predecessors(topology, placed, 1, 1)
    row, column = np.nonzero(irredundant(before, placed, topology.rank_count, 1))
    first = before[row, column]
    order = np.lexsort((first, row))
    pairs = zip(first[order].tolist(), row[order].tolist(), strict=True)
    return tuple(Wait(pieces[one], pieces[two]) for one, two in pairs)


def seconds_of(paths: Paths, phases: Phases) -> float:
    """Return when the last piece ends, if each starts as early as the order on links allows."""
    number = {
        pair: place
        for place, pair in enumerate(
            zip(paths.source.tolist(), paths.destination.tolist(), strict=True)
        )
    }
    none = len(paths.capacity) - 1
    ends: list[list[float]] = [[] for _ in paths.capacity]
    last = 0.0
    for piece in chain.from_iterable(phases):
        message = number[piece.source, piece.destination]
        size = int(paths.size[message])
        own = [edge for edge in paths.edges[message].tolist() if edge != none]
        start = 0.0
        for edge in own:
            places = int(paths.capacity[edge])
            if len(ends[edge]) >= places:
                start = max(start, ends[edge][-places])
        end = start + float(paths.seconds[message]) * piece.bytes_of(size) / size
        for edge in own:
            ends[edge].append(end)
        last = max(last, end)
    return last
