"""Our own order for a pattern: messages in parts, and every critical link busy.

Messages differ in length, so nothing is gained by phases in step. A message is cut into parts of
about one length. Whenever a part has arrived, the paths that are free again take the next parts:
first those that use the link with the most work left over its capacity (first fit by decreasing
remaining load). A message that is interrupted goes on later.
"""

from __future__ import annotations

import heapq

import numpy as np

from stagegen.schedule.model import Piece
from stagegen.schedule.patterns.paths import Ints, Paths

#: A second criterion among parts whose critical links have as much work left.
_OTHERS = 1e-3
#: Parts end together if their ends differ by less than this, in seconds.
_ALIKE = 1e-12


def parts_of(paths: Paths, segment: int | None) -> Ints:
    """Return into how many parts each message is cut: of about `segment` bytes; None for one."""
    if segment is None:
        return np.ones(len(paths.size), np.int64)
    return np.maximum(1, np.rint(paths.size / segment).astype(np.int64))


def segment_order(paths: Paths, parts: Ints) -> tuple[tuple[Piece, ...], ...]:
    """Return the parts of all messages in layers, in the order in which first fit starts them."""
    return _layers(paths, parts, _started(paths, parts))


def _started(paths: Paths, parts: Ints) -> list[int]:
    """Return the message of each part, in the order of their starts."""
    left, free, seconds = parts.copy(), paths.capacity.copy(), paths.seconds / parts
    work, edges = paths.load, paths.edges
    over = seconds[:, None] / paths.capacity[edges]
    order: list[int] = []
    running: list[tuple[float, int]] = []
    now = 0.0
    while len(order) < int(parts.sum()):
        able = np.flatnonzero(left)
        able = able[np.all(free[edges[able]] > 0, axis=1)]
        while len(able):
            ahead = work[edges[able]]
            chosen = int(able[np.argmax(ahead.max(axis=1) + _OTHERS * ahead.sum(axis=1))])
            order.append(chosen)
            heapq.heappush(running, (now + float(seconds[chosen]), chosen))
            left[chosen] -= 1
            own = edges[chosen][edges[chosen] < len(free) - 1]
            free[own] -= 1
            work[own] -= over[chosen][: len(own)]
            able = able[np.all(free[edges[able]] > 0, axis=1)]
        now = running[0][0]
        while running and running[0][0] <= now + _ALIKE:
            _, ended = heapq.heappop(running)
            free[edges[ended][edges[ended] < len(free) - 1]] += 1
    return order


def _layers(paths: Paths, parts: Ints, order: list[int]) -> tuple[tuple[Piece, ...], ...]:
    """Return an order as phases that keep it on every link.

    The k-th user of a link of capacity c is in a later phase than the (k - c)-th, and in none that
    is before that of the (k - 1)-th.
    """
    users: list[list[int]] = [[] for _ in paths.capacity]
    layers: list[list[Piece]] = []
    sent = np.zeros(len(parts), np.int64)
    none = len(users) - 1
    for message in order:
        layer = 0
        own = [edge for edge in paths.edges[message].tolist() if edge != none]
        for edge in own:
            if users[edge]:
                layer = max(layer, users[edge][-1])
                if len(users[edge]) >= paths.capacity[edge]:
                    layer = max(layer, users[edge][-int(paths.capacity[edge])] + 1)
        for edge in own:
            users[edge].append(layer)
        if layer == len(layers):
            layers.append([])
        ends = int(paths.source[message]), int(paths.destination[message])
        layers[layer].append(Piece(*ends, int(sent[message]), int(parts[message])))
        sent[message] += 1
    return tuple(map(tuple, layers))


def segment_choices(paths: Paths, most: int) -> list[int | None]:
    """Return the lengths of parts that are tried: whole messages, then shorter and shorter ones.

    Args:
        paths: the messages.
        most: as many parts a schedule may have.
    """
    longest = int(paths.size.max(initial=1))
    found: list[int | None] = [None]
    lengths = [longest // 2**k for k in range(1, 7)]
    for length in lengths:
        if length >= 1024 and parts_of(paths, length).sum() <= most:
            found.append(length)
    return found
