"""Clocks of hosts: their offsets and drifts, from samples and from the calls themselves.

The recorder compares a host's clock with that of rank 0 at ``MPI_Init`` and at ``MPI_Finalize``.
Between the two samples the offset is taken to change evenly. On the way, every synchronising call
bounds it, without a message: no rank leaves such a call before all have arrived. A bound that
the straight line breaks bends the line, and adds to the error that is stated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stagegen.recording.functions import has_data, synchronises
from stagegen.recording.model import Array, Rank, Recording, Sample
from stagegen.recording.tables import Table

#: The span of a recording is bounded on the way in so many windows.
WINDOWS = 64

#: Two clocks drift apart by no more than this, where nothing is measured; seconds in a second.
MOST_DRIFT = 100e-6


@dataclass(frozen=True, eq=False)
class Clock:
    """A clock, as offsets from that of rank 0.

    Attributes:
        at: times of the clock, ascending; seconds, as all that follows.
        offsets: how much more it shows than rank 0's then; in between, it changes evenly.
        error: the greatest error of the offset, if the clock drifts evenly between comparisons.
        proven: the greatest error that the calls on the way leave possible, whatever the clock
            does between them; infinity if no call bounds it.
    """

    at: Array
    offsets: Array
    error: float
    proven: float

    def offset(self, at: Array) -> Array:
        """Return the offsets at times of the clock; beyond its ends it drifts as at its ends."""
        offsets = np.interp(at, self.at, self.offsets)
        if len(self.at) > 1:
            for inner, outer, beyond in ((1, 0, at < self.at[0]), (-2, -1, at > self.at[-1])):
                rise = self.offsets[outer] - self.offsets[inner]
                drift = rise / (self.at[outer] - self.at[inner])
                offsets = np.where(
                    beyond, self.offsets[outer] + drift * (at - self.at[outer]), offsets
                )
        result: Array = offsets
        return result


#: The clock of rank 0.
REFERENCE = Clock(np.zeros(1), np.zeros(1), 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Clocks:
    """The clocks of all ranks.

    Attributes:
        by_rank: each rank's.
        origin: the time 0 of aligned times, in seconds of rank 0's clock.
    """

    by_rank: Mapping[int, Clock]
    origin: float

    @property
    def error(self) -> float:
        """The greatest error between two ranks, in seconds (:attr:`Clock.error`)."""
        return _between_two([clock.error for clock in _distinct(self.by_rank.values())])

    @property
    def proven(self) -> float:
        """The same of :attr:`Clock.proven`."""
        return _between_two([clock.proven for clock in _distinct(self.by_rank.values())])

    def of(self, rank: int, nanoseconds: Array) -> Array:
        """Return aligned seconds of a rank's times."""
        seconds = nanoseconds * 1e-9
        aligned: Array = seconds - self.by_rank[rank].offset(seconds) - self.origin
        return aligned


def _distinct(clocks: Iterable[Clock]) -> list[Clock]:
    return list({id(clock): clock for clock in clocks}.values())


def _between_two(errors: Sequence[float]) -> float:
    return sum(sorted(errors)[-2:])


def clocks_of(recording: Recording, tables: Sequence[Table]) -> Clocks:
    """Return the clocks of a recording, from its samples and its tables."""
    groups: dict[str, list[Rank]] = {}
    for rank in recording.ranks:
        groups.setdefault(rank.clock, []).append(rank)
    whole = [table for table in tables if table.columns]
    found: dict[str, Clock] = {}
    reference = _names_of_reference(groups)
    for name, ranks in groups.items():
        found[name] = REFERENCE if name in reference else _clock(recording, ranks, whole)
    by_rank = {rank.rank: found[rank.clock] for rank in recording.ranks}
    begun = [(rank, np.array([rank.begun * 1e-9])) for rank in recording.ranks]
    starts = [float((at - by_rank[rank.rank].offset(at))[0]) for rank, at in begun]
    return Clocks(by_rank, min(starts, default=0.0))


def _names_of_reference(groups: Mapping[str, Sequence[Rank]]) -> set[str]:
    """Return the clock of rank 0: the one that was compared with none."""
    return {
        name
        for name, ranks in groups.items()
        if any(rank.rank == 0 for rank in ranks) or not any(rank.samples for rank in ranks)
    }


