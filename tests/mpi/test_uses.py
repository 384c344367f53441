"""Libraries of routines that use others: they link, and give the same bytes as native."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.catalogue.algorithm import NATIVE
from stagegen.generate import run_make
from stagegen.library import write_library
from tests.mpi import support

pytestmark = pytest.mark.mpi

NATIVES = tuple(a for a in support.CATALOGUE.algorithms if a.name == NATIVE)


CHOSEN = ("rab1_bruck", "rab2_aapc_sender_lr1")
USED = {
    "allgather_bruck",
    "allgather_logical_ring_lr1",
    "alltoall_aapc_sender",
    "reduce_scatter_recursive_halving",
}


def test_a_library_of_two_such_routines_has_what_they_use_and_is_right(tmp_path):
    topology = support.cluster(4)
    chosen = [support.CATALOGUE.find("allreduce", name) for name in CHOSEN]
    catalogue = replace(support.CATALOGUE, algorithms=(*NATIVES, *chosen))
    decision = support.decision(topology, catalogue)
    write_library(tmp_path, topology, support.CATALOGUE, decision, {})
    files = {path.stem for path in (tmp_path / "src").iterdir()}
    routines = {a.routine for a in support.CATALOGUE.algorithms if not a.deterministic}
    natives = {a.routine for a in NATIVES}
    assert files & routines == natives | USED | {a.routine for a in chosen}
    run_make(tmp_path, support.toolchain(), "build/check")
    result = support.run(4, tmp_path / "build" / "check", "quick")
    assert result.returncode == 0, result.stdout + result.stderr
