"""Recordings that no program made: what every rank does, and what its clock shows, is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stagegen.recording.model import EVENT, RECEIVES, Communicator, Rank, Recording, Sample, Site

FUNCTIONS = ("allreduce", "alltoall", "alltoallv", "barrier", "ibcast")
SECOND = 1e9


@dataclass(frozen=True)
class Call:
    """A call of all ranks: true seconds, as a clock that is right would show them."""

    function: str
    arrivals: Sequence[float]
    exits: Sequence[float]
    size: int = 8
    site: int = 0


@dataclass(frozen=True)
class Dial:
    """What a rank's clock shows: `offset` seconds too much at time 0, and `drift` more in each."""

    offset: float = 0.0
    drift: float = 0.0

    def shown(self, seconds: float) -> float:
        return seconds + self.offset + self.drift * seconds


def recording(
    calls: Sequence[Call],
    dials: Sequence[Dial] | None = None,
    compared: Sequence[float] = (0.0, 100.0),
    error: float = 20e-6,
    size: int = 4,
    wrong_by: Sequence[float] | None = None,
) -> Recording:
    """A recording on MPI_COMM_WORLD; ranks with a dial of their own were `compared` then.

    Each comparison states the `error`, and is `wrong_by` these seconds.
    """
    samples = tuple(zip(compared, wrong_by or [0.0] * len(compared), strict=True))
    dials = dials or [Dial()] * size
    world = Communicator(tuple(range(size)), (), 0)
    ranks = [_rank(number, calls, dial, samples, error) for number, dial in enumerate(dials)]
    return Recording(size, FUNCTIONS, ("", "sum"), (world,), tuple(ranks))


def _rank(
    number: int,
    calls: Sequence[Call],
    dial: Dial,
    compared: Sequence[tuple[float, float]],
    error: float,
) -> Rank:
    events = np.zeros(len(calls), EVENT)
    for sequence, (event, call) in enumerate(zip(events, calls, strict=True)):
        event["arrival"] = round(dial.shown(call.arrivals[number]) * SECOND)
        ended = call.exits[number]
        event["exit"] = round(dial.shown(ended) * SECOND) if np.isfinite(ended) else 0
        event["sequence"] = sequence
        event["function"] = FUNCTIONS.index(call.function)
        event["received_bytes"] = call.size
        event["flags"] = RECEIVES
        event["site"] = call.site
    own = dial != Dial()
    samples = [Sample(dial.shown(at), dial.shown(at) - at + by, error) for at, by in compared]
    return Rank(
        rank=number,
        host=f"n{number}",
        clock=f"clock {number}" if own else "clock",
        finished=True,
        begun=round(dial.shown(0.001) * SECOND),
        ended=round(dial.shown(100.0) * SECOND),
        dropped=0,
        uncounted=0,
        samples=tuple(samples) if own else (),
        sites=(Site("program", 16), Site("program", 32)),
        communicators=(0,),
        counts=np.zeros(1, np.int64),
        events=events,
    )


def steps(count: int, delays: Sequence[float], function: str = "alltoall", start: float = 1.0):
    """Calls a second apart, to which the ranks come with these delays; each takes 1 ms."""
    found = []
    for number in range(count):
        at = start + number
        arrivals = [at + delay for delay in delays]
        end = max(arrivals) + 1e-3
        found.append(Call(function, arrivals, [end] * len(delays)))
    return found
