"""A program in the lab is recorded: its delays come back within the stated error of the clocks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stagegen.measure.launch.lab.process import why_no_lab
from stagegen.recording import read
from tests.mpi.test_recorder import WRONG_CLOCKS, expect_delays, plain_program

pytestmark = [pytest.mark.mpi, pytest.mark.lab]

TOPOLOGY = """\
name: four
defaults: {bandwidth: 20Mbit, latency: 50us}
switches:
  s0: {hosts: [n0, n1]}
  s1: {hosts: [n2, n3]}
links:
  - {ends: [s0, s1]}
"""


def record(folder, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    if reason := why_no_lab():
        pytest.skip(reason)
    (folder / "four.yaml").write_text(TOPOLOGY, encoding="utf-8")
    lab = ["lab", "run", "--topology", "four.yaml", "--", str(plain_program()), *words]
    stagegen = [sys.executable, "-m", "stagegen"]
    return subprocess.run(
        [*stagegen, "record", "--output", "out", "--", *stagegen, *lab],
        cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("variables", [{}, WRONG_CLOCKS], ids=["one clock", "wrong clocks"])
def test_injected_delays_come_back_within_the_stated_error(tmp_path, variables):
    done = record(tmp_path, "delays", **variables)
    assert done.returncode == 0, done.stderr
    recording = read(tmp_path / "out")
    assert [rank.host for rank in recording.ranks] == ["n0", "n1", "n2", "n3"]
    expect_delays(recording, done.stdout, wrong_clocks=bool(variables))


def test_a_program_that_aborts_leaves_a_recording(tmp_path):
    done = record(tmp_path, "abort")
    assert done.returncode != 0
    recording = read(tmp_path / "out")
    assert not recording.finished
    assert 1 in recording.by_rank
