"""A host of the lab dies while a run measures on it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from docs.tools.bench_tuning.tunings import processes, ranks
from stagegen.measure.launch.lab.capacity import VARIABLE
from stagegen.measure.launch.lab.process import why_no_lab
from tests.faults.tuning import Tuning

pytestmark = [pytest.mark.alone, pytest.mark.lab, pytest.mark.mpi]


def parents() -> dict[int, int]:
    """Return the parent of each process, by their numbers."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            found[int(folder.name)] = int(words[1])
    return found


def started_by(run: int) -> Iterator[int]:
    """Yield the processes that a run has started, and those that these have."""
    parent = parents()
    for process in parent:
        above = parent[process]
        while above not in (0, run):
            above = parent.get(above, 0)
        if above == run:
            yield process


def network(process: int | str) -> int:
    """Return the network namespace that a process is in; 0 if it has just ended."""
    try:
        return Path(f"/proc/{process}/ns/net").stat().st_ino
    except OSError:
        return 0


def of_host(tuning: Tuning, run: int, rank: int) -> list[int]:
    """Return the processes of the lab's host that has a rank of a run.

    They are the run's own, and in a network of the lab: a session that checks has ranks in the
    machine's network, where everybody else is.
    """
    own = set(started_by(run))
    hosts = {network(one) for one in ranks(tuning.session, rank) if one in own}
    hosts -= {network("self"), 0}
    return [process for process in own if network(process) in hosts]


def kill_host(tuning: Tuning, run: int, rank: int = 2) -> bool:
    """Kill all processes of a host at once; return whether there were any."""
    doomed = of_host(tuning, run, rank)
    for process in doomed:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return bool(doomed)


@pytest.fixture
def tuning(tmp_path) -> Tuning:
    if why := why_no_lab():
        pytest.skip(why)
    choice = ("--collectives", "bcast", "--algorithms", "flat,binomial", "--sizes", "1,4096")
    options = ("--launcher", "lab", "--budget", "0", "--patience", "24")
    return Tuning(tmp_path, (*options, *choice), {VARIABLE: "1"})


def test_a_host_that_dies_always_ends_a_run_and_once_only_costs_a_new_lab(tuning):
    with tuning.started(3) as process:
        kill = partial(kill_host, tuning, process.pid)
        tuning.wait_until(lambda: not kill() and process.poll() is not None)
        result = tuning.ended(process)
    assert result.returncode == 1
    assert "the job has ended with status 255" in result.stderr
    assert "go on with --resume" in result.stderr
    assert tuning.records("failure") == [], "no routine is at fault"
    tuning.wait_until(lambda: not processes(tuning.session))
    before = tuning.log.read_bytes()
    with tuning.started(1, "--resume") as process:
        tuning.wait_until(partial(kill_host, tuning, process.pid), process)
        result = tuning.ended(process)
    assert result.returncode == 0, result.stderr
    assert "the job has ended with status 255" in result.stderr
    assert tuning.records("failure") == []
    assert tuning.log.read_bytes().startswith(before)
    assert not processes(tuning.session)
    tuning.require_same_from_log()