def _clock(recording: Recording, ranks: Sequence[Rank], tables: Sequence[Table]) -> Clock:
    samples = max((rank.samples for rank in ranks), key=len)
    line = _line(samples)
    bounds = list(_bounds(recording, {rank.rank for rank in ranks}, line, tables))
    windows = _windows(np.concatenate(bounds, axis=1)) if bounds else []
    if len(samples) > 1:
        bends = [window.bend for window in windows]
        ends = dict.fromkeys(map(float, line.at), 0.0)
        error = max(sample.error for sample in samples) + max(map(abs, bends), default=0.0)
    else:
        last = max((float(rank.events[n].max()) * 1e-9 for rank in ranks if len(rank.events)
                    for n in ("arrival", "exit")), default=samples[0].at)  # fmt: skip
        bends, ends, error = _by_one_sample(samples[0], windows, last)
    proven = max(
        (window.proven(bend) for window, bend in zip(windows, bends, strict=True)),
        default=math.inf,
    )
    bent = {**ends, **{window.at: bend for window, bend in zip(windows, bends, strict=True)}}
    at = np.array(sorted(bent))
    offsets: Array = line.offset(at) + np.array([bent[float(time)] for time in at])
    return Clock(at, offsets, error, proven)


def _by_one_sample(
    sample: Sample, windows: Sequence[_Window], last: float
) -> tuple[list[float], dict[float, float], float]:
    """Return the bends of windows, those of the ends, and the error, if nothing else was compared.

    From the sample on, the clock drifts by MOST_DRIFT at the most. That and the calls bound it:
    the middle of what both leave is taken, and half of its width is the error. Calls that break
    the bound of the drift count alone.
    """

    def left(window: _Window) -> _Window:
        most = sample.error + MOST_DRIFT * abs(window.at - sample.at)
        both = _Window(window.at, max(window.low, -most), min(window.high, most))
        return both if both.low <= both.high else window

    narrowed = [left(window) for window in windows]
    end = _Window(last, -math.inf, math.inf)
    if narrowed:
        before = narrowed[-1]
        drift = MOST_DRIFT * max(0.0, last - before.at)
        end = _Window(last, before.low - drift, before.high + drift)
    end = left(end)
    places = [sample.at, *(window.at for window in windows), last]
    # Between two places, and beside the middle of a window, the clock may drift as well.
    gap = max(later - earlier for earlier, later in itertools.pairwise(sorted(places)))
    halves = [window.proven(window.middle) for window in (*narrowed, end)]
    error = max(sample.error, *halves) + (MOST_DRIFT * gap if windows else 0.0)
    ends = {sample.at: 0.0, last: end.middle}
    return [window.middle for window in narrowed], ends, error


def _line(samples: Sequence[Sample]) -> Clock:
    at = np.array([sample.at for sample in samples])
    return Clock(at, np.array([sample.offset for sample in samples]), 0.0, math.inf)


@dataclass(frozen=True)
class _Window:
    """What the calls of a span of time say of the offset, beyond that of the straight line."""

    at: float
    low: float
    high: float

    @property
    def middle(self) -> float:
        """Return the middle of what is possible."""
        return (self.low + self.high) / 2

    @property
    def bend(self) -> float:
        """Return by how much the line is to be bent: not more than need be."""
        if self.low > self.high:
            return self.middle
        return min(max(0.0, self.low), self.high)

    def proven(self, bend: float) -> float:
        """Return the error that remains possible if the line is bent so."""
        return max(self.high - bend, bend - self.low, bend - self.high, self.low - bend)


def _bounds(
    recording: Recording, own: set[int], line: Clock, tables: Sequence[Table]
) -> Iterator[Array]:
    """Yield [3, call]: time, least and greatest offset beyond the line's."""
    synchronising = np.array([synchronises(name) for name in recording.functions])
    never_has = np.array([not has_data(name) for name in recording.functions])
    reference = _ranks_of_reference(recording)
    for table in tables:
        ours = [i for i, (rank, _) in enumerate(table.columns) if rank.rank in own]
        theirs = [i for i, (rank, _) in enumerate(table.columns) if rank.rank in reference]
        events = table.columns[0][1]
        arrivals, exits = table.times("arrival"), table.times("exit")
        empty = (events["received_bytes"] == 0) & (events["sent_bytes"] == 0)
        serves = synchronising[events["function"]] & (~empty | never_has[events["function"]])
        serves &= (exits != 0).all(axis=1)
        if not (ours and theirs and serves.any()) or table.communicator.remote:
            continue
        arrived, left = arrivals[serves] * 1e-9, exits[serves] * 1e-9
        at = arrived[:, ours].max(axis=1)
        offset = line.offset(at)
        low = at - offset - left[:, theirs].min(axis=1)
        end = left[:, ours].min(axis=1)
        high = end - line.offset(end) - arrived[:, theirs].max(axis=1)
        yield np.stack([at, low, high])


def _ranks_of_reference(recording: Recording) -> set[int]:
    return {rank.rank for rank in recording.ranks if not rank.samples}


def _windows(bounds: Array) -> list[_Window]:
    at, low, high = bounds
    first, last = float(at.min()), float(at.max())
    width = max(last - first, 1e-9) / WINDOWS
    places = np.minimum(((at - first) / width).astype(int), WINDOWS - 1)
    return [
        _Window(
            float(at[places == place].mean()),
            float(low[places == place].max()),
            float(high[places == place].min()),
        )
        for place in np.unique(places)
    ]
