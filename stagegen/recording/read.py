"""Reading recordings, whole or in parts."""

from __future__ import annotations

from pathlib import Path

from stagegen.errors import InputError
from stagegen.recording.container import is_recording, read_recording
from stagegen.recording.model import Recording
from stagegen.recording.parts import Part, merged, read_parts

#: Parts end so; they are in the folder FILE.parts beside the recording FILE.
PART, PARTS = ".part", ".parts"
#: What a process may still write ends so.
WRITING = ".writing"


def read(path: Path) -> Recording:
    """Read a recording: a file of ``stagegen record``, a part, or a folder of parts.

    Of a folder with the parts of several ``MPI_COMM_WORLD``, the first one counts.

    Raises:
        InputError: there is none, or it is damaged.
    """
    if path.is_dir():
        return recordings_of(path)[0]
    if is_recording(path):
        return read_recording(path)
    return merged(read_parts(path))[0]


def recordings_of(folder: Path) -> tuple[Recording, ...]:
    """Return the recordings that the parts of a folder make: one for each ``MPI_COMM_WORLD``.

    Raises:
        InputError: there is no part, or one is damaged.
    """
    parts: list[Part] = []
    for path in sorted(folder.glob(f"*{PART}")):
        parts += read_parts(path)
    if not parts:
        advice = "give the folder of one, as `stagegen record` made it"
        raise InputError(f"there is no part of a recording, NAME{PART}; {advice}", folder)
    return merged(parts)
