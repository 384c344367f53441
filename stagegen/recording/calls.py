"""Calls aligned over ranks: by communicator and sequence number, in the time of rank 0's clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stagegen.recording.clocks import Clocks, clocks_of
from stagegen.recording.functions import BLOCKING, arguments_of, collective_of
from stagegen.recording.model import RECEIVES, SENDS, Array, Recording
from stagegen.recording.tables import Table, tables_of

#: If blocks may differ in length: all ranks know all of them, the root does, or each rank knows its
#: own ones only.
_WHOLE, _OF_ROOT, _OWN = "whole", "of root", "own"


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of one function at one site, of one size, on one communicator.

    Attributes:
        site: the call site of its lowest rank, as :attr:`Site.name`; ranks may call elsewhere.
        collective: such as ``alltoall``.
        mode: how the calls end, one of :data:`stagegen.recording.functions.MODES`.
        size: bytes, counted as in `docs/interfaces.md` (message sizes). If blocks may differ in
            length and not all ranks know all of them, the mean of all blocks of these calls.
        communicator: place in the recording's.
        ranks: of ``MPI_COMM_WORLD``, in the communicator's order.
        sequences: numbers of the calls on the communicator, from 0.
        arrivals: [call, rank], seconds of the reference clock.
        exits: likewise; NaN if the call did not end.
        is_inter: whether it is an intercommunicator, with the ranks of both groups.
    """

    site: str
    collective: str
    mode: str
    size: int
    communicator: int
    ranks: tuple[int, ...]
    sequences: Array
    arrivals: Array
    exits: Array
    is_inter: bool = False

    @property
    def message(self) -> int:
        """Bytes of one point-to-point message of the operation: a block; or all if undivided."""
        divided = _known_by(self.collective) == _WHOLE
        return round(self.size / len(self.ranks)) if divided else self.size


@dataclass(frozen=True, eq=False)
class Aligned:
    """All calls of a recording.

    Attributes:
        calls: by communicators and sites, in the order of their first calls.
        clocks: how the ranks' clocks were aligned, with the remaining errors.
        unmatched: calls that not all ranks of their communicator have recorded.
    """

    calls: tuple[Calls, ...]
    clocks: Clocks
    unmatched: int


def align(recording: Recording) -> Aligned:
    """Return the calls of a recording, each with the times of all of its ranks."""
    tables = list(tables_of(recording))
    clocks = clocks_of(recording, tables)
    found = [calls for table in tables for calls in _grouped(recording, clocks, table)]
    unmatched = sum(table.unmatched for table in tables)
    return Aligned(tuple(sorted(found, key=_beginning)), clocks, unmatched)


def _beginning(calls: Calls) -> tuple[float, int, str, int]:
    return float(calls.arrivals.min()), calls.communicator, calls.site, calls.size


def _grouped(recording: Recording, clocks: Clocks, table: Table) -> Iterator[Calls]:
    columns = table.columns
    if not columns or not len(columns[0][1]):
        return
    rank, first = columns[0]
    arrivals = np.stack([clocks.of(r.rank, events["arrival"]) for r, events in columns], axis=1)
    exits = np.stack([clocks.of(r.rank, events["exit"]) for r, events in columns], axis=1)
    exits = np.where(table.times("exit") == 0, np.nan, exits)
    for function in np.unique(first["function"]):
        collective, mode = collective_of(recording.functions[function])
        chosen = first["function"] == function
        sizes = _sizes(collective, [events[chosen] for _, events in columns])
        keys = np.stack([first["site"][chosen].astype(np.int64), _keys(collective, sizes)])
        for site, key in np.unique(keys, axis=1).T:
            same = (keys[0] == site) & (keys[1] == key)
            rows = np.flatnonzero(chosen)[same]
            yield Calls(
                site=rank.sites[site].name,
                collective=collective,
                mode=mode,
                size=round(float(sizes[same].mean())),
                communicator=table.place,
                ranks=table.communicator.ranks,
                is_inter=bool(table.communicator.remote),
                sequences=first["sequence"][rows].astype(np.int64),
                arrivals=arrivals[rows],
                exits=exits[rows],
            )


def _known_by(collective: str) -> str | None:
    """Return which ranks know the lengths of all blocks; None if blocks are of one length."""
    arguments = set(arguments_of(collective))
    counts = arguments & {"sendcounts", "recvcounts"}
    if not counts or collective == "neighbor_allgatherv":  # it sends one block to all neighbours
        return None
    if "root" in arguments:
        return _OF_ROOT
    return _OWN if len(counts) == 2 else _WHOLE


def _keys(collective: str, sizes: Array) -> Array:
    """Return what tells calls of different sizes apart; all are one if not all ranks know them."""
    if _known_by(collective) in (_OF_ROOT, _OWN):
        return np.zeros(len(sizes), np.int64)
    return sizes.astype(np.int64)


def _sizes(collective: str, events: Sequence[Array]) -> Array:
    """Return the size of each call in bytes; for blocks that differ in length, their mean."""
    held = np.stack([_held(one) for one in events])
    how = _known_by(collective)
    if how is None or how == _WHOLE:
        received = np.stack([_received(one) for one in events]) if how == _WHOLE else held
        whole: Array = received.max(axis=0).astype(float)
        return whole
    ranks = len(events)
    if how == _OF_ROOT:
        side = "received_bytes" if "recvcounts" in arguments_of(collective) else "sent_bytes"
        at_root: Array = np.stack([one[side] for one in events]).max(axis=0) / ranks
        return at_root
    own: Array = held.mean(axis=0) / ranks
    return own


def _held(events: Array) -> Array:
    """Return the bytes of the side that counts on this rank: what it sends, else receives."""
    sends = (events["flags"] & SENDS) != 0
    return np.where(sends, events["sent_bytes"], events["received_bytes"])


def _received(events: Array) -> Array:
    receives = (events["flags"] & RECEIVES) != 0
    return np.where(receives, events["received_bytes"], events["sent_bytes"])


def blocking(calls: Sequence[Calls]) -> tuple[Calls, ...]:
    """Return those whose exit is the end of the operation."""
    return tuple(one for one in calls if one.mode == BLOCKING)
