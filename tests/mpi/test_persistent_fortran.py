"""Persistent collectives of Fortran programs have plans, and get the bytes of native calls.

The MPICH of all other tests has no functions for Fortran. Those of an older MPICH work with it:
the system's, if it has some. Libraries of MPICH are alike in what they show since version 3.1 (the
ABI compatibility initiative), so a program of one of them runs with another one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest

from tests.mpi import builds, support
from tests.mpi.test_fortran import OPTIONS
from tests.mpi.test_persistent import FORCED, library

pytestmark = pytest.mark.mpi

#: What `persistent.inc` starts, and how often in its turns and rounds.
PLANNED = ("allgatherv", "allreduce", "alltoall", "alltoallv", "barrier", "bcast")
STARTS = 6
LINE = re.compile(r"rank 0: (\w+) +persistent, planned +\d+\.\.\d+ +bytes +(\d+) starts")


@lru_cache
def fortran() -> tuple[str, Path]:
    """A compiler's wrapper, and a folder in which its MPI library has the name that it asks for."""
    wrapper = builds.Mpi.of_system("mpich").mpif90
    place = Path(support.toolchain().mpicc).parents[1] / "lib"
    newer = place / "libmpi.so.12"
    if wrapper is None or not newer.exists():
        pytest.skip(f"no {newer}, which the system's functions for Fortran could call")
    folder = support.scratch() / "fortran-with-newer"
    folder.mkdir()
    (folder / "libmpich.so.12").symlink_to(newer)
    (folder / "mpich").symlink_to(place / "mpich")  # where that library looks for others
    return wrapper, folder


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("source", ["persistent_mpif.f", "persistent_f08.f90"])
def test_persistent_calls_of_fortran_have_plans_and_get_the_bytes_of_native(source, ranks):
    """Each rank starts and completes them in orders of its own."""
    wrapper, folder = fortran()
    mpi = builds.Mpi.of_environment()
    program = builds.compiled(wrapper, support.HERE / "fortran" / source, *OPTIONS)
    settings = {
        "LD_LIBRARY_PATH": str(folder),
        "LIBCOLL_FORCE": ",".join("=".join(pair) for pair in FORCED[0].items()),
        "LIBCOLL_PERSISTENT": "tokens",  # some messages are short for links of 1 Gbit/s
        "LIBCOLL_TRACE": "1",
    }
    preload = [library(ranks=ranks) / "libcoll.so"]
    result = builds.run(mpi, ranks, program, preload=preload, variables=settings, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.split() == ["right"], result.stdout + result.stderr
    assert sorted(LINE.findall(result.stderr)) == [(name, str(STARTS)) for name in PLANNED]
