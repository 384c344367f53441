"""Routines send the data that there is and nothing else, and do not pack plain bytes."""

from __future__ import annotations

import pytest

from stagegen.catalogue.algorithm import NATIVE
from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

#: More than twice the neighbours of a rank in a sparse exchange; no power of two.
RANKS = 13
UNEVEN = ("allgatherv", "alltoallv")
DENSE = ("allgather", "alltoall", "bcast", "gather", "scatter")

LIBRARIES = ("environment", "openmpi", pytest.param("mpich", marks=pytest.mark.slow))


def mpi_of(which: str) -> builds.Mpi:
    return builds.Mpi.of_environment() if which == "environment" else builds.Mpi.of_system(which)


def passes(mpi: builds.Mpi, ranks: int, source: str, of: tuple[str, ...], *arguments: int) -> str:
    program = builds.c_program(mpi, builds.library(mpi, ranks, of=of), source, *builds.COUNTING)
    result = builds.run(mpi, ranks, program, *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def radixes(ranks: int) -> tuple[int, ...]:
    """Values of the one parameter on which the number of messages without data depends."""
    algorithm = support.CATALOGUE.find("alltoallv", "bruck_and_direct")
    (radix,) = (one for one in algorithm.parameters if one.name == "radix")
    return radix.values_at(1, ranks)


def bundles(ranks: int, radix: int) -> int:
    """How many bundles a rank sends, with data or without: for each digit, its values."""
    weights = [radix**digit for digit in range(21) if radix**digit < ranks]
    return sum(min(radix - 1, (ranks - 1) // weight) for weight in weights)


def test_the_number_of_bundles_is_logarithmic():
    """Whatever radix tuning chooses."""
    for power in range(1, 21):
        assert max(bundles(2**power, radix) for radix in radixes(2**power)) <= 3 * power
    assert [bundles(512, radix) for radix in (2, 8)] == [9, 21]


@pytest.mark.parametrize("which", LIBRARIES)
def test_empty_blocks_are_not_sent(which):
    most = max(radixes(RANKS))
    tried = passes(mpi_of(which), RANKS, "sparse.c", UNEVEN, most).splitlines()
    assert len(tried) == len(set(tried))
    topology = support.cluster(RANKS)
    for collective in UNEVEN:
        serving = support.serving(topology, collective)
        # The MPI library's own routine, and what calls it for its parts, are not ours to judge.
        own = [a for a in serving if a.name != NATIVE and not a.parts]
        assert {f"{collective} {a.name}" for a in own} <= set(tried)


@pytest.mark.parametrize("which", LIBRARIES)
def test_plain_bytes_are_not_packed(which):
    """Of random types it is found whether they are; structures without gaps are not packed."""
    passes(mpi_of(which), 4, "density.c", DENSE)
