"""Parts of recordings, as the recorder writes them (``templates/recorder/recorder.h``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stagegen.errors import InputError
from stagegen.recording.binary import read_binary
from stagegen.recording.model import EVENT, Array, Communicator, Rank, Recording, Sample, Site

MAGIC = b"sgrecpt\n"
VERSION = 1
_NATIVE_ORDER = 0x01020304

_SECTION = np.dtype([("place", "<u8"), ("room", "<u8"), ("size", "<u8"), ("used", "<u8")])
_SECTIONS = (
    "functions",
    "operations",
    "sites",
    "communicators",
    "members",
    "samples",
    "counts",
    "events",
)
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("endian", "<u4"),
        ("bytes", "<u8"),
        ("world", "<u8"),
        ("rank", "<i4"),
        ("ranks", "<i4"),
        ("spawned", "<i4"),
        ("finished", "<i4"),
        ("begun", "<i8"),
        ("ended", "<i8"),
        ("unnamed", "<u8"),
        ("uncounted", "<u8"),
        ("host", "S64"),
        ("clock", "S64"),
        ("sections", _SECTION, (len(_SECTIONS),)),
    ]
)
_NAME = np.dtype("S32")
_ENTRIES: Mapping[str, np.dtype[np.void] | np.dtype[np.bytes_] | np.dtype[np.signedinteger]] = {
    "functions": _NAME,
    "operations": _NAME,
    "sites": np.dtype([("offset", "<u8"), ("module", "S120")]),
    "communicators": np.dtype(
        [
            ("hash", "<u8"),
            ("first", "<u8"),
            ("ordinal", "<u4"),
            ("rank", "<i4"),
            ("size", "<i4"),
            ("remote", "<i4"),
            ("is_first", "<i4"),
            ("calls", "<u4"),
        ]
    ),
    "members": np.dtype("<i4"),
    "samples": np.dtype([("at", "<i8"), ("offset", "<i8"), ("error", "<i8")]),
    "counts": np.dtype("<i8"),
    "events": EVENT,
}


@dataclass(frozen=True, eq=False)
class Part:
    """A rank's part of a recording.

    Attributes:
        world: tells ``MPI_COMM_WORLD`` from those of spawned processes.
        spawned: whether other processes of the program started this one.
        size: the number of ranks.
        functions: names of MPI's functions.
        operations: names of operations.
        communicators: those that the rank is in.
        rank: what was recorded; its communicators are places in :attr:`communicators`.
    """

    world: int
    spawned: bool
    size: int
    functions: tuple[str, ...]
    operations: tuple[str, ...]
    communicators: tuple[Communicator, ...]
    rank: Rank


def read_parts(path: Path) -> tuple[Part, ...]:
    """Read a file of one or more parts.

    Raises:
        InputError: the file has no parts, is damaged, or cannot be read.
    """
    return read_binary(path, lambda data: tuple(_parts(data)), "damaged part of a recording")


def _parts(data: bytes) -> Iterator[Part]:
    start = 0
    while start < len(data):
        part, start = _part(data, start)
        yield part
    if start == 0:
        raise ValueError("it is empty")


def _part(data: bytes, start: int) -> tuple[Part, int]:
    """Return the part that begins at a place, and where it ends."""
    header = _array(data, start, _HEADER, 1)[0]
    if bytes(data[start : start + len(MAGIC)]) != MAGIC:
        raise ValueError("it does not begin like a part of a recording")
    if header["endian"] != _NATIVE_ORDER:
        raise ValueError(
            "it was written by a processor of another byte order; read it on such a machine"
        )
    if header["version"] != VERSION or header["bytes"] != _HEADER.itemsize:
        problem = f"its version is {header['version']}, and {VERSION} is needed"
        raise ValueError(f"{problem}; record again with this stagegen")
    if not 0 <= header["rank"] < header["ranks"]:
        raise ValueError(f"rank {header['rank']} of {header['ranks']}")
    place = start + _HEADER.itemsize
    tables: dict[str, Array] = {}
    for name, section in zip(_SECTIONS, header["sections"], strict=True):
        dtype = _ENTRIES[name]
        if section["size"] != dtype.itemsize:
            raise ValueError(f"entries of {section['size']} bytes in `{name}`")
        count = int(min(section["used"], section["room"]))
        tables[name] = _array(data, place, dtype, count)
        place += count * dtype.itemsize
    return _of_tables(header, tables), place


def _array(data: bytes, start: int, dtype: np.dtype[np.generic], count: int) -> Array:
    if start + count * dtype.itemsize > len(data):
        raise ValueError("it ends too early; copy it again, or record again")
    return np.frombuffer(data, dtype, count, start)


def _of_tables(header: Array, tables: Mapping[str, Array]) -> Part:
    events = tables["events"]
    section = header["sections"][_SECTIONS.index("events")]
    lost = max(0, int(section["used"]) - int(section["room"]))
    communicators = tuple(_communicators(tables["communicators"], tables["members"]))
    _check(events, tables, len(communicators))
    rank = Rank(
        rank=int(header["rank"]),
        host=_text(header["host"]),
        clock=_text(header["clock"]),
        finished=bool(header["finished"]),
        begun=int(header["begun"]),
        ended=int(header["ended"]),
        dropped=lost + int(header["unnamed"]),
        uncounted=int(header["uncounted"]),
        samples=tuple(
            Sample(*(float(value) * 1e-9 for value in one)) for one in tables["samples"].tolist()
        ),
        sites=tuple(Site(_text(one["module"]), int(one["offset"])) for one in tables["sites"]),
        communicators=tuple(range(len(communicators))),
        counts=tables["counts"],
        events=events if events["arrival"].all() else events[events["arrival"] != 0],
    )
    return Part(
        world=int(header["world"]),
        spawned=bool(header["spawned"]),
        size=int(header["ranks"]),
        functions=tuple(map(_text, tables["functions"])),
        operations=tuple(map(_text, tables["operations"])),
        communicators=communicators,
        rank=rank,
    )


def _text(value: Any) -> str:
    """Return a text; names of files may have any bytes, and may be cut within a letter."""
    return bytes(value).decode(errors="replace")


def _check(events: Array, tables: Mapping[str, Array], communicators: int) -> None:
    """Refuse events that point nowhere.

    Raises:
        ValueError: there is one.
    """
    ends = {
        "function": len(tables["functions"]),
        "operation": len(tables["operations"]),
        "site": len(tables["sites"]),
        "communicator": communicators,
    }
    for name, end in ends.items():
        if len(events) and int(events[name].max()) >= end:
            raise ValueError(f"an event with `{name}` {int(events[name].max())} of {end}")
    counts = tables["counts"]
    for name in ("send_counts", "recv_counts"):
        places = np.unique(events[name][events[name] != 0])
        if len(places) and (
            int(places.max()) >= len(counts)
            or np.any(places.astype(np.int64) + counts[places] >= len(counts))
        ):
            raise ValueError(f"an event whose `{name}` are not there")


def _communicators(entries: Array, members: Array) -> Iterator[Communicator]:
    shared: dict[tuple[int, int], tuple[int, ...]] = {}  # many communicators have the same members
    for one in entries:
        first, size, remote = int(one["first"]), int(one["size"]), int(one["remote"])
        if not (size >= 0 and remote >= 0 and first + size + remote <= len(members)):
            raise ValueError("a communicator whose members are not there")
        place = first, size + remote
        if place not in shared:
            shared[place] = tuple(map(int, members[first : first + size + remote]))
        listed = shared[place]
        middle = size if one["is_first"] else remote
        yield Communicator(
            listed[:middle] if remote else listed,
            listed[middle:] if remote else (),
            int(one["ordinal"]),
        )


def merged(parts: Sequence[Part]) -> tuple[Recording, ...]:
    """Return the recordings that some parts make: one for each ``MPI_COMM_WORLD``.

    Of two parts of one rank, the one that came to ``MPI_Finalize`` counts. The first recording is
    that of the processes that no other process of the program started.

    Raises:
        InputError: parts of one world contradict each other.
    """
    worlds: dict[int, dict[int, Part]] = {}
    for part in parts:
        ranks = worlds.setdefault(part.world, {})
        before = ranks.get(part.rank.rank)
        if before is None or part.rank.finished:
            ranks[part.rank.rank] = part
    ordered = sorted(worlds.values(), key=_first_in_job)
    return tuple(_recording([ranks[rank] for rank in sorted(ranks)]) for ranks in ordered)


def _first_in_job(ranks: Mapping[int, Part]) -> tuple[bool, int]:
    one = next(iter(ranks.values()))
    return one.spawned, min(part.rank.begun for part in ranks.values())


def _recording(parts: Sequence[Part]) -> Recording:
    first = parts[0]
    places: dict[Communicator, int] = {}
    ranks = []
    for part in parts:
        if (part.size, part.functions) != (first.size, first.functions):
            raise InputError(
                "the files are parts of different recordings; give each its own folder"
            )
        own = tuple(places.setdefault(one, len(places)) for one in part.communicators)
        ranks.append(replace(part.rank, communicators=own))
    return Recording(first.size, first.functions, first.operations, tuple(places), tuple(ranks))
