"""Fortran programs: mpif.h, mpi and mpi_f08, with MPICH and with Open MPI."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.adaptive.known import NOTHING_KNOWN
from stagegen.catalogue import Collective
from stagegen.generate.fortran import fortran_function
from tests.mpi import builds, support

mpi_test = pytest.mark.mpi

RANKS = 4
#: Of collectives.inc: one for each of its lengths, and one at the end.
BARRIERS = 7
FLAVOURS = ("mpich", "openmpi")
PROGRAMS = ("fixed_mpif.f", "free_mpi.f90", "free_f08.f90")
#: What competes where calls adapt.
ADAPTS = ("allreduce/rabenseifner", "allreduce/recursive_doubling", "allreduce/ring")
#: mpif.h declares nothing, so that calls with arguments of several types look like mistakes.
OPTIONS = ("-fcheck=bounds", "-std=legacy", "-fallow-argument-mismatch", "-w")
TRACE = re.compile(r"libcoll: rank 0: (\w+) +(\w+) +\d+\.\.\d+ +bytes +(\d+) calls")


def program(mpi: builds.Mpi, source: str, *link: str | Path) -> Path:
    return builds.compiled(mpi.mpif90, support.HERE / "fortran" / source, *OPTIONS, *link)


def shared_library(mpi: builds.Mpi, source: str) -> Path:
    return program(mpi, source, "-shared", "-fPIC")


def served(stderr: str) -> set[str]:
    """The collectives that the trace names with a routine of the library."""
    return {name for name, algorithm, _ in TRACE.findall(stderr) if algorithm != "native"}


def expect_right(result, collectives=frozenset(support.CATALOGUE.collectives)) -> None:
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.split() == ["right"]
    assert served(result.stderr) == set(collectives)


def settings(collective: str = "alltoallv") -> dict[str, str]:
    """The trace; and one algorithm where, as of alltoallv, a rule for all sizes says native."""
    names = {
        a.collective: a.name for a in builds.small_catalogue().algorithms if a.name != "native"
    }
    return {"LIBCOLL_TRACE": "1", "LIBCOLL_FORCE": f"{collective}={names[collective]}"}


@lru_cache
def preloaded(flavour: str, source: str):
    mpi = builds.Mpi.of_system(flavour)
    library = builds.library(mpi, RANKS) / "libcoll.so"
    return builds.run(mpi, RANKS, program(mpi, source), preload=[library], variables=settings())


@mpi_test
@pytest.mark.parametrize("source", PROGRAMS)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_preloaded_library_serves_fortran(flavour, source):
    """All collectives, in place as well, give what the ranks compute, and the library serves."""
    expect_right(preloaded(flavour, source))


@mpi_test
@pytest.mark.parametrize("source", PROGRAMS)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_linked_library_serves_fortran(flavour, source):
    """`-lcoll` before the MPI library, even where the linker drops libraries that none needs."""
    mpi = builds.Mpi.of_system(flavour)
    folder = builds.library(mpi, RANKS)
    keep = ("-Wl,--no-as-needed",) if flavour == "mpich" else ("-Wl,--as-needed",)
    linked = program(mpi, source, *keep, f"-L{folder}", "-lcoll", f"-Wl,-rpath,{folder}")
    expect_right(builds.run(mpi, RANKS, linked, variables=settings()))


@mpi_test
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_static_library_serves_fortran(flavour):
    """MPICH's functions for Fortran are in a shared library: it alone needs those in C."""
    mpi = builds.Mpi.of_system(flavour)
    archive = str(builds.library(mpi, RANKS) / "libcoll.a")
    whole = ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-pthread"]
    words = whole if flavour == "mpich" else [archive, "-pthread"]
    linked = program(mpi, "free_f08.f90", *words)
    expect_right(builds.run(mpi, RANKS, linked, variables=settings()))


@mpi_test
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_disabled_library_serves_nothing(flavour):
    mpi = builds.Mpi.of_system(flavour)
    library = builds.library(mpi, RANKS) / "libcoll.so"
    off = {**settings(), "LIBCOLL_DISABLE": "1"}
    linked = program(mpi, "free_f08.f90")
    expect_right(builds.run(mpi, RANKS, linked, preload=[library], variables=off), ())


@mpi_test
def test_a_session_of_mpi_f08_has_its_communicator():
    """MPICH alone has sessions in Fortran here. They cannot begin again in MPICH 4.0; in C they do,
    by the names of Fortran (sessions.c).
    """
    mpi = builds.Mpi.of_system("mpich")
    library = builds.library(mpi, RANKS) / "libcoll.so"
    compiled = program(mpi, "sessions_f08.f90")
    result = builds.run(mpi, RANKS, compiled, preload=[library], variables=settings("allreduce"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.split() == ["right"] * RANKS


@mpi_test
def test_every_call_is_counted_once():
    """No function of Fortran arrives twice, or past the library, through another one."""
    counts = [
        calls(preloaded(flavour, source).stderr) for flavour in FLAVOURS for source in PROGRAMS
    ]
    assert counts[0]["barrier"] == BARRIERS
    assert all(count == counts[0] for count in counts)


@mpi_test
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_lines_of_a_fortran_program_adapt_apart(tmp_path, flavour):
    """Two lines take turns with calls of one size."""
    mpi = builds.Mpi.of_system(flavour)
    chosen = [a for a in support.CATALOGUE.algorithms if a.full_name in ADAPTS]
    catalogue = support.few(chosen)
    folder = builds.of_catalogue(mpi, RANKS, "adapts", catalogue, adaptive=NOTHING_KNOWN)
    compiled = program(mpi, "two_sites.f90")
    path = tmp_path / "learned.json"
    variables = {"LIBCOLL_ADAPTIVE": "star-basic,iter=4,bound=2", "LIBCOLL_LEARN": str(path)}
    result = builds.run(mpi, RANKS, compiled, preload=[folder / "libcoll.so"], variables=variables)
    assert result.returncode == 0, result.stdout + result.stderr
    found = json.loads(path.read_text(encoding="utf-8"))["situations"]
    sites = [one["site"] for one in found if one["bytes"] == 64 and one["site"] is not None]
    assert len(sites) == len(set(sites)) == 2
    assert all(site.startswith(f"{compiled.name}+0x") for site in sites)


def calls(stderr: str) -> dict[str, int]:
    found = dict.fromkeys(support.CATALOGUE.collectives, 0)
    for name, _, number in TRACE.findall(stderr):
        found[name] += int(number)
    return found


def test_functions_follow_from_the_arguments_of_a_collective():
    arguments = ("sendbuf", "recvbuf", "recvcounts", "datatype", "op", "root", "comm")
    one = Collective("some_call", "It is none.", arguments, "one", "one", None, "whole", "", None)
    function = fortran_function(one)
    assert (function.lower, function.upper) == ("some_call", "SOME_CALL")
    assert function.has_buffers
    assert " ".join(function.c_head.split()) == (
        "static void some_call(const void *sendbuf, void *recvbuf, const MPI_Fint recvcounts[], "
        "const MPI_Fint *datatype, const MPI_Fint *op, const MPI_Fint *root, const MPI_Fint *comm, "
        "MPI_Fint *ierror) {"
    )
    assert " ".join(function.c_call.split()) == (
        "answer(ierror, MPI_Some_call(address(sendbuf), address(recvbuf), recvcounts, "
        "datatype_of(*datatype), operation_of(*op), (int)*root, communicator_of(*comm)));"
    )
