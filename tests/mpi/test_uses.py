"""Libraries of routines that use others: they link, and give the same bytes as native."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.generate import build
from stagegen.library import write_library
from stagegen.repository.algorithm import NATIVE
from tests.mpi import support

pytestmark = pytest.mark.mpi

NATIVES = tuple(a for a in support.CATALOGUE.algorithms if a.name == NATIVE)


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("rab1_bruck", {"allgather_bruck", "reduce_scatter_recursive_halving"}),
        ("rab2_aapc_sender_lr1", {"allgather_logical_ring_lr1", "alltoall_aapc_sender"}),
    ],
)
def test_a_library_with_one_such_routine(tmp_path, name, used):
    topology = support.cluster(4)
    chosen = replace(
        support.CATALOGUE, algorithms=(*NATIVES, support.CATALOGUE.find("allreduce", name))
    )
    decision = support.decision(topology, chosen)
    write_library(tmp_path, topology, support.CATALOGUE, decision, {})
    routines = {path.stem for path in (tmp_path / "src").glob("all*_*.c")}
    others = {a.routine for a in support.CATALOGUE.algorithms if a.name != NATIVE} - used
    own = {f"allreduce_{name}", "allreduce_reduce_bcast"}
    assert used - {"reduce_scatter_recursive_halving"} <= routines
    assert routines & others == own
    build(tmp_path, support.toolchain(), "build/check")
    result = support.run(4, tmp_path / "build" / "check", "quick")
    assert result.returncode == 0, result.stdout + result.stderr
