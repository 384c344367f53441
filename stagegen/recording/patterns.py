"""Process arrival patterns of call sites, for measurements that replay them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stagegen.recording.calls import align
from stagegen.recording.functions import PERSISTENT
from stagegen.recording.model import Array, Recording


@dataclass(frozen=True)
class ArrivalPattern:
    """How the processes arrived at the calls of one site (Faraj 2006, §4.2.1).

    Attributes:
        site: the call site, such as ``a.out+0x11f3``.
        collective: such as ``alltoall``.
        size: bytes, counted as in `docs/interfaces.md` (message sizes).
        ranks: of ``MPI_COMM_WORLD``, in the order of the communicator.
        offsets: ``offsets[call][i]``: seconds after the first arrival at which the i-th of
            ``ranks`` arrived.
        clock_error: the greatest error of these times between two ranks, in seconds.
    """

    site: str
    collective: str
    size: int
    ranks: tuple[int, ...]
    offsets: tuple[tuple[float, ...], ...]
    clock_error: float


def arrival_patterns(recording: Recording) -> tuple[ArrivalPattern, ...]:
    """Return the patterns of a recording, in the order of their first calls.

    Calls of one site and size on different communicators of the same ranks are one pattern, in the
    order of time. Calls on a single rank have no pattern.
    """
    found: dict[tuple[str, str, int, tuple[int, ...]], list[Array]] = {}
    aligned = align(recording)
    for calls in aligned.calls:
        if len(calls.ranks) > 1 and calls.mode != PERSISTENT:
            key = calls.site, calls.collective, calls.size, calls.ranks
            found.setdefault(key, []).append(calls.arrivals)
    return tuple(
        ArrivalPattern(*key, _offsets(np.concatenate(arrivals)), aligned.clocks.error)
        for key, arrivals in found.items()
    )


def _offsets(arrivals: Array) -> tuple[tuple[float, ...], ...]:
    ordered = arrivals[np.argsort(arrivals.min(axis=1), kind="stable")]
    after_first = ordered - ordered.min(axis=1, keepdims=True)
    return tuple(tuple(map(float, row)) for row in after_first)
