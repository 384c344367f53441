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
#: What a profiler sees of the program if it sees all but collectives.
ALL_BUT_COLLECTIVES = {"init": 1, "finalize": 1, "free": 1}
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
) -> tuple[dict[str, int], str]:
    """How often the profiler saw what it saw, on all ranks alike, and what is on stderr."""
    variables = {"TELL_WHAT_IS_SEEN": "1", "LIBCOLL_TRACE": trace, **FORCED}
    result = builds.run(mpi, RANKS, *words, preload=preload, variables=variables, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    told = re.findall(r"seen:((?: [a-z-]+ \d+)+)", result.stdout)
    assert len(told) == RANKS
    assert len(set(told)) == 1
    counts = {name: int(count) for name, count in re.findall(r"(\S+) (\d+)", told[0])}
    return {name: count for name, count in counts.items() if count > 0}, result.stderr


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_profiler_after_the_library_sees_all_but_collectives(flavour):
    mpi = mpi_of(flavour)
    shared = library(mpi) / "libcoll.so"
    told, errors = seen(mpi, (program(mpi),), shared, interposer(mpi))
    assert told == ALL_BUT_COLLECTIVES
    assert re.search(r"bcast +binomial +64\.\.127", errors)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_profiler_before_the_library_sees_all(flavour):
    """It calls PMPI_ itself, so the library serves nothing that the profiler sees."""
    mpi = mpi_of(flavour)
    shared = library(mpi) / "libcoll.so"
    told, errors = seen(mpi, (program(mpi),), interposer(mpi), shared)
    assert told == {**ALL_BUT_COLLECTIVES, "bcast": 1}
    assert "binomial" not in errors


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_preloaded_profiler_sees_all_but_collectives_of_the_static_library(flavour):
    mpi = mpi_of(flavour)
    told, errors = seen(
        mpi, (program(mpi, library(mpi) / "libcoll.a", "-pthread"),), interposer(mpi)
    )
    assert told == ALL_BUT_COLLECTIVES
    assert re.search(r"bcast +binomial +64\.\.127", errors)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_first_of_two_libraries_serves(flavour):
    """The one that comes first serves; the other is the next of the beginning and the end."""
    mpi = mpi_of(flavour)
    linked = program(mpi, library(mpi) / "libcoll.a", "-pthread")
    told, errors = seen(mpi, (linked,), library(mpi) / "libcoll.so", interposer(mpi))
    assert told == ALL_BUT_COLLECTIVES
    assert len(re.findall(r"bcast +binomial +64\.\.127", errors)) == 1


@pytest.mark.parametrize(
    ("flavour", "sessions"),
    [("wheel", {"session-init": 1, "session-finalize": 1, "from-group": 1}), ("openmpi", {})],
)
def test_a_profiler_after_the_library_sees_how_ranks_meet_and_part(flavour, sessions):
    """Sessions are there from MPI 4 on; the communicator of one is disconnected, too."""
    mpi = mpi_of(flavour)
    shared = library(mpi) / "libcoll.so"
    told, _ = seen(mpi, (program(mpi), "meetings"), shared, interposer(mpi))
    parted = {"merge": 1, "disconnect": 4 if sessions else 3}
    assert told == {**ALL_BUT_COLLECTIVES, **parted, **sessions}


#: Where plans serve the alltoall, the profiler sees the other requests; else all of them.
OTHERS = {"start": 2, "startall": 1, "request-free": 2, "cancel": 1}
ALL_REQUESTS = {"start": 2, "startall": 2, "request-free": 3, "cancel": 1}


def test_a_profiler_after_the_library_sees_other_requests():
    mpi = mpi_of("wheel")
    shared = library(mpi) / "libcoll.so"
    told, _ = seen(mpi, (program(mpi), "requests"), shared, interposer(mpi))
    assert told == {**ALL_BUT_COLLECTIVES, **OTHERS}
    linked = program(mpi, library(mpi) / "libcoll.a", "-pthread")
    told, _ = seen(mpi, (linked, "requests"), interposer(mpi))
    assert told == {**ALL_BUT_COLLECTIVES, **OTHERS}


def test_there_are_no_plans_behind_a_profiler_that_starts_requests():
    """It would start what stands for the plan, and no step of it."""
    mpi = mpi_of("wheel")
    shared = library(mpi) / "libcoll.so"
    told, _ = seen(mpi, (program(mpi), "requests"), interposer(mpi), shared)
    assert told == {**ALL_BUT_COLLECTIVES, "bcast": 1, **ALL_REQUESTS}


@pytest.mark.parametrize("flavour", ["wheel", "mpich"])
def test_revoking_a_communicator_revokes_its_private_duplicate(flavour):
    """Ranks that wait in a routine wait there. The revoking itself is the profiler's pretence."""
    mpi = mpi_of(flavour)
    shared = library(mpi) / "libcoll.so"
    told, _ = seen(mpi, (program(mpi), "revoke"), shared, interposer(mpi))
    assert told == {**ALL_BUT_COLLECTIVES, "revoke": 1, "inside": 1}
