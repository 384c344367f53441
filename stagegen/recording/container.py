"""The file of a recording: what all ranks recorded, compressed (`docs/interfaces.md`).

A start names the file and its version. A header follows, JSON, and then the tables of each rank:
its counts, and its events by columns, whose bytes of equal weight stand together.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stagegen.errors import StagegenError
from stagegen.generate.write import write_whole
from stagegen.recording.binary import read_binary
from stagegen.recording.model import EVENT, Array, Communicator, Rank, Recording, Sample, Site

MAGIC = b"sgrecord"
VERSION = 1
#: Magic, version, checksum of the header, bytes of the header.
_START = struct.Struct("<8sIIQ")
_COUNT = np.dtype("<i8")
_LEVEL = 6


class RecordingError(StagegenError):
    """A recording could not be made or written."""


def write_recording(path: Path, recording: Recording) -> None:
    """Write a recording as a whole, or leave what was there.

    Raises:
        RecordingError: it cannot be written.
    """
    tables = [table for rank in recording.ranks for table in _packed(rank)]
    header = zlib.compress(json.dumps(_header(recording, tables)).encode(), _LEVEL)
    start = _START.pack(MAGIC, VERSION, zlib.crc32(header), len(header))
    try:
        write_whole(path, [start, header, *tables])
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror}") from error


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording does."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        InputError: the file is no recording, is damaged, is of another version, or cannot be read.
    """
    return read_binary(path, _read, "not a recording, or a damaged one")


def _packed(rank: Rank) -> tuple[bytes, bytes]:
    """Return the counts and the events of a rank, compressed."""
    counts = zlib.compress(_woven(rank.counts), _LEVEL)
    columns = b"".join(_woven(column) for column in _columns(rank.events))
    return counts, zlib.compress(columns, _LEVEL)


def _woven(column: Array) -> bytes:
    """Return the bytes of numbers, those of equal weight together."""
    contiguous = np.ascontiguousarray(column)
    woven: bytes = contiguous.view(np.uint8).reshape(-1, contiguous.dtype.itemsize).T.tobytes()
    return woven


def _unwoven(data: bytes, dtype: np.dtype[Any], count: int) -> Array:
    bytes_of = np.frombuffer(data, np.uint8, count * dtype.itemsize).reshape(dtype.itemsize, count)
    return np.ascontiguousarray(bytes_of.T).view(dtype).reshape(count)


def _columns(events: Array) -> Iterator[Array]:
    """Yield the columns: of arrivals the differences, of exits the time since the arrival."""
    for name in EVENT.names or ():
        column = events[name]
        if name == "arrival":
            column = np.diff(column, prepend=np.int64(0))
        elif name == "exit":
            column = np.where(column == 0, np.int64(-1), column - events["arrival"])
        yield column.astype(EVENT[name])


def _events(data: bytes, count: int) -> Array:
    if len(data) != count * EVENT.itemsize:
        raise ValueError(f"{len(data)} bytes of events, not {count * EVENT.itemsize}")
    events = np.zeros(count, EVENT)
    place = 0
    for name in EVENT.names or ():
        dtype = EVENT[name]
        events[name] = _unwoven(data[place : place + count * dtype.itemsize], dtype, count)
        place += count * dtype.itemsize
    events["arrival"] = np.cumsum(events["arrival"])
    events["exit"] = np.where(events["exit"] < 0, 0, events["arrival"] + events["exit"])
    return events


def _header(recording: Recording, tables: list[bytes]) -> dict[str, Any]:
    pairs = zip(recording.ranks, tables[::2], tables[1::2], strict=True)
    return {
        "size": recording.size,
        "functions": recording.functions,
        "operations": recording.operations,
        "communicators": [[c.members, c.remote, c.ordinal] for c in recording.communicators],
        "ranks": [
            {
                "rank": rank.rank,
                "host": rank.host,
                "clock": rank.clock,
                "finished": rank.finished,
                "begun": rank.begun,
                "ended": rank.ended,
                "dropped": rank.dropped,
                "uncounted": rank.uncounted,
                "samples": [[s.at, s.offset, s.error] for s in rank.samples],
                "sites": [[site.module, site.offset] for site in rank.sites],
                "communicators": rank.communicators,
                "counts": [len(rank.counts), len(counts), zlib.crc32(counts)],
                "events": [len(rank.events), len(events), zlib.crc32(events)],
            }
            for rank, counts, events in pairs
        ],
    }


def _read(data: bytes) -> Recording:
    if not data.startswith(MAGIC):
        raise ValueError("it does not begin like a recording")
    _, version, checksum, length = _START.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"its version is {version}, and {VERSION} is needed; record again")
    header = _piece(data, _START.size, length, checksum)
    form = json.loads(header)
    place = _START.size + length
    ranks = []
    for one in form["ranks"]:
        tables = []
        for name in ("counts", "events"):
            _, size, checksum = one[name]
            tables.append(_piece(data, place, size, checksum))
            place += size
        ranks.append(_rank(one, *tables))
    if place != len(data):
        raise ValueError(f"it has {len(data)} bytes, expected {place}")
    recording = Recording(
        int(form["size"]),
        tuple(map(str, form["functions"])),
        tuple(map(str, form["operations"])),
        tuple(
            Communicator(tuple(members), tuple(remote), int(ordinal))
            for members, remote, ordinal in form["communicators"]
        ),
        tuple(ranks),
    )
    _check(recording)
    return recording


def _piece(data: bytes, place: int, length: int, checksum: int) -> bytes:
    piece = data[place : place + length]
    if len(piece) < length:
        raise ValueError("it ends too early; copy it again, or record again")
    if zlib.crc32(piece) != checksum:
        raise ValueError("a checksum is wrong; copy it again, or record again")
    return zlib.decompress(piece)


def _rank(form: Mapping[str, Any], counts: bytes, events: bytes) -> Rank:
    return Rank(
        rank=int(form["rank"]),
        host=str(form["host"]),
        clock=str(form["clock"]),
        finished=bool(form["finished"]),
        begun=int(form["begun"]),
        ended=int(form["ended"]),
        dropped=int(form["dropped"]),
        uncounted=int(form["uncounted"]),
        samples=tuple(Sample(*map(float, one)) for one in form["samples"]),
        sites=tuple(Site(str(module), int(offset)) for module, offset in form["sites"]),
        communicators=tuple(map(int, form["communicators"])),
        counts=_unwoven(counts, _COUNT, int(form["counts"][0])),
        events=_events(events, int(form["events"][0])),
    )


def _check(recording: Recording) -> None:
    """Refuse events that point nowhere.

    Raises:
        ValueError: there is one.
    """
    for rank in recording.ranks:
        ends = {
            "function": len(recording.functions),
            "operation": len(recording.operations),
            "site": len(rank.sites),
            "communicator": len(rank.communicators),
        }
        for name, end in ends.items():
            if len(rank.events) and int(rank.events[name].max()) >= end:
                raise ValueError(f"rank {rank.rank} has an event without a `{name}`")
        if any(place >= len(recording.communicators) for place in rank.communicators):
            raise ValueError(f"rank {rank.rank} is in an unknown communicator")
