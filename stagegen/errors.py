"""Typed errors. Each says where it happened and carries the exit status of the command."""

from __future__ import annotations

import re
from pathlib import Path

#: How Python says that a value has another type than the code expects.
_OF_PYTHON = re.compile(
    r"'\w+' object|object is not|\w+\(\) (got|missing|takes|argument)|indices must be"
)


class StagegenError(Exception):
    """Base of all errors that a user is told about; ends a command with exit status 1."""

    exit_status = 1


class InputError(StagegenError):
    """A file or an argument of the user is wrong; exit status 2.

    Args:
        message: what is wrong, and what would be right.
        file: the file that holds the mistake, if there is one.
        line: its line, counted from 1.
    """

    exit_status = 2

    def __init__(self, message: str, file: Path | str | None = None, line: int | None = None):
        self.message = message
        self.file = file
        self.line = line
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)


class NotFoundError(StagegenError):
    """The asked-for object does not exist (for example a 2-hop ring); exit status 3."""

    exit_status = 3


class ScheduleError(StagegenError):
    """A schedule breaks one of its properties; names the rank, phase or message."""


class GenerateError(StagegenError):
    """A template could not be rendered, or the generated C could not be built."""


class LaunchError(StagegenError):
    """An MPI job could not be started, or ended when it should not have."""


class MeasurementError(StagegenError):
    """A measurement failed; names the algorithm, the size and, where known, the rank."""


def what_is_wrong(error: Exception) -> str:
    """Return what an error of reading data says, without words of Python.

    Args:
        error: such as the KeyError of an entry that JSON from elsewhere lacks.
    """
    if isinstance(error, KeyError):
        return f"`{error.args[0]}` is missing"
    text = str(error)
    return "a value has another form than expected" if _OF_PYTHON.search(text) else text
