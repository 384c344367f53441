"""Calls that are alike, aligned over ranks: of one routine, size and root, on one communicator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagegen.inspection.trace import EventType, RankTrace, Trace
from stagegen.recording.clocks import Clocks, clocks_of
from stagegen.recording.model import Array
from stagegen.recording.tables import tables_of

#: First calls of a series that are dropped (Bongo et al., §5.2).
SKIPPED = 10


@dataclass(frozen=True)
class Event:
    """An event of a call.

    Attributes:
        type: what it is.
        a: the first number; for messages, the other rank in the communicator.
        b: the second number; for messages the tag, for messages of a schedule the phase.
        at: seconds of the reference clock.
    """

    type: EventType
    a: int
    b: int
    at: float


@dataclass(frozen=True)
class Call:
    """A call, as all ranks of its communicator saw it.

    Attributes:
        begun: when each rank began it; seconds of the reference clock.
        ended: when each rank ended it.
        events: of each rank, in the order of time.
    """

    begun: tuple[float, ...]
    ended: tuple[float, ...]
    events: tuple[tuple[Event, ...], ...]


@dataclass(frozen=True, eq=False)
class Series:
    """Calls that are alike.

    Attributes:
        routine: ``collective/algorithm``.
        size: bytes, as `docs/interfaces.md` counts them.
        root: of a rooted collective; else -1.
        hosts: of the communicator's ranks.
        skipped: how many first calls were left out.
        begun: [call, rank], seconds of the reference clock.
        ended: likewise.
    """

    routine: str
    size: int
    root: int
    hosts: tuple[str, ...]
    skipped: int
    begun: Array
    ended: Array
    _ranks: tuple[RankTrace, ...]
    _clocks: Clocks
    _calls: Array

    @property
    def collective(self) -> str:
        """Such as ``allreduce``."""
        return self.routine.partition("/")[0]

    def __len__(self) -> int:
        return len(self.begun)

    @cached_property
    def _times(self) -> tuple[Array, ...]:
        """The times of all entries of each rank, by the reference clock."""
        return tuple(self._clocks.of(one.rank, one.entries["time"]) for one in self._ranks)

    def call(self, number: int) -> Call:
        """Return one of the calls."""
        events = []
        for place, rank in enumerate(self._ranks):
            one = rank.calls[self._calls[number, place]]
            first, end = int(one["first"]), int(one["first"]) + int(one["count"])
            events.append(
                tuple(
                    Event(EventType(what & 0xFF), a, what >> 8, at)
                    for what, a, at in zip(
                        rank.entries["what"][first:end].tolist(),
                        rank.entries["a"][first:end].tolist(),
                        self._times[place][first:end].tolist(),
                        strict=True,
                    )
                )
            )
        begun, ended = self.begun[number].tolist(), self.ended[number].tolist()
        return Call(tuple(begun), tuple(ended), tuple(events))


@dataclass(frozen=True, eq=False)
class Inspected:
    """All series of a trace.

    Attributes:
        series: those that take the most time first.
        clocks: how the ranks' clocks were aligned, with the remaining errors.
        unmatched: calls that not all ranks of their communicator have kept.
    """

    series: tuple[Series, ...]
    clocks: Clocks
    unmatched: int


def series_of(trace: Trace, skip: int = SKIPPED) -> Inspected:
    """Return the calls of a trace, without the first ``skip`` ones of each series."""
    recording = trace.recording()
    tables = list(tables_of(recording))
    clocks = clocks_of(recording, tables)
    found: list[Series] = []
    for table in tables:
        if not table.columns:
            continue
        ranks = tuple(trace.ranks[rank.rank] for rank, _ in table.columns)
        places = np.stack([events["sent"] for _, events in table.columns], axis=1)
        found += _of_table(trace, ranks, places, clocks, skip)
    found.sort(key=lambda one: -float((one.ended - one.begun).sum()))
    return Inspected(tuple(found), clocks, sum(table.unmatched for table in tables))


def _of_table(
    trace: Trace, ranks: Sequence[RankTrace], places: Array, clocks: Clocks, skip: int
) -> list[Series]:
    if not len(places):
        return []
    columns = [one.calls[places[:, i]] for i, one in enumerate(ranks)]
    first = columns[0]
    keys = np.stack([first[name].astype(np.int64) for name in ("routine", "bytes", "root")])
    begun = np.stack([clocks.of(r.rank, c["begun"]) for r, c in zip(ranks, columns, strict=True)])
    ended = np.stack([clocks.of(r.rank, c["ended"]) for r, c in zip(ranks, columns, strict=True)])
    found = []
    for routine, size, root in np.unique(keys, axis=1).T.tolist():
        alike = np.all((routine, size, root) == keys.T, axis=1)
        rows = np.flatnonzero(alike)[skip:]
        if len(rows):
            found.append(
                Series(
                    routine=trace.routines[routine],
                    size=size,
                    root=root,
                    hosts=tuple(one.host for one in ranks),
                    skipped=skip,
                    begun=begun.T[rows],
                    ended=ended.T[rows],
                    _ranks=tuple(ranks),
                    _clocks=clocks,
                    _calls=places[rows],
                )
            )
    return found
