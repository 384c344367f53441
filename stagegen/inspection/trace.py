"""A trace: what happened within the calls of a program (``templates/events/events.h``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from stagegen.recording.binary import read_binary
from stagegen.recording.model import (
    EVENT,
    RECEIVES,
    Array,
    Communicator,
    Rank,
    Recording,
    Sample,
    Site,
)

MAGIC, VERSION, ENDIAN = b"sgevent\n", 1, 0x01020304
_NAME = 64


class Kind(IntEnum):
    """What an event is: ``enum coll_event_kind`` of ``coll.h``."""

    SENT = 1
    RECEIVED = 2
    STARTED = 3
    ARRIVED = 4
    PART = 5
    NODE_IN = 6
    NODE_UP = 7
    NODE_DOWN = 8
    NODE_OUT = 9


#: Structures of the file; times are nanoseconds of the rank's own clock.
ENTRY = np.dtype([("time", "<i8"), ("a", "<i4"), ("what", "<u4")])
CALL = np.dtype(
    [
        ("begun", "<i8"),
        ("ended", "<i8"),
        ("first", "<u8"),
        ("bytes", "<i8"),
        ("count", "<u4"),
        ("communicator", "<u4"),
        ("sequence", "<u4"),
        ("routine", "<i4"),
        ("root", "<i4"),
        ("thread", "<u4"),
    ]
)
_COMMUNICATOR = np.dtype(
    [("hash", "<u8"), ("first", "<i4"), ("size", "<i4"), ("rank", "<i4"), ("ordinal", "<u4")]
)
_SAMPLE = np.dtype([("at", "<i8"), ("offset", "<i8"), ("error", "<i8")])
_PART = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("endian", "<u4"),
        ("rank", "<i4"),
        ("ranks", "<i4"),
        ("begun", "<i8"),
        ("ended", "<i8"),
        ("overwritten", "<u8"),
        ("lost", "<u8"),
        ("host", f"S{_NAME}"),
        ("clock", f"S{_NAME}"),
        ("cluster", f"S{_NAME}"),
        ("counts", "<u8", (6,)),
    ]
)
_SECTIONS = (
    ("routines", np.dtype(f"S{_NAME}")),
    ("communicators", _COMMUNICATOR),
    ("members", np.dtype("<i4")),
    ("samples", _SAMPLE),
    ("calls", CALL),
    ("entries", ENTRY),
)


@dataclass(frozen=True, eq=False)
class RankTrace:
    """What there is of a rank.

    Attributes:
        rank: in ``MPI_COMM_WORLD``.
        host: its host's name.
        clock: ranks with the same text share a clock.
        begun: when ``MPI_Init`` ended; nanoseconds of its clock.
        ended: when ``MPI_Finalize`` was called.
        overwritten: how many calls later ones have overwritten.
        lost: how many calls were not kept for lack of memory.
        samples: of its clock; none if it is that of rank 0.
        communicators: of ``calls["communicator"]``, as places in :attr:`Trace.communicators`.
        calls: those that were kept, thread by thread; :data:`CALL`.
        entries: their events; :data:`ENTRY`.
    """

    rank: int
    host: str
    clock: str
    begun: int
    ended: int
    overwritten: int
    lost: int
    samples: tuple[Sample, ...]
    communicators: tuple[int, ...]
    calls: Array
    entries: Array

    def events_of(self, call: int) -> Array:
        """Return the events of a call."""
        first = int(self.calls["first"][call])
        events: Array = self.entries[first : first + int(self.calls["count"][call])]
        return events


@dataclass(frozen=True, eq=False)
class Trace:
    """The events of a program.

    Attributes:
        cluster: name of the topology that the library was made for.
        routines: ``collective/algorithm``, of ``calls["routine"]``.
        communicators: all of them.
        ranks: by ascending rank.
    """

    cluster: str
    routines: tuple[str, ...]
    communicators: tuple[Communicator, ...]
    ranks: tuple[RankTrace, ...]

    def recording(self) -> Recording:
        """Return the calls as a recording; ``events["sent"]`` is the place of a call in its rank's.

        So calls are aligned, and clocks compared, as those of `stagegen record` are.
        """
        functions = tuple(dict.fromkeys(name.partition("/")[0] for name in self.routines))
        ranks = tuple(_recorded(rank, self.routines, functions) for rank in self.ranks)
        return Recording(len(self.ranks), functions, ("",), self.communicators, ranks)


def _recorded(rank: RankTrace, routines: tuple[str, ...], functions: tuple[str, ...]) -> Rank:
    collectives = np.array([functions.index(name.partition("/")[0]) for name in routines])
    calls = rank.calls
    events = np.zeros(len(calls), EVENT)
    events["arrival"], events["exit"] = calls["begun"], calls["ended"]
    events["sent"] = np.arange(len(calls))
    events["received_bytes"] = calls["bytes"]
    events["flags"] = RECEIVES
    for name in ("communicator", "sequence", "root"):
        events[name] = calls[name]
    if len(calls):
        events["function"] = collectives[calls["routine"]]
    return Rank(
        rank=rank.rank,
        host=rank.host,
        clock=rank.clock,
        finished=True,
        begun=rank.begun,
        ended=rank.ended,
        dropped=rank.overwritten + rank.lost,
        uncounted=0,
        samples=rank.samples,
        sites=(Site("libcoll", 0),),
        communicators=rank.communicators,
        counts=np.zeros(1, np.int64),
        events=events,
    )


def read_trace(path: Path) -> Trace:
    """Read the file that ``LIBCOLL_EVENTS`` names.

    Raises:
        InputError: it is none, is damaged, is of another version, or cannot be read.
    """
    return read_binary(path, _read, "not a trace, or a damaged one")


def _read(data: bytes) -> Trace:
    place = 0
    parts: list[dict[str, Any]] = []
    while place < len(data) or not parts:
        part, place = _part(data, place)
        parts.append(part)
    parts.sort(key=lambda part: int(part["head"]["rank"]))
    ranks = int(parts[0]["head"]["ranks"])
    if [int(part["head"]["rank"]) for part in parts] != list(range(ranks)):
        raise ValueError(f"it has {len(parts)} parts of {ranks} ranks")
    routines = tuple(_text(name) for name in parts[0]["routines"])
    places: dict[Communicator, int] = {}
    traces = tuple(_rank(part, len(routines), places) for part in parts)
    return Trace(_text(parts[0]["head"]["cluster"]), routines, tuple(places), traces)


def _part(data: bytes, place: int) -> tuple[dict[str, Any], int]:
    if len(data) - place < _PART.itemsize:
        raise ValueError("it ends too early")
    head = np.frombuffer(data, _PART, 1, place)[0]
    if bytes(head["magic"]) != MAGIC:
        raise ValueError("it does not begin as one")
    if int(head["version"]) != VERSION or int(head["endian"]) != ENDIAN:
        raise ValueError(f"version {int(head['version'])}; {VERSION} is needed")
    place += _PART.itemsize
    part: dict[str, Any] = {"head": head}
    for (name, kind), count in zip(_SECTIONS, head["counts"], strict=True):
        if int(count) * kind.itemsize > len(data) - place:
            raise ValueError("it ends too early")
        part[name] = np.frombuffer(data, kind, int(count), place)
        place += int(count) * kind.itemsize
    return part, place


def _rank(part: dict[str, Any], routines: int, places: dict[Communicator, int]) -> RankTrace:
    head, calls, members = part["head"], part["calls"], part["members"]
    own = []
    for one in part["communicators"]:
        first, size = int(one["first"]), int(one["size"])
        ranks = tuple(int(rank) for rank in members[first : first + size])
        if len(ranks) != size:
            raise ValueError("a communicator lacks members")
        key = Communicator(ranks, (), int(one["ordinal"]))
        own.append(places.setdefault(key, len(places)))
    if len(calls) and (
        int(calls["communicator"].max()) >= len(own)
        or int(calls["routine"].max()) >= routines
        or int((calls["first"] + calls["count"]).max()) > len(part["entries"])
    ):
        raise ValueError(f"rank {int(head['rank'])} has a call that points nowhere")
    return RankTrace(
        rank=int(head["rank"]),
        host=_text(head["host"]),
        clock=_text(head["clock"]),
        begun=int(head["begun"]),
        ended=int(head["ended"]),
        overwritten=int(head["overwritten"]),
        lost=int(head["lost"]),
        samples=tuple(
            Sample(int(s["at"]) * 1e-9, int(s["offset"]) * 1e-9, int(s["error"]) * 1e-9)
            for s in part["samples"]
        ),
        communicators=tuple(own),
        calls=calls,
        entries=part["entries"],
    )


def _text(name: bytes) -> str:
    return bytes(name).decode("utf-8", "replace")
