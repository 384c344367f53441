"""Time stamps of an alltoall in phases: what a build with -DCOLL_STAMPS writes and what is read."""

from __future__ import annotations

import sys
from itertools import permutations
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.tools.figures.aapc_phases import Segment, describe, main, read_segments, read_stamps
from stagegen.cli import group
from stagegen.data import TOPOLOGIES
from stagegen.schedule import Message, alltoall_schedule
from stagegen.topology import load_topology

pytestmark = pytest.mark.mpi

FILE = TOPOLOGIES / "fig-3-2.yaml"
SIZE = 4096


def stamped(routine: str, size: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ranks leave the stamps of a call in a folder."""
    monkeypatch.setenv("CFLAGS", "-O1 -DCOLL_STAMPS")
    monkeypatch.setenv("LIBCOLL_STAMPS", str(folder))
    command = ["compare", "--topology", str(FILE), "--launcher", "local", "--collective"]
    command += ["alltoall", "--algorithms", routine, "--sizes", str(size), "--repetitions", "1"]
    result = CliRunner().invoke(group, [*command, "--output", str(folder / "build")])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("routine", ["aapc_receiver", "aapc_sender", "aapc_barrier"])
def test_every_message_has_its_times(routine, tmp_path, monkeypatch):
    stamped(routine, SIZE, tmp_path, monkeypatch)
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


@pytest.mark.parametrize("routine", ["aapc_rounds", "spreading_rounds"])
def test_every_segment_has_its_times(routine, tmp_path, monkeypatch, capsys):
    """Messages have four segments; the last one is short."""
    size, segments = 3 * 4096 + 100, 4
    stamped(routine, size, tmp_path, monkeypatch)
    topology = load_topology(FILE)
    stamps = read_segments(tmp_path, topology.rank_count)
    expected = {
        Segment(Message(a, b), number)
        for a, b in permutations(range(topology.rank_count), 2)
        for number in range(segments)
    }
    assert set(stamps.started) == set(stamps.arrived) == expected
    assert len(stamps.ended) == topology.rank_count
    assert all(stamps.started[s] < stamps.arrived[s] for s in expected)
    # A receiver awaits the segments of a message in their order.
    for segment in expected:
        if segment.round > 0:
            before = Segment(segment.message, segment.round - 1)
            assert stamps.arrived[before] < stamps.arrived[segment]
    monkeypatch.setattr(
        sys, "argv", ["", "--topology", str(FILE), "--size", str(size), "--rounds", str(tmp_path)]
    )
    main()
    assert "the most loaded link" in capsys.readouterr().out
