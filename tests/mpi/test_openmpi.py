"""The library built for Open MPI, which has no functions for large counts, and handles of C."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stagegen.generate import Toolchain, run_make
from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 4


def passes(source: str, *arguments: str | int, ranks: int = RANKS, **variables: str) -> None:
    mpi = builds.Mpi.of_system("openmpi")
    program = builds.c_program(mpi, builds.library(mpi, RANKS), source)
    result = builds.run(mpi, ranks, program, *arguments, variables=variables)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("abandon.c", ()),
        ("attributes.c", ()),
        ("communicators.c", ("recreate", 5000)),
        ("communicators.c", ("live", 600)),
        ("dying.c", ()),
        ("errors.c", ()),
        ("f90_types.c", ()),
        ("finalize.c", ()),
        ("finalize.c", ("used",)),
        ("finalize.c", ("apart",)),
        ("interleaved.c", (200,)),
        ("intercommunicators.c", ()),
        ("large_types.c", ()),
        ("spacing.c", (60,)),
        ("threads.c", ()),
        ("uneven.c", ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value)),
)
def test_programs_pass_with_open_mpi(source, arguments):
    """Those that MPICH's users run, too; `exhausted.c` would take a minute for 65,536 contexts."""
    passes(source, *arguments)


def test_deterministic_sums_have_the_same_bits():
    passes("deterministic.c", LIBCOLL_DETERMINISTIC="1")


def check(folder: Path, mpi: builds.Mpi, ranks: int, *arguments: str) -> int:
    """Run the check program of a library; return how many cases passed, all of them."""
    run_make(folder, Toolchain(mpi.mpicc, support.toolchain().make), "build/check")
    result = builds.run(mpi, ranks, folder / "build" / "check", *arguments, timeout=280)
    found = re.search(r"^(\d+) ranks: (\d+) passed, 0 failed$", result.stdout, re.MULTILINE)
    assert found, result.stdout + result.stderr
    assert result.returncode == 0
    assert int(found[1]) == ranks
    return int(found[2])


def test_a_few_routines_give_the_same_bytes_as_native():
    mpi = builds.Mpi.of_system("openmpi")
    assert check(builds.library(mpi, RANKS), mpi, RANKS, "quick") > 4000


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("ranks", [4, 5])
def test_every_routine_gives_the_same_bytes_as_native(ranks):
    mpi = builds.Mpi.of_system("openmpi")
    assert check(builds.library(mpi, ranks, small=False), mpi, ranks, "quick") > 20000


def test_sessions_of_open_mpi_5_may_outlive_mpi_finalize():
    """They may not begin again: Open MPI 5.0.11 itself ends with a fault then."""
    mpi = builds.Mpi.with_ulfm()
    program = builds.c_program(mpi, builds.library(mpi, 3), "sessions.c")
    result = builds.run(mpi, 3, program, "outlive")
    assert result.returncode == 0, result.stdout + result.stderr
