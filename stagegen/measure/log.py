"""The append-only log of measurements: JSON lines, written as they are made.

The first record is the header: what was to be tuned, and for which topology and catalogue.
Then come ``session`` (environment of the jobs), ``check`` and ``measurement`` records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from stagegen.errors import InputError, MeasurementError

VERSION = 1


class LogWriter:
    """Appends records to a log; each batch is on the disk before ``write`` returns.

    Args:
        path: the file; created with its folder where missing.

    Raises:
        MeasurementError: it cannot be written.
    """

    def __init__(self, path: Path):
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream: IO[bytes] = path.open("ab")
            _drop_torn_line(path)
        except OSError as error:
            raise MeasurementError(f"cannot write the log {path}: {error.strerror}") from error

    def write(self, *records: Mapping[str, Any]) -> None:
        """Append records.

        Raises:
            MeasurementError: the disk is full or gone. What was written before stays valid.
        """
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        try:
            self._stream.write(text.encode())
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise MeasurementError(
                f"cannot write the log {self._path}: {error.strerror}; what it holds is kept: "
                "make room and go on with --resume"
            ) from error

    def close(self) -> None:
        """Close the file."""
        try:
            self._stream.close()
        except OSError:  # what could not be flushed was told by write() already
            return


def _drop_torn_line(path: Path) -> None:
    """Cut off the end of a line that a killed process could not finish."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end != len(data):
        with path.open("r+b") as stream:
            stream.truncate(end)


def read_log(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the header and the other records of a log. A torn last line does not count.

    Raises:
        InputError: it cannot be read, or a line is no record.
    """
    try:
        data = path.read_bytes()
        lines = data[: data.rfind(b"\n") + 1].decode().split("\n")  # a torn line may tear a letter
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the log: {error}", path) from error
    records = [_record(path, number, line) for number, line in enumerate(lines[:-1], start=1)]
    if not records or records[0]["kind"] != "log":
        raise InputError("not a log of measurements: its header is missing", path, 1)
    if records[0].get("version") != VERSION:
        raise InputError(f"a log of version {VERSION} is needed", path, 1)
    return records[0], records[1:]


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", path, number) from error
    if not isinstance(record, dict) or "kind" not in record:
        raise InputError("not a record: it has no `kind`", path, number)
    return record
