"""Counts and sizes that an int cannot hold."""

from __future__ import annotations

import os
import re

import pytest

from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 4
TRACE = re.compile(r"libcoll: rank \d+: (\w+) +(\w+) +(\d+)\.\.")
INT_MAX = 2**31 - 1
#: Messages through memory, where two gigabytes are soon copied.
SHARED = support.MEMORY


def run(*arguments: str, ranks: int = RANKS, **variables: str) -> list[tuple[str, str, int]]:
    """Run the program; return what rank 0's trace says: collective, algorithm, least size."""
    mpi = builds.Mpi.of_environment()
    program = builds.c_program(mpi, builds.library(mpi, RANKS), "large.c")
    variables = {"LIBCOLL_TRACE": "1", **variables}
    result = builds.run(mpi, ranks, program, *arguments, variables=variables, timeout=250)
    assert result.returncode == 0, result.stdout + result.stderr
    return [(name, algorithm, int(size)) for name, algorithm, size in TRACE.findall(result.stderr)]


@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_elements_that_an_int_does_not_count_are_one_of_a_type(flavour):
    """As before MPI 4, which MPICH is not."""
    mpi = builds.Mpi.of_system(flavour)
    flags = ("-DCOLL_COUNT_MOST=INT_MAX",) if flavour == "mpich" else ()
    folder = builds.library(mpi, RANKS, *flags, of=("barrier",))
    program = builds.c_program(mpi, folder, "many.c", *flags)
    result = builds.run(mpi, 1, program)
    assert result.returncode == 0, result.stdout + result.stderr


def test_small_counts_are_served_as_by_the_functions_without_large_ones():
    """All functions; the library has an algorithm of its own at some of the sizes."""
    forced = {a.collective: a.name for a in builds.small_catalogue().algorithms if _is_ours(a)}
    setting = ",".join(f"{name}={algorithm}" for name, algorithm in forced.items())
    served = run("small", LIBCOLL_FORCE=setting)
    assert {(name, algorithm) for name, algorithm, _ in served} == set(forced.items())


@pytest.mark.parametrize("variables", [{}, {"LIBCOLL_DISABLE": "1"}, {"LIBCOLL_SCRATCH": "1k"}])
def test_an_alltoallv_in_place_needs_no_counts_to_send(variables):
    run("in_place", **variables)


def _is_ours(algorithm) -> bool:
    return algorithm.name != "native" and "power_of_two" not in algorithm.constraints


def test_more_elements_than_an_int_counts_are_native():
    served = run("many")
    large = {name for name, algorithm, size in served if algorithm == "native" and size > INT_MAX}
    assert {"allgather", "alltoall", "bcast", "gather", "scatter"} <= large


def test_a_persistent_form_with_more_elements_than_an_int_counts_is_no_call():
    assert run("init") == []


@pytest.mark.slow
def test_more_bytes_than_an_int_counts_are_native():
    """2.1 GB on each of two ranks, with one count above INT_MAX and with a small one."""
    pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    if pages * size < 8 * 2**30:
        pytest.skip("less than 8 GiB of free memory")
    served = run("data", "2100", ranks=2, **SHARED)
    assert ("bcast", "native", 2**31) in served


@pytest.mark.slow
def test_blocks_that_are_more_bytes_together_than_an_int_counts_are_ours():
    """1.1 GB for each of two ranks, by the library's own; an allreduce of 2.3 GB is native."""
    pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    if pages * size < 14 * 2**30:
        pytest.skip("less than 14 GiB of free memory")
    ours = {"allgather": "ring", "alltoall": "ring", "gather": "linear", "scatter": "linear"}
    program = support.compiled("beyond.c", 2)
    forced = ",".join(f"{name}={algorithm}" for name, algorithm in ours.items())
    variables = {"LIBCOLL_FORCE": forced, "LIBCOLL_TRACE": "1", **SHARED}
    result = support.run(2, program, "1100", variables=variables, timeout=280)
    assert result.returncode == 0, result.stdout + result.stderr
    served = {(name, algorithm) for name, algorithm, size in TRACE.findall(result.stderr)}
    assert served == {*ours.items(), ("allreduce", "native")}
