"""The lab's small C programs of ``drivers/``, compiled on first use and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from stagegen.data import DRIVERS
from stagegen.errors import LaunchError, StagegenError
from stagegen.generate.write import write_whole
from stagegen.measure.launch.cache import cache_folder
from stagegen.measure.launch.mpi import find_mpi

_FLAGS = ("-O2", "-std=gnu11", "-Wall", "-Wextra")


def idle_library() -> Path:
    """Return ``lab_idle.c`` as a library, which lets waiting ranks sleep.

    Raises:
        LaunchError: there is no C compiler, or it refuses the helper.
    """
    return _compiled("lab_idle", ".so", ("-shared", "-fPIC"))


def lacking_here(mpi: str, mpiexec: Path | None) -> str | None:
    """Return what ranks on this machine lack: an MPI library, or the idle library; or None."""
    try:
        find_mpi(mpi, mpiexec)
        idle_library()
    except StagegenError as error:
        return str(error)
    return None


def relay_program() -> Path:
    """Return ``lab_relay.c`` as a program, which holds the frames of a long link.

    Raises:
        LaunchError: there is no C compiler, or it refuses the helper.
    """
    program = _compiled("lab_relay", "", ())
    program.chmod(0o755)
    return program


def _compiled(name: str, suffix: str, more: tuple[str, ...]) -> Path:
    """Return a compiled helper, from the cache if it was compiled before."""
    source = DRIVERS / f"{name}.c"
    flags = (*_FLAGS, *more)
    asked = source.read_bytes() + " ".join((platform.machine(), *flags)).encode()
    key = hashlib.sha256(asked).hexdigest()
    result = cache_folder() / f"{name.replace('_', '-')}-{key[:16]}{suffix}"
    if not result.exists():
        write_whole(result, [_compile(source, flags)])
    return result


def _compile(source: Path, flags: tuple[str, ...]) -> bytes:
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc")
    if compiler is None:
        raise LaunchError("no C compiler found; install gcc, or set CC")
    with tempfile.TemporaryDirectory(prefix="stagegen-") as folder:
        result = Path(folder) / source.stem
        command = [compiler, *flags, "-o", str(result), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LaunchError(f"cannot compile {source.name}: {done.stderr.strip()}")
        return result.read_bytes()
