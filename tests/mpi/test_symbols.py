"""What routines call: the MPI library by names that nobody intercepts, and no collective of it."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from functools import lru_cache

import pytest

from stagegen.catalogue.algorithm import NATIVE
from tests.mpi import support

pytestmark = pytest.mark.mpi

#: Numbers of ranks, and of those on a host. Other tests need libraries for them, too.
CLUSTERS = [(5, 1), (8, 1), (7, 3)]
ALGORITHMS = {algorithm.routine: algorithm for algorithm in support.CATALOGUE.algorithms}

_BLOCKS = {f"PMPI_{name.capitalize()}" for name in support.CATALOGUE.collectives} - {"PMPI_Barrier"}
#: The MPI library's collectives. A barrier may stand between the steps of a routine.
COLLECTIVES = _BLOCKS | {f"{name}_c" for name in _BLOCKS}


@lru_cache
def called(ranks: int, slots: int) -> dict[str, set[str]]:
    """What each routine of a library leaves to others, by the names that the linker sees."""
    archive = support.library(ranks, slots) / "libcoll.a"
    command = ["nm", "-A", "-u", archive]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = defaultdict(set)
    for name, symbol in re.findall(r":(\w+)\.o: +\w (\w+)$", listing, re.MULTILINE):
        if name in ALGORITHMS:
            found[name].add(symbol)
    return found


def test_the_libraries_have_every_routine_together():
    assert set().union(*(called(*cluster) for cluster in CLUSTERS)) == set(ALGORITHMS)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_no_routine_calls_what_a_profiler_intercepts(cluster):
    seen = {
        (name, symbol)
        for name, symbols in called(*cluster).items()
        for symbol in symbols
        if symbol.startswith("MPI")
    }
    assert seen == set()


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_only_native_routines_are_collectives_of_the_mpi_library(cluster):
    lazy = {
        name
        for name, symbols in called(*cluster).items()
        if symbols & COLLECTIVES and ALGORITHMS[name].name != NATIVE
    }
    assert lazy == set()
    assert called(*cluster)["alltoall_native"] & COLLECTIVES, "those names are not what is called"
