"""Makes common patterns: the same one for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stagegen.errors import InputError
from stagegen.patterns.model import BLOCK_BYTES_MOST, PATTERN_RANKS_MOST, Pattern

Proportions = npt.NDArray[Any]
"""The blocks in proportion to each other."""


@dataclass(frozen=True)
class PatternFamily:
    """A family of patterns: which of their blocks are long.

    Attributes:
        summary: what it looks like, in words.
        make: the blocks in proportion, from ranks, the family's number, and random numbers.
        number: what the number means.
        default: the number if none is given.
        most: the greatest number; the least is 0.
        is_whole: whether fractions mean nothing.
    """

    summary: str
    make: Callable[[int, float, np.random.Generator], Proportions]
    number: str
    default: float
    most: float
    is_whole: bool = False


def make_pattern(
    family: str, ranks: int, average: int, seed: int = 0, number: float | None = None
) -> Pattern:
    """Return an alltoallv of a family.

    Args:
        family: one of `FAMILIES`.
        ranks: how many there are, at least 2.
        average: the mean bytes of a block, empty ones included.
        seed: of the random numbers.
        number: as the family says; None for its default.

    Raises:
        InputError: there is no such family, or a number is out of range.
    """
    if family not in FAMILIES:
        raise InputError(
            f"unknown family of patterns {family!r}; choose from {', '.join(FAMILIES)}"
        )
    row = FAMILIES[family]
    number = row.default if number is None else number
    is_number = 0 <= number <= row.most and (not row.is_whole or number == int(number))
    if not 2 <= ranks <= PATTERN_RANKS_MOST or average < 1 or not is_number:
        whole = ", a whole number" if row.is_whole else ""
        raise InputError(
            f"{family} needs 2 to {PATTERN_RANKS_MOST} ranks, an average of at least 1 byte, and "
            f"{row.number} from 0 to {row.most:g}{whole}; not {ranks}, {average} and {number:g}"
        )
    shape = row.make(ranks, number, np.random.default_rng(seed))
    np.fill_diagonal(shape, 0)
    total = shape.sum()
    if not total:
        problem = f"{family} with {number:g} on {ranks} ranks has no block"
        raise InputError(f"{problem}; choose a larger number")
    lengths = np.rint(shape * (average * ranks * (ranks - 1) / total))
    if lengths.max() > BLOCK_BYTES_MOST:
        problem = f"{family} with an average of {average} bytes has a block of {lengths.max():.0f}"
        raise InputError(f"{problem}; choose one whose blocks have at most {BLOCK_BYTES_MOST}")
    sizes = lengths.astype(np.int64)
    sizes = np.maximum(sizes, shape > 0)
    name = f"{family}-{ranks}-{average}-{seed}"
    return Pattern(name, "alltoallv", tuple(tuple(map(int, r)) for r in sizes))


def _banded(ranks: int, width: float, _: np.random.Generator) -> Proportions:
    place = np.arange(ranks)
    shape: Proportions = (np.abs(place[:, None] - place) <= width).astype(float)
    return shape


def _grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return the most even grid of so many ranks: its sides multiply to them."""
    sides: list[int] = []
    left = ranks
    for remaining in range(dimensions, 1, -1):
        ideal = left ** (1 / remaining)
        side = max(s for s in range(1, left + 1) if left % s == 0 and s <= ideal + 1e-9)
        sides.append(side)
        left //= side
    return tuple(sorted([*sides, left]))


def _stencil(dimensions: int) -> Callable[[int, float, np.random.Generator], Proportions]:
    """Neighbours along each dimension of a torus; with number 1 those across corners, too."""

    def make(ranks: int, corners: float, _: np.random.Generator) -> Proportions:
        grid = _grid(ranks, dimensions)
        place = np.array(np.unravel_index(np.arange(ranks), grid)).T
        apart = np.abs(place[:, None] - place)
        apart = np.minimum(apart, np.array(grid) - apart)
        steps = apart.sum(axis=2)
        near = (apart.max(axis=2) <= 1) & (steps > 0)
        # A face has as many cells as a side, an edge or a corner has far fewer.
        shape = np.where(near, 8.0 ** (1.0 - steps), 0.0)
        return shape if corners else np.where(steps == 1, shape, 0.0)

    return make


def _sparse(ranks: int, share: float, random: np.random.Generator) -> Proportions:
    """Choose exactly this share of the pairs; the lengths of their blocks are even from 1/2."""
    pairs = np.flatnonzero(~np.eye(ranks, dtype=bool))
    chosen = random.choice(pairs, max(1, round(share * len(pairs))), replace=False)
    shape = np.zeros(ranks * ranks)
    shape[chosen] = random.uniform(0.5, 1.5, len(chosen))
    return shape.reshape(ranks, ranks)


def _heavy(ranks: int, factor: float, random: np.random.Generator) -> Proportions:
    shape = np.ones((ranks, ranks))
    row, column = random.choice(ranks, 2, replace=False)
    shape[row] *= factor
    shape[:, column] *= factor
    shape[row, column] = factor
    return shape


def _zipf(ranks: int, exponent: float, random: np.random.Generator) -> Proportions:
    """Let the lengths of blocks fall as the power of their rank in a random order."""
    order = random.permutation(ranks * ranks) + 1.0
    shape: Proportions = (order**-exponent).reshape(ranks, ranks)
    return shape


def _transposition(ranks: int, block: float, _: np.random.Generator) -> Proportions:
    """Go from blocks of a row to a block-cyclic distribution with this many columns a block.

    A matrix of 8·p columns is distributed over p ranks by even blocks of columns, and then dealt
    in turn in blocks.
    """
    columns = np.arange(8 * ranks)
    before = columns // 8
    after = columns // max(1, int(block)) % ranks
    shape = np.zeros((ranks, ranks))
    np.add.at(shape, (before, after), 1.0)
    return shape


FAMILIES: Mapping[str, PatternFamily] = {
    "banded": PatternFamily(
        "blocks for ranks at most so far away", _banded, "the distance", 2, 4096, True
    ),
    "stencil2d": PatternFamily(
        "blocks for the neighbours on a 2-D torus",
        _stencil(2),
        "1 with corners, else 0",
        0,
        1,
        True,
    ),
    "stencil3d": PatternFamily(
        "blocks for the neighbours on a 3-D torus",
        _stencil(3),
        "1 with corners, else 0",
        0,
        1,
        True,
    ),
    "sparse": PatternFamily("a random share of the pairs", _sparse, "the share", 0.1, 1),
    "heavy": PatternFamily(
        "one rank sends and one receives so many times as much", _heavy, "the factor", 8, 1e6
    ),
    "zipf": PatternFamily("lengths fall as a power, in random order", _zipf, "the exponent", 1, 8),
    "transposition": PatternFamily(
        "from even blocks to a block-cyclic distribution",
        _transposition,
        "columns a block",
        3,
        64,
        True,
    ),
}
"""By name."""
