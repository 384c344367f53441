"""A pattern: the bytes of every block of a collective whose blocks differ in length."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

MATRIX = ("alltoallv",)
"""Collectives with a block for each pair of ranks."""
VECTOR = ("allgatherv", "gatherv", "reduce_scatter", "scatterv")
"""Collectives with a block for each rank."""
COLLECTIVES = (*MATRIX, *VECTOR)

PATTERN_RANKS_MOST = 1 << 14
"""The most ranks of a pattern."""
BLOCK_BYTES_MOST = 64 << 30
"""The most bytes of a block: sums of a large matrix then stay below 2^63."""
DEFAULT_SCALES = (0.25, 1.0, 4.0)
"""The factors by which tuning makes blocks longer or shorter, unless it is told others."""


@dataclass(frozen=True)
class Pattern:
    """The blocks of a collective.

    Attributes:
        name: unique in a file.
        collective: one of `COLLECTIVES`.
        sizes: bytes. For an alltoallv, ``sizes[u][v]`` is what rank u has for rank v; for the
            others there is one row, with a block for each rank. Ranks are the communicator's.
        site: the call site that it was recorded at; None if it was not.
        communicator: the ranks of ``MPI_COMM_WORLD`` that it was recorded on, in their order;
            None if it was not.
        calls: the numbers of the recorded calls, counted from 0 for the collective on this
            communicator.
        is_class: whether an alltoallv is only an example of all whose largest block is about as
            many times their mean one. Every allgatherv is such an example, whatever this says.
        scales: the factors by which tuning makes its blocks longer or shorter; empty for those of
            the command.
        group: the group of the topology that is tuned for with this pattern; None for all ranks of
            the cluster. A file does not say it: it follows from the communicator.
        ordinal: tells communicators with the same ranks apart in a recording; files have none.
        is_blocking: whether it is of blocking calls, the only ones that rules serve. Files have no
            others.
    """

    name: str
    collective: str
    sizes: tuple[tuple[int, ...], ...]
    site: str | None = None
    communicator: tuple[int, ...] | None = None
    calls: tuple[int, ...] = ()
    is_class: bool = False
    scales: tuple[float, ...] = ()
    group: str | None = None
    ordinal: int = field(default=0, compare=False)
    is_blocking: bool = field(default=True, compare=False)

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.sizes[0])

    @property
    def is_matrix(self) -> bool:
        """Whether there is a block for each pair of ranks."""
        return self.collective in MATRIX

    @property
    def has_order(self) -> bool:
        """Whether schedules of just these messages serve its calls."""
        return self.is_matrix and not self.is_class

    @cached_property
    def array(self) -> npt.NDArray[np.int64]:
        """The sizes; of an alltoallv without the blocks of ranks for themselves. Do not write."""
        sizes = np.array(self.sizes, np.int64)
        if self.is_matrix:
            np.fill_diagonal(sizes, 0)
        sizes.flags.writeable = False
        return sizes

    @cached_property
    def total(self) -> int:
        """The bytes of all blocks that ranks have for others."""
        return int(self.array.sum())

    @property
    def average(self) -> float:
        """The mean bytes of a block, empty ones included, own ones not."""
        return self.total / self._blocks if self._blocks else 0.0

    @property
    def sparsity(self) -> float:
        """The part of the blocks that are empty."""
        return 1 - np.count_nonzero(self.array) / self._blocks if self._blocks else 0.0

    @property
    def largest_over_mean(self) -> float:
        """The largest block over the mean of all: the number of the pattern's class; at least 1."""
        return int(self.array.max()) * self._blocks / self.total if self.total else 1.0

    @property
    def _blocks(self) -> int:
        return self.ranks * (self.ranks - 1) if self.is_matrix else self.ranks

    @property
    def skew(self) -> float:
        """The most bytes that a rank sends or receives over the mean; 1 if all are alike."""
        sizes = self.array
        ends = np.concatenate((sizes.sum(axis=1), sizes.sum(axis=0))) if self.is_matrix else sizes
        return float(ends.max() / ends.mean()) if self.total else 1.0

    @property
    def in_world_order(self) -> Pattern:
        """The pattern with its ranks in the order that they have in ``MPI_COMM_WORLD``.

        Schedules and libraries are for the ranks of a cluster, or of a group of it, in whatever
        order a communicator has them. Patterns without a communicator, and those whose ranks are in
        this order, stay as they are.
        """
        if self.communicator is None:
            return self
        ordered = tuple(sorted(self.communicator))
        if self.communicator == ordered:
            return self
        place = sorted(range(self.ranks), key=self.communicator.__getitem__)
        rows = [self.sizes[rank] for rank in place] if self.is_matrix else self.sizes
        sizes = tuple(tuple(row[rank] for rank in place) for row in rows)
        return replace(self, sizes=sizes, communicator=ordered)

    def scaled(self, factor: float) -> Pattern:
        """Return the same pattern with blocks of other lengths; none of them becomes empty."""
        scaled = tuple(
            tuple(max(1, round(size * factor)) if size else 0 for size in row) for row in self.sizes
        )
        return replace(self, sizes=scaled)

    def to_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "name": self.name,
            "collective": self.collective,
            "ranks": self.ranks,
            "site": self.site,
            "communicator": None if self.communicator is None else list(self.communicator),
            "calls": list(self.calls),
            "class": self.is_class,
            **({"scales": list(self.scales)} if self.scales else {}),
            "bytes": [list(row) for row in self.sizes],
            "total": self.total,
            "average": self.average,
            "sparsity": self.sparsity,
            "skew": self.skew,
            "largest_over_mean": self.largest_over_mean,
        }
