"""Building generated folders with make and the MPI library's compiler wrapper."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from stagegen.errors import GenerateError


@dataclass(frozen=True)
class Toolchain:
    """The programs that build generated C.

    Attributes:
        mpicc: the MPI library's C compiler wrapper.
        make: GNU make.
    """

    mpicc: str
    make: str

    @classmethod
    def find(cls, mpicc: str | None = None) -> Toolchain:
        """Find mpicc (as given, else ``$MPICC``, else beside this Python, else in PATH) and make.

        Raises:
            GenerateError: one of them is missing; the message says how to get it.
        """
        wanted = mpicc or os.environ.get("MPICC")
        beside = Path(sys.executable).parent / "mpicc"
        default = str(beside) if beside.exists() else shutil.which("mpicc")
        found = shutil.which(wanted) if wanted else default
        if found is None:
            missing = wanted or "mpicc"
            raise GenerateError(f"{missing} was not found; install MPICH or `pip install mpich`")
        make = shutil.which("make")
        if make is None:
            raise GenerateError("make was not found; install GNU make")
        return cls(found, make)


def run_make(folder: Path, toolchain: Toolchain, target: str | None = None) -> None:
    """Run make in ``folder``.

    Raises:
        GenerateError: it failed; the message ends with the compiler's own.
    """
    command = [toolchain.make, "-C", str(folder), f"-j{os.cpu_count() or 1}", "-s"]
    command += [f"MPICC={toolchain.mpicc}", *([target] if target else [])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        tail = "\n".join((result.stdout + result.stderr).splitlines()[-30:])
        raise GenerateError(f"building {folder} failed:\n{tail}")
