"""The lower bound of every collective, by what must cross an edge: one row each, with its source.

The arguments are in docs/theory.md, *Lower bounds*. In the texts link (u, v) has |M_u| ranks on
the side of u; where ranks have sizes of their own, the sums of these sizes replace |M| * size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

THEORY = "docs/theory.md"


@dataclass(frozen=True)
class Formula:
    """The lower bound of a collective.

    Attributes:
        name: the formula in words and signs.
        reference: its source.
        blocks: how many blocks of `size` bytes must cross an edge, from the ranks before it and
            the ranks beyond it.
        root_beyond: for a collective with a root, whether the bound holds for edges that lead to
            the root (True) or away from it (False); None for all edges.
        per_rank: whether a block belongs to a rank, so that ranks may have blocks of
            different sizes.
        pairs: whether a block belongs to a pair of ranks.
        star: whether all links around some switches together may need longer than any of them.
    """

    name: str
    reference: str
    blocks: Callable[[int, int], int]
    root_beyond: bool | None = None
    per_rank: bool = True
    pairs: bool = False
    star: bool = False


def _product(before: int, beyond: int) -> int:
    return before * beyond


def _before(before: int, _beyond: int) -> int:
    return before


def _beyond(_before: int, beyond: int) -> int:
    return beyond


def _whole(_before: int, _beyond: int) -> int:
    return 1


def _nothing(_before: int, _beyond: int) -> int:
    return 0


_PAIRS = Formula(
    "bottleneck link: |M_u| * |M_v| * size / rate",
    "Faraj 2006, section 3.2.1",
    _product,
    pairs=True,
)
_FROM_ALL = Formula("bottleneck link: |M_u| * size / rate", "Faraj 2006, section 3.3", _before)
_TO_ALL = Formula("bottleneck link: |M_v| * size / rate", THEORY, _beyond)
_GATHER = Formula(
    "bottleneck link towards the root: |M_u| * size / rate", THEORY, _before, root_beyond=True
)
_SCATTER = Formula(
    "bottleneck link away from the root: |M_v| * size / rate", THEORY, _beyond, root_beyond=False
)
_SLOWEST = "slowest link: size / rate"

FORMULAS = {
    "alltoall": _PAIRS,
    "allgather": _FROM_ALL,
    "allreduce": Formula(_SLOWEST, THEORY, _whole, per_rank=False, star=True),
    "bcast": Formula(
        _SLOWEST, "Faraj 2006, section 3.4.1", _whole, root_beyond=False, per_rank=False
    ),
    "reduce": Formula(_SLOWEST, THEORY, _whole, root_beyond=True, per_rank=False),
    "reduce_scatter_block": _TO_ALL,
    "gather": _GATHER,
    "scatter": _SCATTER,
    "barrier": Formula("latency alone", THEORY, _nothing, per_rank=False),
    "alltoallv": _PAIRS,
    "allgatherv": _FROM_ALL,
    "reduce_scatter": _TO_ALL,
    "gatherv": _GATHER,
    "scatterv": _SCATTER,
}
"""By collective. The description of a collective names the row that holds for it."""
COLLECTIVES = tuple(FORMULAS)

STAR_NAME = "links around {switches}: 2 * ({sides} - 1) * size / sum of their rates"
STAR_REFERENCE = f"Patarasuk and Yuan 2009; {THEORY}"
