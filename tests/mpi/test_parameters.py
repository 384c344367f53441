"""Every value of every parameter gives the same bytes as native, on many numbers of ranks.

All sends are synchronous. Routines that need no topology do not know how many ranks there will
be, so one build serves all.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.live import start_session
from stagegen.tune.candidates import variants
from tests.mpi import support

pytestmark = pytest.mark.mpi

#: Few, odd, no power of any radix, one more than a power of two, more than any radix.
RANKS = (2, 3, 6, 9)

TUNED = tuple(a for a in support.CATALOGUE.algorithms if a.parameters and not a.topology_specific)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    topology = support.cluster(4)
    catalogue = support.few(TUNED)
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash)
    files = dict(measuring_sources(session_build(topology, catalogue), renderer))
    routines = " ".join(f"{algorithm.routine}.o" for algorithm in catalogue.algorithms)
    files["Makefile"] += f"\n{routines}: WARNINGS += -include {support.SYNCHRONOUS}\n"
    path = tmp_path_factory.mktemp("session")
    write_files(path, files)
    run_make(path, support.toolchain())
    assert "Issend" in (path / "bcast_pipelined_linear.o").read_bytes().decode(errors="replace")
    return path


@pytest.mark.parametrize("ranks", RANKS)
def test_every_value_gives_the_same_bytes_as_native(folder, tmp_path, ranks):
    session, _ = start_session(
        LocalLauncher(), support.cluster(ranks), folder / "session", tmp_path
    )
    with closing(session):
        for collective in support.CATALOGUE.collectives:
            candidates = [
                candidate
                for algorithm in TUNED
                if algorithm.collective == collective and algorithm.works_for(ranks)
                for candidate in variants(algorithm)
            ]
            checks = session.check(collective, candidates, 240) if candidates else []
            assert [check.candidate for check in checks] == candidates
            for check in checks:
                assert check.cases > 10
                assert (check.wrong, check.first_wrong) == (0, ""), check.candidate
