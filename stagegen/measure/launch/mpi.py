"""Finds ``mpiexec`` and the MPI library that it belongs to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stagegen.errors import InputError
from stagegen.generate import FLAVOURS, Toolchain

VARIABLE = "STAGEGEN_MPIEXEC"

# Debian and others install several MPI libraries beside each other under such names.
_PROGRAMS = {
    "mpich": ("mpiexec", "mpiexec.mpich", "mpiexec.hydra"),
    "openmpi": ("mpiexec", "mpiexec.openmpi", "mpirun"),
}
_SIGNS = {
    "mpich": re.compile(r"HYDRA build details:\s+Version:\s+(\S+)"),
    "openmpi": re.compile(r"\((?:Open MPI|OpenRTE)\) (\S+)"),
}


@dataclass(frozen=True)
class Mpi:
    """An installed MPI library, as far as starting programs goes.

    Attributes:
        flavour: `mpich` or `openmpi`.
        version: as ``mpiexec --version`` says it.
        mpiexec: the program that starts MPI programs.
    """

    flavour: str
    version: str
    mpiexec: Path


@lru_cache(maxsize=64)
def identify(mpiexec: Path) -> Mpi | None:
    """Return the MPI library of an ``mpiexec``, or None if it is unknown or does not run."""
    try:
        asked = subprocess.run(
            [mpiexec, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    for flavour, sign in _SIGNS.items():
        if found := sign.search(asked.stdout):
            return Mpi(flavour, found.group(1), mpiexec)
    return None


def find_mpi(flavour: str = "mpich", mpiexec: Path | None = None) -> Mpi:
    """Find an ``mpiexec`` of the wanted MPI library.

    The search order is: the argument, the variable STAGEGEN_MPIEXEC, the folder of the running
    Python (a virtual environment with an MPI wheel), PATH.

    Args:
        flavour: `mpich` or `openmpi`.
        mpiexec: the one to use, whatever else is installed.

    Raises:
        InputError: an unknown flavour; none found; or the one asked for is of another library.
    """
    if flavour not in FLAVOURS:
        raise InputError(f"unknown MPI library {flavour!r}; expected {' or '.join(FLAVOURS)}")
    named = os.environ.get(VARIABLE)
    if mpiexec is not None or named:
        return _wanted(mpiexec or Path(str(named)), flavour)
    others = []
    for candidate in _candidates(flavour):
        mpi = identify(candidate)
        if mpi is not None and mpi.flavour == flavour:
            return mpi
        others.append(str(candidate))
    besides = f" (not {FLAVOURS[flavour]}: {', '.join(others)})" if others else ""
    raise InputError(
        f"no mpiexec of {FLAVOURS[flavour]} found beside Python or in PATH{besides}; "
        f"install one, for example with `pip install {flavour}`, or name one in {VARIABLE}"
    )


def require_flavour(launcher: str, flavours: tuple[str, ...], flavour: str) -> None:
    """Refuse a program that a launcher cannot start.

    Raises:
        InputError: it was built with another MPI library.
    """
    if flavour not in flavours:
        raise InputError(
            f"launcher {launcher} cannot start programs of {flavour}; build the program with "
            f"{' or '.join(FLAVOURS[one] for one in flavours)}, or use another launcher"
        )


def mpiexec_beside(toolchain: Toolchain) -> Path | None:
    """Return the ``mpiexec`` that was installed with a compiler, if it is where it belongs.

    The variable STAGEGEN_MPIEXEC goes first, as everywhere: then None.
    """
    if os.environ.get(VARIABLE):
        return None
    compiler = Path(toolchain.mpicc)
    for program in _PROGRAMS[toolchain.flavour]:
        beside = compiler.with_name(program)
        mpi = identify(beside) if beside.exists() else None
        if mpi is not None and mpi.flavour == toolchain.flavour:
            return beside
    return None


def _wanted(mpiexec: Path, flavour: str) -> Mpi:
    found = shutil.which(mpiexec)
    mpi = identify(Path(found)) if found else None
    if mpi is None:
        raise InputError(
            f"{mpiexec}: not an mpiexec of MPICH or Open MPI that runs here; name another one in "
            f"{VARIABLE}"
        )
    if mpi.flavour != flavour:
        raise InputError(
            f"{mpiexec} belongs to {FLAVOURS[mpi.flavour]} {mpi.version}, but the program is to "
            f"be run with {FLAVOURS[flavour]}; name another one in {VARIABLE}, "
            f"or ask for --mpi {mpi.flavour}"
        )
    return mpi


def _candidates(flavour: str) -> Iterator[Path]:
    for folder in (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)):
        for program in _PROGRAMS[flavour]:
            if found := shutil.which(program, path=folder):
                yield Path(found)
