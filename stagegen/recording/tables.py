"""The events of a communicator, side by side: those whose sequence numbers all ranks have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stagegen.recording.model import Array, Communicator, Rank, Recording


@dataclass(frozen=True, eq=False)
class Table:
    """The calls that all ranks of a communicator have recorded.

    Attributes:
        place: of the communicator in the recording.
        communicator: the communicator.
        columns: each rank, in the communicator's order, with its events; all have as many, of the
            same sequence numbers and functions.
        unmatched: how many calls lack some rank.
    """

    place: int
    communicator: Communicator
    columns: tuple[tuple[Rank, Array], ...]
    unmatched: int

    def times(self, name: str) -> Array:
        """Return ``arrival`` or ``exit`` as [call, rank], in nanoseconds of each rank's clock."""
        return np.stack([events[name] for _, events in self.columns], axis=1)


def tables_of(recording: Recording) -> Iterator[Table]:
    """Yield the table of each communicator; without columns if some rank is not recorded."""
    calls = [_Calls(rank) for rank in recording.ranks]
    for place, communicator in enumerate(recording.communicators):
        own = [one for one in calls if place in one.local]
        columns = [(one.rank, one.on(place)) for one in own]
        most = max((len(events) for _, events in columns), default=0)
        by_number = {rank.rank: (rank, events) for rank, events in columns}
        if any(number not in by_number for number in communicator.ranks):
            yield Table(place, communicator, (), most)
            continue
        ordered = [by_number[number] for number in communicator.ranks]
        kept = _shared(ordered)
        yield Table(place, communicator, kept, most - len(kept[0][1]))


class _Calls:
    """The events of a rank by communicator; programs may have tens of thousands of these."""

    def __init__(self, rank: Rank):
        self.rank = rank
        self.local = {place: local for local, place in enumerate(rank.communicators)}
        of_each = rank.events["communicator"]
        self._is_one = len(of_each) == 0 or bool(np.all(of_each == of_each[0]))
        if not self._is_one:
            self._order = np.argsort(of_each, kind="stable")
            numbers = np.arange(len(self.local) + 1)
            self._first = np.searchsorted(of_each[self._order], numbers)

    def on(self, place: int) -> Array:
        """Return the events on a communicator, by ascending sequence."""
        local, events = self.local[place], self.rank.events
        if not self._is_one:
            events = events[self._order[self._first[local] : self._first[local + 1]]]
        elif len(events) and events["communicator"][0] != local:
            events = events[:0]
        if np.all(events["sequence"][1:] > events["sequence"][:-1]):
            return events
        ordered: Array = events[np.argsort(events["sequence"], kind="stable")]
        return ordered


def _kept(events: Array, chosen: Array) -> Array:
    """Return the chosen events; without a copy if all are."""
    return events if chosen.all() else events[chosen]


def _shared(columns: Sequence[tuple[Rank, Array]]) -> tuple[tuple[Rank, Array], ...]:
    shared = columns[0][1]["sequence"]
    for _, events in columns[1:]:
        if not np.array_equal(shared, events["sequence"]):
            shared = np.intersect1d(shared, events["sequence"], assume_unique=True)
    kept = [(rank, _kept(events, np.isin(events["sequence"], shared))) for rank, events in columns]
    first = kept[0][1]["function"]
    same = np.all([events["function"] == first for _, events in kept], axis=0)
    return tuple((rank, _kept(events, same)) for rank, events in kept)
