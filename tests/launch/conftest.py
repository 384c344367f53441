"""Small clusters, and jobs in the lab, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stagegen.measure.launch.base import Job, RunningJob, Streams
from stagegen.measure.launch.lab.capacity import VARIABLE
from stagegen.measure.launch.lab.launcher import LabLauncher
from stagegen.topology import Topology, load_topology

CHAIN = """\
name: chain
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [n0, n1]}
  s1: {hosts: [n2, n3]}
links:
  - {ends: [s0, s1]}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Callable[..., Topology]:
    """Load a topology from its text, by default two hosts on each of two switches."""

    def load(text: str = CHAIN) -> Topology:
        file = tmp_path / "cluster.yaml"
        file.write_text(text)
        return load_topology(file)

    return load


@pytest.fixture
def run(
    cluster: Callable[..., Topology], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, list[str]]]:
    """Run a program in the lab at full rates; return its status and sorted lines of output."""
    launcher = LabLauncher()
    if reason := launcher.why_unavailable(cluster()):
        pytest.skip(reason)
    monkeypatch.setenv(VARIABLE, "1")

    def in_lab(*program: str, text: str = CHAIN, **job: object) -> tuple[int, list[str]]:
        with (tmp_path / "output").open("w+b") as output:
            streams = job.pop("streams", Streams(stdin=-3, stdout=output))
            asked = Job(program, streams=streams, **job)  # type: ignore[arg-type]
            with launcher.start(asked, cluster(text)) as running:
                status = running.wait(60)
            output.seek(0)
            return status, sorted(output.read().decode().split("\n")[:-1])

    return in_lab


@pytest.fixture
def start(
    cluster: Callable[..., Topology], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., RunningJob]:
    """Start a program in the lab; the test ends it."""
    launcher = LabLauncher()
    if reason := launcher.why_unavailable(cluster()):
        pytest.skip(reason)
    monkeypatch.setenv(VARIABLE, "1")
    return lambda *program, text=CHAIN, **job: launcher.start(Job(program, **job), cluster(text))
