"""A trace: what happened within the calls of a program (``templates/events/events.h``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
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

MAGIC, VERSION, ENDIAN = b"sgevent\n", 2, 0x01020304

#: Bytes of the names of hosts, clocks and clusters, and of those of routines.
_NAME, ROUTINE_NAME = 64, 128


class EventType(IntEnum):
    """What an event is: ``enum coll_event_type`` of ``coll.h``."""

    SENT = 1
    RECEIVED = 2
    STARTED = 3
    ARRIVED = 4
    PART = 5
    NODE_IN = 6
    NODE_UP = 7
    NODE_DOWN = 8
    NODE_OUT = 9


#: Events whose `a` is the rank at the other end, and those whose `a` is a contributor.
_OF_MESSAGES = (EventType.SENT, EventType.RECEIVED, EventType.STARTED, EventType.ARRIVED)
_OF_CONTRIBUTORS = (EventType.NODE_IN, EventType.NODE_OUT)

#: Tags of messages without data: ``COLL_TAG_TOKEN`` and ``COLL_TAG_DUMMY`` of ``coll.h``.
NO_DATA = (3, 4)

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
    ("routines", np.dtype(f"S{ROUTINE_NAME}")),
    ("communicators", _COMMUNICATOR),
    ("members", np.dtype("<i4")),
    ("samples", _SAMPLE),
    ("calls", CALL),
    ("entries", ENTRY),
)


@dataclass(frozen=True, eq=False)
class RankTrace:
    """What a trace has of a rank.

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
        InputError: the file is no trace, is damaged, is of another version, or cannot be read.
    """
    return read_binary(path, _read, "not a trace, or a damaged one")


def _read(data: bytes) -> Trace:
    offset = 0
    parts: list[dict[str, Any]] = []
    while offset < len(data) or not parts:
        part, offset = _part(data, offset)
        parts.append(part)
    parts.sort(key=lambda part: int(part["head"]["rank"]))
    ranks = len(parts)
    if any(int(part["head"]["ranks"]) != ranks for part in parts) or (
        [int(part["head"]["rank"]) for part in parts] != list(range(ranks))
    ):
        raise ValueError(f"it has {ranks} parts, but not one of each rank")
    routines = tuple(_text(name) for name in parts[0]["routines"])
    for part in parts:
        if not np.array_equal(part["routines"], parts[0]["routines"]):
            raise ValueError("its ranks have different routines")
    places: dict[Communicator, int] = {}
    traces = tuple(_rank(part, len(routines), places) for part in parts)
    return Trace(_text(parts[0]["head"]["cluster"]), routines, tuple(places), traces)


def _part(data: bytes, offset: int) -> tuple[dict[str, Any], int]:
    if len(data) - offset < _PART.itemsize:
        raise ValueError("it ends too early")
    head = np.frombuffer(data, _PART, 1, offset)[0]
    if bytes(head["magic"]) != MAGIC:
        raise ValueError("it does not begin as one")
    if int(head["endian"]) != ENDIAN:
        raise ValueError("its integers are not little-endian")
    if int(head["version"]) != VERSION:
        raise ValueError(
            f"its version is {int(head['version'])}, and {VERSION} is needed; make the library "
            "with this stagegen and run the program again"
        )
    offset += _PART.itemsize
    part: dict[str, Any] = {"head": head}
    for (name, dtype), count in zip(_SECTIONS, head["counts"], strict=True):
        if int(count) * dtype.itemsize > len(data) - offset:
            raise ValueError("it ends too early")
        part[name] = np.frombuffer(data, dtype, int(count), offset)
        offset += int(count) * dtype.itemsize
    return part, offset


def _rank(part: dict[str, Any], routines: int, places: dict[Communicator, int]) -> RankTrace:
    head, calls, entries = part["head"], part["calls"], part["entries"]
    rank = int(head["rank"])
    found = [_communicator(one, part["members"], head) for one in part["communicators"]]
    if len(set(found)) != len(found):
        raise ValueError(f"rank {rank} has a communicator twice")
    samples = [(int(s["at"]), int(s["offset"]), int(s["error"])) for s in part["samples"]]
    in_turn = all(one[0] < other[0] for one, other in pairwise(samples))
    if not in_turn or any(error < 0 for *_, error in samples):
        raise ValueError(f"rank {rank} has samples of its clock that cannot be")
    _check_calls(rank, calls, found, routines, len(entries))
    _check_events(rank, calls, entries, found)
    return RankTrace(
        rank=rank,
        host=_text(head["host"]),
        clock=_text(head["clock"]),
        begun=int(head["begun"]),
        ended=int(head["ended"]),
        overwritten=int(head["overwritten"]),
        lost=int(head["lost"]),
        samples=tuple(Sample(*(value * 1e-9 for value in sample)) for sample in samples),
        communicators=tuple(places.setdefault(one, len(places)) for one in found),
        calls=calls,
        entries=entries,
    )


def _communicator(one: Array, members: Array, head: Array) -> Communicator:
    """Return a communicator; ranks of another world are below 0."""
    first, size, place = int(one["first"]), int(one["size"]), int(one["rank"])
    rank, ranks = int(head["rank"]), int(head["ranks"])
    own = tuple(members[first : first + size].tolist()) if first >= 0 else ()
    here = [member for member in own if member >= 0]
    if (
        not 0 <= place < size == len(own)
        or own[place] != rank
        or max(here) >= ranks
        or len(set(here)) != len(here)
    ):
        raise ValueError(f"rank {rank} has a communicator whose members cannot be")
    return Communicator(own, (), int(one["ordinal"]))


def _refuse(rank: int, what: str, wrong: Mapping[str, Array]) -> None:
    """Raise an error for the first call or event with a mistake: by mistakes, where they are."""
    for mistake, places in wrong.items():
        if places.any():
            raise ValueError(f"{what} {int(places.argmax())} of rank {rank} {mistake}")


def _check_calls(
    rank: int, calls: Array, communicators: Sequence[Communicator], routines: int, entries: int
) -> None:
    _refuse(rank, "call", {"is on no communicator": calls["communicator"] >= len(communicators)})
    size = _sizes(calls, communicators)
    ends = np.cumsum(calls["count"], dtype=np.uint64)
    numbers = calls["communicator"].astype(np.uint64) << 32 | calls["sequence"]
    _refuse(
        rank,
        "call",
        {
            "is of no routine": (calls["routine"] < 0) | (calls["routine"] >= routines),
            "has a root that is no rank": (calls["root"] < -1) | (calls["root"] >= size),
            "has less than no bytes": calls["bytes"] < 0,
            "ends before it begins": calls["ended"] < calls["begun"],
            "has events that are not next": calls["first"] != ends - calls["count"],
        },
    )
    if (int(ends[-1]) if len(ends) else 0) != entries:
        raise ValueError(f"rank {rank} has events that are of no call")
    if len(np.unique(numbers)) != len(numbers):
        raise ValueError(f"rank {rank} has two calls of one number")


def _check_events(
    rank: int, calls: Array, entries: Array, communicators: Sequence[Communicator]
) -> None:
    call = np.repeat(np.arange(len(calls)), calls["count"])
    size = _sizes(calls, communicators)[call]
    types, a, time = entries["what"] & 0xFF, entries["a"], entries["time"]
    of_message, of_contributor = np.isin(types, _OF_MESSAGES), np.isin(types, _OF_CONTRIBUTORS)
    early = np.zeros(len(entries), bool)
    early[1:] = (time[1:] < time[:-1]) & (call[1:] == call[:-1])
    _refuse(
        rank,
        "event",
        {
            "is of no type": (types < min(EventType)) | (types > max(EventType)),
            "has a peer that is no rank": of_message & ((a < 0) | (a >= size)),
            "has a contributor that is no rank": of_contributor & (a >= size),
            "is earlier than the one before": early,
        },
    )


def _sizes(calls: Array, communicators: Sequence[Communicator]) -> Array:
    """Return the number of ranks of each call."""
    sizes = np.array([len(one.members) for one in communicators], np.int64)
    of_calls: Array = sizes[calls["communicator"]]
    return of_calls


def _text(name: bytes) -> str:
    return bytes(name).decode("utf-8", "replace")
