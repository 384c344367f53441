"""The sizes at which collectives are measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stagegen.catalogue import Collective
from stagegen.patterns import Pattern
from stagegen.topology import WHOLE
from stagegen.tune.bounds import size_of_pattern
from stagegen.tune.candidates import INT_MOST
from stagegen.tune.scope import Options

#: If a size counts the whole message, sizes go on up to the largest one times the number of ranks,
#: but at most this many times: in other collectives, each rank gets as much from every rank.
WHOLE_MOST = 16


def octaves(one: int, other: int) -> float:
    """Return by how many octaves two sizes in bytes differ."""
    return abs(math.log2(max(one, 1)) - math.log2(max(other, 1)))


def sizes_of(
    collective: Collective, options: Options, ranks: int, communicator: str = WHOLE
) -> tuple[int, ...]:
    """Return the sizes in bytes at which a collective is measured on a communicator.

    One rule for all calls must hold at the smallest size, at two in the middle, and at the largest:
    of the program's sizes, where these are known. Without data, the only size is 0.
    """
    pattern = options.pattern_of(communicator)
    if pattern is not None:
        return sizes_of_pattern(pattern, pattern.scales or options.scales)
    sizes = options.sizes_on(collective.name, communicator)
    largest = options.sizes[-1]
    if not collective.has_data:
        return (0,)
    if collective.has_one_rule:
        is_part = options.is_part(collective.name, communicator)
        known = any(sizes) and bool(options.wanted)
        some = sizes if is_part or known else options.sizes
        most = INT_MOST // ranks  # an int counts where the last block begins
        some = tuple(sorted({min(size, most) for size in some}))
        count = len(some)
        return tuple(sorted({some[0], some[count // 3], some[count // 2], some[-1]}))
    longest = min(largest * min(ranks, WHOLE_MOST), INT_MOST)
    goes_on = collective.counts_whole and longest > largest and not options.wanted
    return (*sizes, longest) if goes_on else sizes


def sizes_of_pattern(pattern: Pattern, scales: Sequence[float]) -> tuple[int, ...]:
    """Return the sizes in bytes at which a pattern is measured (:func:`size_of_pattern`).

    None is so large that a rank sends or receives 2 GiB: an int counts what it has for all others.
    """
    blocks = np.array(pattern.sizes, np.int64)
    sums = [blocks.sum(axis=axis).max() for axis in ((0, 1) if pattern.is_matrix else (1,))]
    most = (INT_MOST - pattern.ranks) / max(1, *sums, 1)
    size = size_of_pattern(pattern)
    return tuple(sorted({max(1, round(min(scale, most) * size)) for scale in scales}))
