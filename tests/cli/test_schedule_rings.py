"""`stagegen schedule allgather` and `allreduce`: every ring in JSON and text, and refusals."""

from __future__ import annotations

import json
import sys

import pytest

from stagegen.cli import main
from stagegen.data import TOPOLOGIES
from stagegen.schedule import RING_CONSTRUCTIONS, Ring, RingPipeline, logical_ring, ring_pipeline
from stagegen.topology import load_topology, restricted_to

BENCHMARK = str(TOPOLOGIES / "chain-4x4-cyclic.yaml")
FIGURE = str(TOPOLOGIES / "fig-3-2.yaml")

constructions = pytest.mark.parametrize("construction", RING_CONSTRUCTIONS)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line in this process; returns exit status, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["stagegen", "schedule", *arguments])
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code or 0
        return status, *capsys.readouterr()

    return call


@constructions
def test_json_is_the_library_call(run, construction):
    options = ["--topology", BENCHMARK, "--ring", construction, "--format", "json"]
    topology = load_topology(BENCHMARK)
    status, out, err = run("allgather", *options)
    assert (status, err) == (0, "")
    assert Ring.from_json(json.loads(out)) == logical_ring(topology, construction)
    status, out, err = run("allreduce", *options)
    assert (status, err) == (0, "")
    assert RingPipeline.from_json(json.loads(out)) == ring_pipeline(topology, construction)


@constructions
def test_json_of_a_group_is_the_library_call(run, construction):
    options = [
        "--topology",
        BENCHMARK,
        "--ring",
        construction,
        "--format",
        "json",
        "--hosts",
        "n[0-5]",
    ]
    status, out, _ = run("allgather", *options)
    group = restricted_to(load_topology(BENCHMARK), [f"n{host}" for host in range(6)])
    assert status == 0
    assert Ring.from_json(json.loads(out)) == logical_ring(group, construction)


def test_with_a_size_the_time_is_printed(run):
    options = ["--topology", BENCHMARK, "--size", "1MiB"]
    status, out, _ = run("allreduce", *options, "--format", "json")
    form = json.loads(out)
    # 30 steps of 64 KiB over 20 Mbit/s.
    assert (status, form["size"]) == (0, 1 << 20)
    assert form["seconds"] == pytest.approx(30 * 65536 * 8 / 20e6)
    status, out, _ = run("allreduce", *options)
    assert status == 0
    assert "1048576 bytes: 0.786432 s" in out


@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
def test_no_two_hop_ring_is_status_3(run, collective):
    status, out, err = run(collective, "--topology", FIGURE, "--ring", "lr2", "--format", "json")
    assert (status, out) == (3, "")
    assert "switch s1 has 1 machine, but 2 neighbour switches" in err
    assert "Traceback" not in err


def test_text_says_what_is_proven(run):
    status, out, _ = run("allgather", "--topology", FIGURE, "--ring", "lr3")
    assert status == 0
    assert "ring lr3, at most 3 switches" in out
    assert "no contention-free ring has a smaller maximum, as switch s0 shows" in out
