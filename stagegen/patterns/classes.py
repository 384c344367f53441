"""Typical calls: an example of each class that tuning makes rules for where no file has any.

A class is the largest block over the mean of all: what ranks know of a call without its counts.
"""

from __future__ import annotations

from dataclasses import replace

from stagegen.errors import InputError
from stagegen.patterns.generators import make_pattern
from stagegen.patterns.model import Pattern

#: The mean bytes of a block, and by how much it is shorter or longer when it is measured: 4 bytes
#: to 64 KiB.
AVERAGE = 1024
SCALES = (1 / 256, 1 / 16, 1.0, 8.0, 64.0)

#: The share of the pairs of ranks that have a block, where most have none.
SHARE = 0.2

#: No pattern of a file may have one of these names.
NAMES = EVEN, SPARSE, ONE_LONG = ("class even", "class sparse", "class one-long")

#: The blocks of all pairs of ranks are in the log, and in the decision table.
RANKS_MOST = 1024


def is_typical(pattern: Pattern) -> bool:
    """Whether a pattern has the name of a typical call."""
    return pattern.name in NAMES


def typical_calls(ranks: int) -> tuple[Pattern, ...]:
    """Return an example of each class, with scales of its own.

    - An alltoallv with even blocks, as the rules for all calls have; but these are one for all
      sizes.
    - An alltoallv in which a fifth of the pairs of ranks have a block.
    - An allgatherv in which one block is as long as all others together.

    On two ranks, the latter two have even blocks, too, and are left out.

    Args:
        ranks: how many there are; no call has a class on one rank.

    Raises:
        InputError: there are more than :data:`RANKS_MOST`.
    """
    if ranks > RANKS_MOST:
        raise InputError(
            f"--classes is for up to {RANKS_MOST} ranks, not {ranks}; write a pattern file with "
            "`class: true` for a group"
        )
    if ranks < 2:
        return ()
    even = make_pattern("banded", ranks, AVERAGE, number=ranks)
    sparse = make_pattern("sparse", ranks, AVERAGE, number=SHARE)
    long = Pattern("", "allgatherv", ((AVERAGE * (ranks - 1), *[AVERAGE] * (ranks - 1)),))
    named = {EVEN: even, **({SPARSE: sparse, ONE_LONG: long} if ranks > 2 else {})}
    return tuple(
        replace(one, name=name, is_class=one.is_matrix, scales=SCALES)
        for name, one in named.items()
    )
