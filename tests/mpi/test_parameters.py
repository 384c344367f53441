"""Every value of every parameter gives the same bytes as native, on many numbers of ranks.

All sends are synchronous. Routines that need no topology do not know how many ranks there will
be, so one build serves all.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from stagegen.data import ENGINES, TEMPLATES
from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.live import start_session
from stagegen.tune.candidates import variants
from tests.mpi import support

pytestmark = pytest.mark.mpi

#: Few, odd, no power of any radix, one more than a power of two, more than any radix.
RANKS = (2, 3, 6, pytest.param(9, marks=pytest.mark.slow))

#: About the longest message of a check, in bytes.
LONGEST = 16 * 1024

TUNED = tuple(a for a in support.CATALOGUE.algorithms if a.parameters and not a.topology_specific)


def ends(collective: str, ranks: int) -> set[tuple[str, int]]:
    """The least and the largest value of each range, such as 1 and p - 2, 2 and p, 512 bytes."""
    values = {
        (p.name, p.values_at(LONGEST, ranks))
        for algorithm in TUNED
        if algorithm.collective == collective and algorithm.works_for(ranks)
        for p in algorithm.parameters
    }
    return {(name, end) for name, own in values for end in (own[0], own[-1])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    topology = support.cluster(4)
    catalogue = support.few(TUNED)
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash)
    files = dict(measuring_sources(session_build(topology, catalogue), renderer))
    own = {f"{algorithm.routine}.c" for algorithm in catalogue.algorithms}
    own |= {path.name for path in (TEMPLATES / ENGINES).glob("*.c")} & set(files)
    objects = " ".join(sorted(Path(name).with_suffix(".o").name for name in own))
    files["Makefile"] += f"\n{objects}: WARNINGS += -include {support.SYNCHRONOUS}\n"
    path = tmp_path_factory.mktemp("session")
    write_files(path, files)
    run_make(path, support.toolchain())
    for name, call in (("bcast_knomial.o", b"PMPI_Ssend"), ("pipeline_down.o", b"PMPI_Issend")):
        assert call in (path / name).read_bytes()
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
                for candidate in variants(algorithm, LONGEST, ranks)
            ]
            asked = {pair for candidate in candidates for pair in candidate.parameters}
            assert asked >= ends(collective, ranks)
            checks = session.check(collective, candidates, 240) if candidates else []
            assert [check.candidate for check in checks] == candidates
            for check in checks:
                assert check.cases > (0 if collective == "barrier" else 10)
                assert (check.wrong, check.first_wrong) == (0, ""), check.candidate
