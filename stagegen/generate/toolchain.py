"""Building generated folders with make and the MPI library's compiler wrapper."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from stagegen.errors import GenerateError
from stagegen.generate.lock import take

#: Held while a folder is built; it stays if the build is cut off.
_MAKING = ".making"

#: Seconds that make gets to end itself and to remove what is half made.
_GRACE = 5.0

#: The MPI libraries that programs can be built with, and their names for people.
FLAVOURS = {"mpich": "MPICH", "openmpi": "Open MPI"}


@dataclass(frozen=True)
class Toolchain:
    """The programs that build generated C.

    Attributes:
        mpicc: the MPI library's C compiler wrapper.
        make: GNU make.
    """

    mpicc: str
    make: str

    @property
    def flavour(self) -> str:
        """The MPI library that it builds for: `mpich` (and what descends from it) or `openmpi`."""
        return _flavour(self.mpicc)

    @property
    def variables(self) -> tuple[str, ...]:
        """What make is told: the wrapper, and the compiler that it calls, which starts sooner.

        The wrapper is a script that takes longer than the compiler for a small file.
        """
        return f"MPICC={self.mpicc}", f"COMPILE={_compile(self.mpicc)}"

    @classmethod
    def find(cls, mpicc: str | None = None, flavours: Sequence[str] = tuple(FLAVOURS)) -> Toolchain:
        """Find mpicc (as given, else ``$MPICC``, else beside this Python, else in PATH) and make.

        Args:
            mpicc: the compiler to use.
            flavours: the MPI libraries for which it may build.

        Raises:
            GenerateError: one of them is missing, or the compiler is of another MPI library; the
                message says how to get it.
        """
        wanted = mpicc or os.environ.get("MPICC")
        found = _named(wanted, flavours) if wanted else _first(flavours)
        make = shutil.which("make")
        if make is None:
            raise GenerateError("make was not found; install GNU make")
        return cls(found, make)


def _named(mpicc: str, flavours: Sequence[str]) -> str:
    found = shutil.which(mpicc)
    if found is None:
        raise GenerateError(f"{mpicc} was not found; {_advice(flavours)}")
    flavour = _flavour(found)
    if flavour not in flavours:
        raise GenerateError(
            f"{mpicc} builds for {FLAVOURS[flavour]}, but the launcher starts programs of "
            f"{_titles(flavours)}; name its compiler with --mpicc"
        )
    return found


def _first(flavours: Sequence[str]) -> str:
    for candidate in _compilers(flavours):
        if _flavour(candidate) in flavours:
            return candidate
    raise GenerateError(f"mpicc of {_titles(flavours)} was not found; {_advice(flavours)}")


def _compilers(flavours: Sequence[str]) -> Iterator[str]:
    """Yield what may be the compiler; Debian installs MPI libraries beside each other."""
    names = ("mpicc", *(f"mpicc.{flavour}" for flavour in flavours))
    for folder in (str(Path(sys.executable).parent), None):
        yield from filter(None, (shutil.which(name, path=folder) for name in names))


def _titles(flavours: Sequence[str]) -> str:
    return " or ".join(FLAVOURS[flavour] for flavour in flavours)


def _advice(flavours: Sequence[str]) -> str:
    return f"install {_titles(flavours)}, for example with `pip install {flavours[0]}`"


@lru_cache(maxsize=64)
def _flavour(mpicc: str) -> str:
    """Return the MPI library of a compiler; only that of Open MPI tells its name when asked so."""
    try:
        asked = subprocess.run(
            [mpicc, "--showme:version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "mpich"
    return "openmpi" if "Open MPI" in asked.stdout + asked.stderr else "mpich"


#: How a wrapper's options begin: those that compiling needs, and those for linking only.
_COMPILING = ("-I", "-D", "-U", "-f", "-m", "-pthread")
_LINKING = ("-L", "-l", "-Wl,", "-O", "-g")


def _compile(mpicc: str) -> str:
    """Return the command with which a wrapper compiles; the wrapper itself if it does not tell."""
    return _compile_with(mpicc, *(os.environ.get(name) for name in ("MPICH_CC", "OMPI_CC")))


@lru_cache(maxsize=64)
def _compile_with(mpicc: str, *_: str | None) -> str:
    """Ask the wrapper once for each value of the variables that change its answer."""
    try:
        asked = subprocess.run(
            [mpicc, "-show"], capture_output=True, text=True, timeout=20, check=False
        )
        words = shlex.split(asked.stdout) if asked.returncode == 0 else []
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return mpicc
    programs = list(takewhile(lambda word: not word.startswith("-"), words))
    options = words[len(programs) :]
    known = all(option.startswith((*_COMPILING, *_LINKING)) for option in options)
    flags = [option for option in options if option.startswith(_COMPILING)]
    if not known or not flags or not programs or not all(map(shutil.which, programs)):
        return mpicc
    return shlex.join([*programs, *flags])


def run_make(
    folder: Path,
    toolchain: Toolchain,
    target: str | None = None,
    variables: Sequence[str] = (),
) -> None:
    """Run make in ``folder``, one at a time; after a build that was cut off, make all anew.

    A compiler that is killed leaves half a file, which is newer than its source.

    Args:
        folder: has the Makefile.
        toolchain: what it calls.
        target: to make; None: the Makefile's first.
        variables: as ``NAME=value``, besides those of the toolchain.

    Raises:
        GenerateError: it failed; the message ends with the compiler's own.
    """
    command = [toolchain.make, "-C", str(folder), f"-j{os.cpu_count() or 1}", "-s"]
    command += [*toolchain.variables, *variables, *([target] if target else [])]
    with _building(folder) as (descriptors, cut_off):
        status, output = _run([*command, *(["-B"] if cut_off else [])], descriptors)
        if status < 0:  # raised here, so that the next build knows that this one was cut off
            raise GenerateError(f"building {folder} failed: make was ended by signal {-status}")
    if status != 0:
        tail = "\n".join(output.splitlines()[-30:])
        raise GenerateError(f"building {folder} failed:\n{tail}")


@contextmanager
def _building(folder: Path) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Hold a folder until make and all that it started are gone, even if this process is killed.

    Yields:
        The descriptors that make is to have, and whether the build before was cut off.
    """
    try:
        lock = take(folder / _MAKING, "make", wait=True)
    except OSError:  # a folder that cannot be written: there is nothing to build, or make says so
        yield (), False
        return
    try:
        yield (lock.descriptor,), bool(lock.left)
    except BaseException:
        lock.abandon()
        raise
    lock.release()


def _run(command: Sequence[str], descriptors: tuple[int, ...]) -> tuple[int, str]:
    """Run a command; return its status and its output. If interrupted, end all that it started."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=descriptors,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            _end_group(process)
            raise
    return process.returncode, output


def _end_group(process: subprocess.Popen[str]) -> None:
    """End a process and its group: make removes what is half made if it is asked to end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(_GRACE)
