"""The helper that lets waiting MPICH ranks sleep: ``drivers/lab_idle.c``, compiled on demand."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from stagegen.data import DRIVERS
from stagegen.errors import LaunchError
from stagegen.measure.launch.cache import cache_folder, write_whole

_FLAGS = ("-O2", "-shared", "-fPIC", "-std=gnu11", "-Wall", "-Wextra")


def idle_library() -> Path:
    """Return the compiled helper, from the cache if it was compiled before.

    Raises:
        LaunchError: there is no C compiler, or it refuses the helper.
    """
    source = DRIVERS / "lab_idle.c"
    text = source.read_bytes()
    key = hashlib.sha256(text + " ".join((platform.machine(), *_FLAGS)).encode()).hexdigest()
    library = cache_folder() / f"lab-idle-{key[:16]}.so"
    if not library.exists():
        write_whole(library, _compile(source))
    return library


def _compile(source: Path) -> bytes:
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc")
    if compiler is None:
        raise LaunchError("no C compiler found (cc, gcc, or the one named in CC)")
    with tempfile.TemporaryDirectory(prefix="stagegen-") as folder:
        library = Path(folder) / "lab_idle.so"
        command = [compiler, *_FLAGS, "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LaunchError(f"cannot compile {source.name}: {done.stderr.strip()}")
        return library.read_bytes()
