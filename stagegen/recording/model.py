"""A recording: the collective calls of every rank of a program, and their clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: The value for a call that did not end, or whose counts were not kept.
NONE = 0

#: An event of a rank as the recorder keeps it (``struct recorder_event``); times are nanoseconds
#: of the rank's own clock.
EVENT = np.dtype(
    [
        ("arrival", "<i8"),
        ("exit", "<i8"),
        ("sent", "<i8"),
        ("received", "<i8"),
        ("sent_bytes", "<i8"),
        ("received_bytes", "<i8"),
        ("send_extent", "<i8"),
        ("recv_extent", "<i8"),
        ("communicator", "<u4"),
        ("sequence", "<u4"),
        ("site", "<u4"),
        ("root", "<i4"),
        ("send_counts", "<u4"),
        ("recv_counts", "<u4"),
        ("function", "<u2"),
        ("operation", "<u2"),
        ("flags", "<u4"),
    ]
)
SENDS, RECEIVES, IN_PLACE = 1, 2, 4


@dataclass(frozen=True)
class Site:
    """Where a program calls.

    Attributes:
        module: file name of the program or library, without its folder.
        offset: of the call in it, as it is loaded; bytes.
    """

    module: str
    offset: int

    @property
    def name(self) -> str:
        """Such as ``a.out+0x11f3``."""
        return f"{self.module}+{self.offset:#x}"


@dataclass(frozen=True)
class Communicator:
    """A communicator.

    Attributes:
        members: the ranks of ``MPI_COMM_WORLD`` in it, in order; -1 for a rank of another world.
        remote: those of the other group of an intercommunicator; else none.
        ordinal: how many communicators of the same members were made before.
    """

    members: tuple[int, ...]
    remote: tuple[int, ...]
    ordinal: int

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that take part in its calls."""
        return (*self.members, *self.remote)


@dataclass(frozen=True)
class Sample:
    """A comparison of a rank's clock with that of rank 0.

    Attributes:
        at: of the rank's clock; seconds, as all that follows.
        offset: how much more it shows than that of rank 0.
        error: the greatest error of the offset.
    """

    at: float
    offset: float
    error: float


@dataclass(frozen=True, eq=False)
class Rank:
    """What was recorded of a rank.

    Attributes:
        rank: in ``MPI_COMM_WORLD``.
        host: its host's name.
        clock: ranks with the same text share a clock.
        finished: whether it came to ``MPI_Finalize``; else it ended in another way.
        begun: when ``MPI_Init`` ended; nanoseconds of its clock.
        ended: when ``MPI_Finalize`` was called, or 0.
        dropped: how many calls were not kept, for lack of room.
        uncounted: how many calls lack the counts of their blocks, for the same reason.
        samples: of its clock; none if it is that of rank 0.
        sites: of ``events["site"]``.
        communicators: of ``events["communicator"]``, as places in :attr:`Recording.communicators`.
        counts: for ``events["send_counts"]``: at that place the number of blocks, then the counts.
        events: in the order of their beginnings in each thread; :data:`EVENT`.
    """

    rank: int
    host: str
    clock: str
    finished: bool
    begun: int
    ended: int
    dropped: int
    uncounted: int
    samples: tuple[Sample, ...]
    sites: tuple[Site, ...]
    communicators: tuple[int, ...]
    counts: Array
    events: Array

    def counts_at(self, place: int) -> tuple[int, ...] | None:
        """Return the counts of a call's blocks; None if they were not kept."""
        if place == NONE:
            return None
        first = place + 1
        return tuple(int(n) for n in self.counts[first : first + int(self.counts[place])])


@dataclass(frozen=True, eq=False)
class Recording:
    """The calls of a program.

    Attributes:
        size: the number of ranks of ``MPI_COMM_WORLD``.
        functions: names of MPI's functions, such as ``ibcast``, of ``events["function"]``.
        operations: names of operations, of ``events["operation"]``; the first is empty.
        communicators: all of them.
        ranks: what there is of each rank, by ascending rank; some may be missing if the program
            did not come to its end.
    """

    size: int
    functions: tuple[str, ...]
    operations: tuple[str, ...]
    communicators: tuple[Communicator, ...]
    ranks: tuple[Rank, ...]

    @cached_property
    def by_rank(self) -> Mapping[int, Rank]:
        """What there is of each rank."""
        return {one.rank: one for one in self.ranks}

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks of which there is nothing."""
        return tuple(rank for rank in range(self.size) if rank not in self.by_rank)

    @property
    def finished(self) -> bool:
        """Whether all ranks came to ``MPI_Finalize``."""
        return not self.missing and all(one.finished for one in self.ranks)

    @property
    def dropped(self) -> int:
        """How many calls of all ranks were not kept."""
        return sum(one.dropped for one in self.ranks)
