"""The append-only log of measurements: JSON lines, written as they are made.

The first record is the header: what was to be tuned, and for which topology and catalogue.
Then come ``session`` (environment of the jobs), ``check``, ``measurement`` and ``failure``
records, one of kind ``routines`` where routines changed before the log was continued, and one of
kind ``mixed`` where the user allowed another environment.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any

from stagegen.errors import InputError, MeasurementError, what_is_wrong
from stagegen.measure.comparable import MIXED, read_mixed
from stagegen.measure.entries import entry, natural, number, rates
from stagegen.measure.launch.base import Environment
from stagegen.measure.records import Check, Failure, Measurement
from stagegen.measure.validity import ROUTINES

VERSION = 1

_ADVICE = "restore the line, or delete it and go on with --resume"


class LogWriter:
    """Appends records to a log; each batch is on the disk before ``write`` returns.

    Args:
        path: the file; created with its folder where missing.
        header: of a new log, which begins with the first record to write. Until then an older
            log at ``path`` stays; then it is kept under a name with a number.

    Raises:
        MeasurementError: it cannot be written.
    """

    def __init__(self, path: Path, header: Mapping[str, Any] | None = None):
        self._path = path
        self._header = header
        self._stream: FileIO | None = None
        self._written: list[Mapping[str, Any]] = []
        if header is None:
            self._open()

    @property
    def written(self) -> tuple[Mapping[str, Any], ...]:
        """The records that this writer has written, without the header."""
        return tuple(self._written)

    @property
    def begun(self) -> bool:
        """Whether the file is this log, and not an older one or none."""
        return self._stream is not None

    def _open(self) -> FileIO:
        if self._stream is None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                if self._header is not None:
                    _begin(self._path, _line(self._header))
                self._stream = FileIO(self._path, "ab+")
                _drop_torn_line(self._stream)
                _sync_folder(self._path)
            except OSError as error:
                raise MeasurementError(
                    f"cannot write the log {self._path}: {error.strerror}; choose another --output"
                ) from error
        return self._stream

    def write(self, *records: Mapping[str, Any]) -> None:
        """Append records: all of them, or none.

        Raises:
            MeasurementError: the disk is full or gone. What was written before stays valid.
        """
        stream = self._open()
        try:
            _append(stream, b"".join(map(_line, records)))
        except OSError as error:
            raise MeasurementError(
                f"cannot write the log {self._path}: {error.strerror}; what it holds is kept: "
                "make room and go on with --resume"
            ) from error
        self._written += records

    def close(self) -> None:
        """Close the file."""
        try:
            if self._stream is not None:
                self._stream.close()
        except OSError:  # write() has already reported what it could not write
            return


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _append(stream: FileIO, data: bytes) -> None:
    """Write bytes to the end of a file and to the disk; of what does not fit, nothing stays."""
    end = os.fstat(stream.fileno()).st_size
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[stream.write(rest) or 0 :]
        os.fsync(stream.fileno())
    except OSError:
        with suppress(OSError):
            stream.truncate(end)
            os.fsync(stream.fileno())
        raise


def _begin(path: Path, header: bytes) -> None:
    """Put a new log in place of an older one, which is kept; at any time there is one of them."""
    new = path.with_name(f".{path.name}.new")
    with FileIO(new, "wb") as stream:
        _append(stream, header)
    keep(path)
    new.replace(path)


def keep(path: Path) -> None:
    """Keep a log that is to be replaced, as ``measurements.1.jsonl``, or the next free number.

    Raises:
        OSError: the folder cannot be written.
    """
    for n in count(1):
        older = path.with_suffix(f".{n}{path.suffix}")
        if older.exists():
            continue
        try:
            os.link(path, older)
        except FileNotFoundError:
            return
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            path.rename(older)
        return


def _sync_folder(path: Path) -> None:
    """Write a file's entry in its folder to the disk."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not every file system can
            raise
    finally:
        os.close(folder)


def _whole(data: bytes) -> bytes:
    """Return a log without the end that was not written whole.

    A killed process leaves a line without an end. A machine that lost its power may leave a line
    with zeros in it, as the file's length can reach the disk before its content.
    """
    data = data[: data.rfind(b"\n") + 1]
    while data and b"\0" in (last := data[data.rfind(b"\n", 0, -1) + 1 :]):
        data = data[: -len(last)]
    return data


def _drop_torn_line(stream: FileIO) -> None:
    """Cut off the end that was not written whole."""
    stream.seek(0)
    data = stream.readall()
    if len(whole := _whole(data)) != len(data):
        stream.truncate(len(whole))
        os.fsync(stream.fileno())


def read_log(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the header and the other records of a log; an end that is torn does not count.

    The caller checks the options in the header.

    Raises:
        InputError: it cannot be read, or a line is no record.
    """
    try:
        lines = _whole(path.read_bytes()).decode().split("\n")  # a torn line may split a letter
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the log: {what_is_wrong(error)}", path) from error
    records = [_record(path, number, line) for number, line in enumerate(lines[:-1], start=1)]
    if not records or records[0]["kind"] != "log":
        raise InputError(
            "not a log of measurements: its header is missing; give a measurements.jsonl", path, 1
        )
    if records[0].get("version") != VERSION:
        found = records[0].get("version", "unknown")
        problem = f"its version is {found}, and version {VERSION} is needed"
        raise InputError(f"{problem}; measure again, or use the stagegen that wrote it", path, 1)
    for line, record in enumerate(records, start=1):
        try:
            read = _READERS[record["kind"]] if line > 1 else _read_header
            read(record)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"damaged record: {_said(error)}; {_ADVICE}", path, line) from error
    return records[0], records[1:]


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}; {_ADVICE}", path, number) from error
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise InputError(f"not a record: it has no `kind`; {_ADVICE}", path, number)
    return record


def _read_session(record: Mapping[str, Any]) -> None:
    """Check the record of a session.

    Raises:
        KeyError, TypeError, ValueError: it is not a valid one.
    """
    entry(record, "mpi", str)
    if "rates" in record:
        rates(record)
    form = entry(record, "environment", dict)
    for name in ("launcher", "latency", "mpi", "mpi_version", "kernel"):
        entry(form, name, str)
    entry(form, "representative", bool)
    natural(form, "cpus", 1)
    if not 0 < number(form["scale"]) <= 1:
        raise ValueError("`scale` must be above 0 and at most 1")
    if not all(isinstance(note, str) for note in entry(form, "notes", list)):
        raise TypeError("`notes` must be a list of texts")
    for name in ("congestion_control", "mpi_library", "program_hash"):  # old logs have none
        if not isinstance(form.get(name), str | None):
            raise TypeError(f"`{name}` must be a text")
    if "emulated" in form:
        entry(form, "emulated", bool)
    Environment.from_json(form)


def _read_header(header: Mapping[str, Any]) -> None:
    """Check the hashes of the routines in a header; old logs have none."""
    if ROUTINES in header:
        _read_routines(header)


def _read_routines(record: Mapping[str, Any]) -> None:
    """Check the hashes of the routines in a record.

    Raises:
        KeyError, TypeError: they are missing, or are not hashes.
    """
    hashes = entry(record, ROUTINES, dict)
    if not all(isinstance(value, str) for value in hashes.values()):
        raise TypeError("`routines` must have the hash of each routine")


_READERS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "session": _read_session,
    ROUTINES: _read_routines,
    MIXED: read_mixed,
    "check": Check.from_json,
    "measurement": Measurement.from_json,
    "failure": Failure.from_json,
}


def _said(error: Exception) -> str:
    return f"{error} is missing or unknown" if isinstance(error, KeyError) else str(error)
