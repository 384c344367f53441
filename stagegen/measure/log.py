"""The append-only log of measurements: JSON lines, written as they are made.

The first record is the header: what was to be tuned, and for which topology and catalogue.
Then come ``session`` (environment of the jobs), ``check``, ``measurement`` and ``failure``
records, and one of kind ``routines`` where routines changed before the log was continued.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import IO, Any

from stagegen.errors import InputError, MeasurementError
from stagegen.measure.entries import entry, natural, number
from stagegen.measure.launch.base import Environment
from stagegen.measure.records import Check, Failure, Measurement
from stagegen.measure.validity import ROUTINES

VERSION = 1


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
        self._stream: IO[bytes] | None = None
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

    def _open(self) -> IO[bytes]:
        if self._stream is None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                if self._header is not None:
                    _keep(self._path)
                self._stream = self._path.open("ab")
                _drop_torn_line(self._path)
            except OSError as error:
                raise MeasurementError(
                    f"cannot write the log {self._path}: {error.strerror}"
                ) from error
            if self._header is not None:
                self.write(self._header)
        return self._stream

    def write(self, *records: Mapping[str, Any]) -> None:
        """Append records.

        Raises:
            MeasurementError: the disk is full or gone. What was written before stays valid.
        """
        stream = self._open()
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        try:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        except OSError as error:
            raise MeasurementError(
                f"cannot write the log {self._path}: {error.strerror}; what it holds is kept: "
                "make room and go on with --resume"
            ) from error
        self._written += (record for record in records if record is not self._header)

    def close(self) -> None:
        """Close the file."""
        try:
            if self._stream is not None:
                self._stream.close()
        except OSError:  # write() has already reported what it could not flush
            return


def _keep(path: Path) -> None:
    """Move a log aside, to the first free one of ``measurements.1.jsonl`` and so on."""
    if path.exists():
        names = (path.with_suffix(f".{n}{path.suffix}") for n in count(1))
        path.rename(next(name for name in names if not name.exists()))


def _drop_torn_line(path: Path) -> None:
    """Cut off the end of a line that a killed process could not finish."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end != len(data):
        with path.open("r+b") as stream:
            stream.truncate(end)


def read_log(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the header and the other records of a log. A torn last line does not count.

    The caller checks the options in the header.

    Raises:
        InputError: it cannot be read, or a line is no record.
    """
    try:
        data = path.read_bytes()
        lines = data[: data.rfind(b"\n") + 1].decode().split("\n")  # a torn line may split a letter
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the log: {error}", path) from error
    records = [_record(path, number, line) for number, line in enumerate(lines[:-1], start=1)]
    if not records or records[0]["kind"] != "log":
        raise InputError("not a log of measurements: its header is missing", path, 1)
    if records[0].get("version") != VERSION:
        raise InputError(f"a log of version {VERSION} is needed", path, 1)
    for line, record in enumerate(records, start=1):
        try:
            read = _READERS[record["kind"]] if line > 1 else _read_header
            read(record)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"damaged record: {_said(error)}", path, line) from error
    return records[0], records[1:]


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", path, number) from error
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise InputError("not a record: it has no `kind`", path, number)
    return record


def _read_session(record: Mapping[str, Any]) -> None:
    """Check the record of a session.

    Raises:
        KeyError, TypeError, ValueError: it is not a valid one.
    """
    entry(record, "mpi", str)
    form = entry(record, "environment", dict)
    for name in ("launcher", "latency", "mpi", "mpi_version", "kernel"):
        entry(form, name, str)
    entry(form, "representative", bool)
    natural(form, "cpus", 1)
    if not 0 < number(form["scale"]) <= 1:
        raise ValueError("`scale` must be above 0 and at most 1")
    if not all(isinstance(note, str) for note in entry(form, "notes", list)):
        raise TypeError("`notes` must be a list of texts")
    if not isinstance(form.get("congestion_control"), str | None):  # old logs have none
        raise TypeError("`congestion_control` must be a name")
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
    "check": Check.from_json,
    "measurement": Measurement.from_json,
    "failure": Failure.from_json,
}


def _said(error: Exception) -> str:
    return f"{error} is missing or unknown" if isinstance(error, KeyError) else str(error)
