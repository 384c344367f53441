"""Every routine and the MPI_ entry points against the MPI library's own, byte by byte."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.mpi import support

pytestmark = pytest.mark.mpi

RANKS = (1, 2, 3, 4, 5, 7, 8, 16)


def check(ranks: int, *arguments: str, timeout: float = 240) -> int:
    """Run the check program of a library; return how many cases passed, all of them."""
    program = support.library(ranks) / "build" / "check"
    result = support.run(ranks, program, *arguments, timeout=timeout)
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
    passed = re.fullmatch(r"(\d+) ranks: (\d+) passed, 0 failed\n", result.stdout)
    assert passed is not None, result.stdout
    assert int(passed[1]) == ranks
    return int(passed[2])


@pytest.mark.parametrize("ranks", RANKS)
def test_every_routine_gives_the_same_bytes_as_native(ranks):
    topology = support.cluster(ranks)
    names = set(support.CATALOGUE.collectives) - {"barrier"}  # of which there is one call only
    routines = sum(len(support.serving(topology, name)) for name in names)
    assert check(ranks) > 20 * (routines if ranks > 1 else len(names))


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("ranks", [9, 13, 16])
def test_all_combinations_on_many_ranks(ranks):
    assert check(ranks, "full", timeout=1200) > 4000


def test_make_check_with_plain_mpiexec():
    """As users call it, with no launcher of ours."""
    folder = support.library(3)
    mpicc = Path(support.toolchain().mpicc)
    result = subprocess.run(
        ["make", "-C", folder, "check", f"MPICC={mpicc}", f"MPIEXEC={mpicc.parent / 'mpiexec'}"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 ranks:" in result.stdout
