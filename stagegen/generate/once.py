"""Building into a folder that several processes share, such as one of the user's cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stagegen.generate.toolchain import Toolchain, run_make
from stagegen.generate.write import write_file, write_files


def build_once(folder: Path, files: Mapping[str, str], toolchain: Toolchain, target: str) -> Path:
    """Return a target of a Makefile, whole; build it if no process did so before.

    That the target exists is no sign of it: a compiler may still be writing it, or may have been
    killed. An empty file beside it says that make had made it.

    Args:
        folder: holds these files only; its name changes whenever they do.
        files: the Makefile, and what it needs.
        toolchain: what make calls.
        target: a file in the folder.

    Raises:
        GenerateError: the folder cannot be written, or the build failed.
    """
    made, whole = folder / target, folder / f".{target}.made"
    if not (whole.exists() and made.exists()):
        write_files(folder, files)
        run_make(folder, toolchain, target)
        write_file(whole, "")
    return made
