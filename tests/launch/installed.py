"""The MPI libraries that are installed here, each with its compiler, for tests of launchers."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from docs.tools.bench_tuning.launchers import OPENMPI5, compilers
from stagegen.generate import FLAVOURS, Toolchain
from stagegen.measure.launch.mpi import mpiexec_beside


@dataclass(frozen=True)
class Installed:
    """An MPI library and the test program built with it.

    Attributes:
        flavour: `mpich` or `openmpi`.
        toolchain: builds for it.
        mpiexec: starts its programs.
        places: the program of places.c.
    """

    flavour: str
    toolchain: Toolchain
    mpiexec: Path
    places: Path

    @property
    def title(self) -> str:
        """How its version begins, as places.c prints it."""
        return f"{FLAVOURS[self.flavour]} Version"[:8]


@lru_cache
def installed(installation: str) -> Installed:
    """Return an MPI library; skips the test where it is not installed."""
    mpicc = shutil.which(compilers().get(installation, ""))
    if mpicc is None:
        pytest.skip(f"no mpicc of {installation} here ({OPENMPI5} names that of openmpi5)")
    toolchain = Toolchain(mpicc, "make")
    mpiexec = mpiexec_beside(toolchain)
    if mpiexec is None:
        pytest.skip(f"no mpiexec beside {mpicc}")
    folder = Path(tempfile.mkdtemp(prefix="stagegen-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "places"
    source = Path(__file__).with_name("places.c")
    words = ["-O1", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)]
    subprocess.run([mpicc, *words], check=True)
    return Installed(toolchain.flavour, toolchain, mpiexec, program)
