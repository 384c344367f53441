"""Writing generated folders: whole files or none, and untouched where nothing changed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from stagegen.errors import GenerateError


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write ``files`` (path below ``folder`` → text), each by an atomic replacement.

    A file that has the text already keeps its time stamp, so that make builds only what
    changed.

    Raises:
        GenerateError: the folder cannot be written (no permission, no space).
    """
    for name, text in sorted(files.items()):
        write_file(folder / name, text)


def write_file(path: Path, text: str) -> None:
    """Write one file as a whole, or raise GenerateError and leave the old one."""
    data = text.encode()
    try:
        if path.is_file() and path.read_bytes() == data:
            return
        if path.exists() and not path.is_file():  # such as /dev/stdout, which has to stay one
            with path.open("wb") as stream:
                stream.write(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path.resolve(), [data])
    except OSError as error:
        raise GenerateError(f"cannot write {path}: {error.strerror or error}") from error


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file so that other processes see either all of it or what was there before.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(pieces)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
