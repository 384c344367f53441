"""A communicator that is revoked (ULFM) wakes the ranks that wait in routines."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagegen.catalogue import Catalogue, load_catalogue, with_native
from stagegen.parts.trees import root_of
from stagegen.trees import make_tree, shape_of
from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS, SLOTS = 6, 3


def library_of_all(mpi: builds.Mpi) -> tuple[Path, Catalogue]:
    return builds.library(mpi, RANKS, small=False, slots=SLOTS), support.CATALOGUE


def library_of_trees(mpi: builds.Mpi) -> tuple[Path, Catalogue]:
    """Configured trees: ranks of a host wait for each other in memory that they share."""
    topology = support.cluster(RANKS, SLOTS)
    trees = [make_tree(topology, shape_of(name), name) for name in ("flat", "binary", "linked")]
    catalogue = load_catalogue(added=[root_of(trees, topology)])
    mine = [a for a in catalogue.algorithms if a.name.startswith("configured_tree_")]
    trimmed = support.part(with_native(catalogue, mine), catalogue)
    return builds.of_catalogue(mpi, RANKS, "trees", trimmed, slots=SLOTS), trimmed


@pytest.mark.parametrize(
    ("library", "options", "variables"),
    [
        (library_of_all, (), {}),
        (library_of_all, (), {"LIBCOLL_MULTICAST": "239.77.0.1%lo"}),
        (library_of_trees, ("-DIN_SHARED_MEMORY",), {}),
    ],
    ids=["messages", "multicast", "shared memory"],
)
def test_no_rank_waits_in_a_routine_after_its_communicator_is_revoked(library, options, variables):
    mpi = builds.Mpi.with_ulfm()
    folder, catalogue = library(mpi)
    program = builds.c_program(mpi, folder, "revoked.c", *options)
    result = builds.run(mpi, RANKS, program, variables=variables, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "LIBCOLL_MULTICAST" not in result.stderr, "it serves"
    tried = result.stdout.splitlines()
    assert len(tried) == len(set(tried))
    topology = support.cluster(RANKS, SLOTS)
    serving = {
        f"{name} {algorithm.name}"
        for name in catalogue.collectives
        for algorithm in support.serving(topology, name, catalogue=catalogue)
        if algorithm.name != "native"
    }
    assert serving <= set(tried)
