"""Which collectives take a program's time, and what of it tuning can gain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stagegen.recording.calls import Calls, align
from stagegen.recording.functions import BLOCKING
from stagegen.recording.metrics import metrics_of
from stagegen.recording.model import Recording


@dataclass(frozen=True)
class Row:
    """Blocking calls of one site and size, on communicators of as many ranks and hosts.

    Attributes:
        site: the call site.
        collective: such as ``alltoall``.
        size: bytes.
        ranks: of the communicators.
        hosts: on which these ranks are.
        host_names: the names of these hosts, sorted; in `Profile.rows`, of the first communicator.
        calls: how many.
        elapsed: seconds that the ranks spent in the calls, the sum over the calls of the means over
            the ranks.
        waiting: what of it passed before the last rank arrived: the program's own imbalance.
        operation: the rest, which tuning can shorten.
        is_inter: whether the communicators are intercommunicators; their ranks are those of both
            groups.
    """

    site: str
    collective: str
    size: int
    ranks: int
    hosts: int
    host_names: tuple[str, ...]
    calls: int
    elapsed: float
    waiting: float
    operation: float
    is_inter: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        return {
            "site": self.site,
            "collective": self.collective,
            "size": self.size,
            "ranks": self.ranks,
            "hosts": self.hosts,
            "calls": self.calls,
            "elapsed_s": self.elapsed,
            "waiting_s": self.waiting,
            "operation_s": self.operation,
        }


@dataclass(frozen=True)
class Profile:
    """Where the time of a program goes.

    Attributes:
        seconds: from MPI_Init to MPI_Finalize, the mean over the ranks that came to the latter;
            None if none did.
        rows: those that take the most time first; each weighs as many ranks as it has.
        by_hosts: the same calls, with a row for each set of hosts.
        size: the number of ranks of the program.
        clock_error: of the times, in seconds.
    """

    seconds: float | None
    rows: tuple[Row, ...]
    by_hosts: tuple[Row, ...]
    size: int
    clock_error: float

    def total(self, name: str) -> float:
        """Return the sum of ``elapsed``, ``waiting`` or ``operation`` in seconds of all ranks."""
        return float(sum(getattr(row, name) * row.ranks for row in self.rows)) / self.size

    def to_json(self) -> dict[str, Any]:
        """Return the form for programs; times in seconds."""
        return {
            "program_s": self.seconds,
            "ranks": self.size,
            "clock_error_s": self.clock_error,
            "elapsed_s": self.total("elapsed"),
            "waiting_s": self.total("waiting"),
            "operation_s": self.total("operation"),
            "rows": [row.to_json() for row in self.rows],
        }


def profile_of(recording: Recording) -> Profile:
    """Return the profile of a recording."""
    aligned = align(recording)
    every = [_row(recording, calls) for calls in aligned.calls if calls.mode == BLOCKING]
    by_hosts = _summed(every, lambda row: row.host_names)
    rows = _summed(by_hosts, lambda row: row.hosts)
    ended = [(rank.ended - rank.begun) * 1e-9 for rank in recording.ranks if rank.ended]
    seconds = sum(ended) / len(ended) if ended else None
    return Profile(seconds, rows, by_hosts, recording.size, aligned.clocks.error)


def _summed(rows: Iterable[Row], hosts: Callable[[Row], Hashable]) -> tuple[Row, ...]:
    """Return the sums of the rows that are alike, their hosts too, as `hosts` tells these."""
    found: dict[Hashable, list[Row]] = {}
    for row in rows:
        key = row.site, row.collective, row.size, row.ranks, row.is_inter, hosts(row)
        found.setdefault(key, []).append(row)
    return tuple(sorted(map(_sum, found.values()), key=_importance))


def _importance(row: Row) -> tuple[float, str, int]:
    return -row.elapsed * row.ranks, row.site, row.size


def _row(recording: Recording, calls: Calls) -> Row:
    metrics = metrics_of(calls)
    hosts = tuple(sorted({recording.by_rank[rank].host for rank in calls.ranks}))
    return Row(
        calls.site,
        calls.collective,
        calls.size,
        len(calls.ranks),
        len(hosts),
        hosts,
        len(calls.sequences),
        float(np.nansum(metrics.elapsed)),
        float(np.nansum(metrics.waiting)),
        float(np.nansum(metrics.operation)),
        calls.is_inter,
    )


def _sum(rows: list[Row]) -> Row:
    return replace(
        rows[0],
        calls=sum(row.calls for row in rows),
        elapsed=sum(row.elapsed for row in rows),
        waiting=sum(row.waiting for row in rows),
        operation=sum(row.operation for row in rows),
    )
