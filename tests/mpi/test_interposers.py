"""A profiler beside the library sees the program begin and end, wherever it stands."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 4
SEEN = re.compile(
    r"seen: init (\d+) finalize (\d+) free (\d+) bcast (\d+) revoke (\d+) inside (\d+)"
)
FLAVOURS = ("wheel", "mpich", "openmpi")
#: A routine of ours for the one broadcast.
FORCED = {"LIBCOLL_FORCE": "bcast=binomial"}


def mpi_of(flavour: str) -> builds.Mpi:
    return builds.Mpi.of_environment() if flavour == "wheel" else builds.Mpi.of_system(flavour)


@lru_cache
def interposer(mpi: builds.Mpi) -> Path:
    made = support.scratch() / f"interposer-{builds._plain(mpi.mpicc)}.so"
    source = support.HERE / "interposer.c"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([mpi.mpicc, *flags, source, "-o", made], check=True)
    return made


@lru_cache
def program(mpi: builds.Mpi, *link: str | Path) -> Path:
    return builds.compiled(mpi.mpicc, support.HERE / "seen.c", "-std=c11", *link)


def library(mpi: builds.Mpi) -> Path:
    return builds.library(mpi, RANKS)


def seen(
    mpi: builds.Mpi, words: tuple[str | Path, ...], *preload: Path, trace: str = "1"
) -> tuple[set[tuple[int, ...]], str]:
    """What the profiler tells on the ranks, and what is on stderr."""
    variables = {"TELL_WHAT_IS_SEEN": "1", "LIBCOLL_TRACE": trace, **FORCED}
    result = builds.run(mpi, RANKS, *words, preload=preload, variables=variables, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    told = [tuple(map(int, line.groups())) for line in SEEN.finditer(result.stdout)]
    assert len(told) == RANKS
    return set(told), result.stderr


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_profiler_after_the_library_sees_all_but_collectives(flavour):
    mpi = mpi_of(flavour)
    shared = library(mpi) / "libcoll.so"
    told, errors = seen(mpi, (program(mpi),), shared, interposer(mpi))
    assert told == {(1, 1, 1, 0, 0, 0)}
    assert re.search(r"bcast +binomial +64\.\.127", errors)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_profiler_before_the_library_sees_all(flavour):
    """It calls PMPI_ itself, so the library serves nothing that the profiler sees."""
    mpi = mpi_of(flavour)
    shared = library(mpi) / "libcoll.so"
    told, errors = seen(mpi, (program(mpi),), interposer(mpi), shared)
    assert told == {(1, 1, 1, 1, 0, 0)}
    assert "binomial" not in errors


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_preloaded_profiler_sees_all_but_collectives_of_the_static_library(flavour):
    mpi = mpi_of(flavour)
    told, errors = seen(
        mpi, (program(mpi, library(mpi) / "libcoll.a", "-pthread"),), interposer(mpi)
    )
    assert told == {(1, 1, 1, 0, 0, 0)}
    assert re.search(r"bcast +binomial +64\.\.127", errors)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_of_the_library_twice_the_first_serves(flavour):
    """The one that comes first serves; the other is the next of the beginning and the end."""
    mpi = mpi_of(flavour)
    linked = program(mpi, library(mpi) / "libcoll.a", "-pthread")
    told, errors = seen(mpi, (linked,), library(mpi) / "libcoll.so", interposer(mpi))
    assert told == {(1, 1, 1, 0, 0, 0)}
    assert len(re.findall(r"bcast +binomial +64\.\.127", errors)) == 1


@pytest.mark.parametrize("flavour", ["wheel", "mpich"])
def test_revoking_a_communicator_revokes_its_private_duplicate(flavour):
    """Ranks that wait in a routine wait there. The revoking itself is the profiler's pretence."""
    mpi = mpi_of(flavour)
    shared = library(mpi) / "libcoll.so"
    told, _ = seen(mpi, (program(mpi), "revoke"), shared, interposer(mpi))
    assert told == {(1, 1, 1, 0, 1, 1)}
