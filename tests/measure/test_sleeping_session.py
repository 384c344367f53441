"""A session that only checks stays while others are timed: its ranks sleep between commands."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.live import SLEEPS, start_session
from stagegen.measure.records import Candidate
from tests.mpi import support

pytestmark = pytest.mark.mpi

RANKS = 4


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("session")
    topology, catalogue = support.cluster(RANKS), load_catalogue().only({"bcast/flat"})
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash, catalogue.templates)
    write_files(folder, measuring_sources(session_build(topology, catalogue), renderer))
    run_make(folder, support.toolchain())
    return folder / "session"


def wakings(program: Path) -> dict[int, int]:
    """How often each rank of a program has gone to sleep, and so was woken."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and (process / "exe").resolve() == program.resolve():
                lines = (process / "status").read_text().splitlines()
                pairs = (line.split(":") for line in lines if line.startswith("voluntary_ctxt"))
                found[int(process.name)] = sum(int(count) for _, count in pairs)
        except OSError:
            continue  # it has ended
    return found


def test_ranks_sleep_between_commands_and_answer_nevertheless(program):
    started = start_session(
        LocalLauncher(), support.cluster(RANKS), program, program.parent, variables={SLEEPS: "1"}
    )
    with closing(started[0]) as session:
        for _ in range(2):
            (check,) = session.check("bcast", [Candidate("flat")], 60.0)
            assert check.wrong == 0
            time.sleep(1.0)  # by now they sleep long
            before = wakings(program)
            time.sleep(1.0)
            after = wakings(program)
            assert len(before) == RANKS
            more = {rank: after[rank] - count for rank, count in before.items()}
            assert max(more.values()) < 100, "ten looks in a second, of a few pauses each"
