"""Time stamps of an alltoall in phases: what a build with -DCOLL_STAMPS writes and what is read."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from docs.tools.figures.aapc_phases import describe, read_stamps
from stagegen.cli import group
from stagegen.data import TOPOLOGIES
from stagegen.schedule import alltoall_schedule
from stagegen.topology import load_topology

pytestmark = pytest.mark.mpi

FILE = TOPOLOGIES / "fig-3-2.yaml"
SIZE = 4096


@pytest.mark.parametrize("routine", ["aapc_receiver", "aapc_sender", "aapc_barrier"])
def test_every_message_has_its_times(routine, tmp_path, monkeypatch):
    monkeypatch.setenv("CFLAGS", "-O1 -DCOLL_STAMPS")
    monkeypatch.setenv("LIBCOLL_STAMPS", str(tmp_path))
    command = ["compare", "--topology", str(FILE), "--launcher", "local", "--collective"]
    command += ["alltoall", "--algorithms", routine, "--sizes", str(SIZE), "--repetitions", "1"]
    result = CliRunner().invoke(group, [*command, "--output", str(tmp_path / "build")])
    assert result.exit_code == 0, result.output
    topology = load_topology(FILE)
    stamps = read_stamps(tmp_path, topology.rank_count)
    schedule = alltoall_schedule(topology, "receiver")
    messages = {message for phase in schedule.phases for message in phase}
    assert set(stamps.started) == set(stamps.arrived) == messages
    assert len(stamps.begun) == len(stamps.ended) == topology.rank_count
    assert all(stamps.started[m] < stamps.arrived[m] for m in messages)
    if routine == "aapc_receiver":  # the order that its tokens make
        for first, then, _ in schedule.sync.syncs:
            assert stamps.arrived[first] < stamps.started[then]
    assert "the most loaded link" in "\n".join(describe(topology, stamps, SIZE))
