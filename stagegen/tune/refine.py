"""Which values of a long range to try: a coarse search first, then a linear one around the best."""

from __future__ import annotations

from collections.abc import Sequence

from stagegen.catalogue.values import sample

#: More values than this are searched coarsely first.
LINEAR_MOST = 4


def coarse(values: Sequence[int]) -> tuple[int, ...]:
    """Return the values to try first: all if they are few, else ever sparser ones."""
    return tuple(values) if len(values) <= LINEAR_MOST else sample(values)


def between(values: Sequence[int], tried: Sequence[int], best: int) -> tuple[int, ...]:
    """Return the values to try next: those between the best one and the tried ones beside it.

    If they are many, these are again some of them. If there are none, the search is at its end.

    Args:
        values: all of them, ascending.
        tried: those that were tried, the best one among them.
        best: the best of these.
    """
    below = max((one for one in tried if one < best), default=best)
    above = min((one for one in tried if one > best), default=best)
    sides = (
        [one for one in values if below < one < best],
        [one for one in values if best < one < above],
    )
    return tuple(one for side in sides if side for one in coarse(side))
