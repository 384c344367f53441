"""One run at a time writes a generated folder and its log."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stagegen.errors import MeasurementError
from stagegen.generate.lock import HeldError, take

_LOCK = ".tuning"


def this_process() -> str:
    """Return what others are told of this process, which holds something."""
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made if need be, against other runs.

    Raises:
        MeasurementError: another run holds it, or it cannot be written.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = take(folder / _LOCK, this_process(), wait=False)
    except HeldError as error:
        message = f"{error.strerror} is tuning into {folder}: wait for it, or choose another"
        raise MeasurementError(f"{message} --output") from error
    except OSError as error:
        raise MeasurementError(
            f"cannot write {folder}: {error.strerror}; choose another --output"
        ) from error
    try:
        yield
    finally:
        lock.release()
        if is_new:
            with suppress(OSError):  # it is not empty: the run has begun
                folder.rmdir()
