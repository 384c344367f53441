"""Which MPI functions routines and engines call: none that is intercepted, and no collective."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.catalogue import load_catalogue, with_native
from stagegen.catalogue.algorithm import NATIVE
from stagegen.data import ENGINES, TEMPLATES
from stagegen.generate import run_make
from stagegen.generate.pattern_templates import pattern_root
from stagegen.library import write_library
from stagegen.parts.trees import root_of
from stagegen.patterns import make_pattern
from stagegen.trees import make_tree, shape_of
from tests.mpi import support

pytestmark = pytest.mark.mpi

#: Numbers of ranks, and of those on a host. Other tests need libraries for them, too.
CLUSTERS = [(4, 1), (5, 1), (6, 1), (5, 2)]
NATIVES = {a.routine for a in support.CATALOGUE.algorithms if a.name == NATIVE}
FILES = {
    *(algorithm.routine for algorithm in support.CATALOGUE.algorithms),
    *(path.stem for path in (TEMPLATES / ENGINES).glob("*.c")),
}

_BLOCKS = {f"PMPI_{name.capitalize()}" for name in support.CATALOGUE.collectives} - {"PMPI_Barrier"}
#: The MPI library's collectives. A barrier may stand between the steps of a routine.
COLLECTIVES = _BLOCKS | {f"{name}_c" for name in _BLOCKS}


#: Stands for a library with the routines of a tree file and of a file of patterns.
OF_FILES = (0, 0)


#: Agree, at their first calls, whether all ranks have got memory, or hear a datagram; or, in few
#: calls, which rank comes late. The data goes without collectives in all of them.
AGREES = {"shared_channels", "multicast", "early_tree"}


@lru_cache
def with_files() -> Path:
    topology = support.cluster(4, 2)
    trees = root_of([make_tree(topology, shape_of("flat"), "flat")], topology)
    pattern = make_pattern("zipf", 4, 300, 3)
    whole = load_catalogue(added=[trees, pattern_root(topology, [pattern], "a test")])
    own = [a for a in whole.algorithms if a.name.startswith(("configured_tree_", "pattern_"))]
    catalogue = support.part(with_native(whole, own), whole)
    folder = support.scratch() / "of-files"
    write_library(folder, topology, catalogue, support.decision(topology, catalogue), {})
    run_make(folder, support.toolchain(), "libcoll.a")
    return folder


@lru_cache
def called(ranks: int, slots: int) -> dict[str, set[str]]:
    """What each routine and engine of a library leaves to others, by the linker's names."""
    folder = support.library(ranks, slots) if ranks else with_files()
    archive = folder / "libcoll.a"
    command = ["nm", "-A", archive]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = defaultdict(set)
    for name, letter, symbol in re.findall(r":(\w+)\.o:\s*\w* (\w) (\w+)$", listing, re.MULTILINE):
        if name in FILES:
            found[name] |= {symbol} if letter == "U" else set()
    return found


def test_the_libraries_have_every_routine_and_engine_together():
    found = set().union(*(called(*cluster) for cluster in (*CLUSTERS, OF_FILES)))
    assert found == FILES


@pytest.mark.parametrize("cluster", [*CLUSTERS, OF_FILES])
def test_nothing_calls_what_a_profiler_intercepts(cluster):
    seen = {
        (name, symbol)
        for name, symbols in called(*cluster).items()
        for symbol in symbols
        if symbol.startswith("MPI")
    }
    assert seen == set()


@pytest.mark.parametrize("cluster", [*CLUSTERS, OF_FILES])
def test_only_native_routines_are_collectives_of_the_mpi_library(cluster):
    lazy = {
        name
        for name, symbols in called(*cluster).items()
        if symbols & COLLECTIVES and name not in NATIVES | AGREES
    }
    assert lazy == set()
    assert called(*cluster)["alltoall_native"] & COLLECTIVES, "those names are not what is called"


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_library_that_does_not_adapt_defines_nothing_of_what_does(cluster):
    command = ["nm", "--defined-only", support.library(*cluster) / "libcoll.a"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in listing.splitlines() if len(line.split()) == 3}
    assert "libcoll_choice" in names, "those names are not what is defined"
    # coll_learned_… is of the engine of learned orders, which any library may have.
    of_adapting = re.compile("adaptive|coll_learn(?!ed_)|situation|coll_latest")
    assert not {name for name in names if of_adapting.search(name)}
