"""Orders the branches of a switch so that no message between two of them is too long.

Every branch has two *ends*: how many switches it takes from the branch's link to its first, and
to its last machine. The ends where two branches meet must sum to at most a limit. A greedy
pairing, smallest with largest, makes a path and perhaps cycles; exchanges then join them.
``docs/theory.md`` shows that this finds an order whenever there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class End(NamedTuple):
    """One end of a branch: its size, the branch, and 0 for its first or 1 for its last machine."""

    size: int
    branch: int
    side: int


class _Components:
    """The connected branches (union-find)."""

    def __init__(self, count: int):
        self._above = list(range(count))

    def find(self, branch: int) -> int:
        while self._above[branch] != branch:
            self._above[branch] = self._above[self._above[branch]]
            branch = self._above[branch]
        return branch

    def join(self, one: int, other: int) -> None:
        self._above[self.find(one)] = self.find(other)


def chain(
    ends: Sequence[tuple[int, int]], outer: Sequence[tuple[int, int]], limit: int
) -> list[tuple[int, bool]]:
    """Return an order of branches in which ends that meet sum to at most a limit.

    Args:
        ends: the two ends of each branch.
        outer: (branch, side) of the two ends that meet no other, of the first and of the last
            branch; empty where the order is a circle.
        limit: the largest allowed sum of two ends that meet.

    Returns:
        (branch, whether it is passed from its last machine to its first), in order.

    Raises:
        ValueError: there is no such order.
    """
    free = [
        End(size, branch, side)
        for branch, sizes in enumerate(ends)
        for side, size in enumerate(sizes)
        if (branch, side) not in outer
    ]
    partner: dict[tuple[int, int], tuple[int, int]] = {}
    for one, other in _pairs(sorted(free), len(ends), limit):
        if one.size + other.size > limit:
            raise ValueError(f"ends {one.size} and {other.size} sum to more than {limit}")
        partner[one[1:]], partner[other[1:]] = other[1:], one[1:]
    order = list(_walk(partner, outer[0] if outer else (0, 0)))
    if len(order) != len(ends):
        raise ValueError("the branches cannot be joined to one chain")
    return order


def _pairs(free: Sequence[End], branches: int, limit: int) -> Iterable[tuple[End, End]]:
    """Pair the ends, given in ascending order, so that as few pieces remain as possible."""
    half = len(free) // 2
    small, large = list(free[:half]), list(reversed(free[half:]))
    pieces = _Components(branches)
    for one, other in zip(small, large, strict=True):
        pieces.join(one.branch, other.branch)
    # Pairs are in ascending order of small ends. All pairs of a layer up to the current one
    # are one piece; `least` is its pair with the least large end.
    least = 0
    for pair in range(1, half):
        apart = pieces.find(small[least].branch) != pieces.find(small[pair].branch)
        if apart and small[pair].size + large[least].size <= limit:
            large[least], large[pair] = large[pair], large[least]
            pieces.join(small[least].branch, small[pair].branch)
        else:
            least = pair
    return zip(small, large, strict=True)


def _walk(
    partner: dict[tuple[int, int], tuple[int, int]], start: tuple[int, int]
) -> Iterator[tuple[int, bool]]:
    """Yield branches in order, entering the first at `start`, up to an outer end or the start."""
    entry: tuple[int, int] | None = start
    while entry is not None:
        branch, side = entry
        yield branch, side == 1
        entry = partner.get((branch, 1 - side))
        if entry == start:
            return
