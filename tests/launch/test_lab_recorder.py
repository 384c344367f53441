"""A program in the lab is recorded: its delays come back within the stated error of the clocks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stagegen.generate import run_make
from stagegen.measure.launch.lab.process import why_no_lab
from stagegen.recording import read
from stagegen.recording.calls import align
from tests.mpi import support
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


def record(
    folder, *words: str, preload: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    if reason := why_no_lab():
        pytest.skip(reason)
    (folder / "four.yaml").write_text(TOPOLOGY, encoding="utf-8")
    loaded = [] if preload is None else ["--preload", str(preload)]
    lab = ["lab", "run", "--topology", "four.yaml", *loaded, "--", str(plain_program()), *words]
    stagegen = [sys.executable, "-m", "stagegen"]
    return subprocess.run(
        [*stagegen, "record", "--output", "out", "--", *stagegen, *lab],
        cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.alone
@pytest.mark.parametrize("variables", [{}, WRONG_CLOCKS], ids=["one clock", "wrong clocks"])
def test_injected_delays_come_back_within_the_stated_error(tmp_path, variables):
    done = record(tmp_path, "delays", **variables)
    assert done.returncode == 0, done.stderr
    recording = read(tmp_path / "out")
    assert [rank.host for rank in recording.ranks] == ["n0", "n1", "n2", "n3"]
    expect_delays(recording, done.stdout, wrong_clocks=bool(variables))


def test_calls_that_a_preloaded_library_serves_are_recorded(tmp_path):
    """The recorder is in this process's LD_PRELOAD, and yet comes before the program's library."""
    folder = support.library(4)
    run_make(folder, support.toolchain(), "libcoll.so")
    found = []
    for preload in (None, folder / "libcoll.so"):
        done = record(tmp_path, "kinds", preload=preload, LIBCOLL_TRACE="1")
        assert done.returncode == 0, done.stderr
        served = re.search(r"libcoll: rank 0: bcast +(?!native)\w+", done.stderr)
        assert bool(served) == (preload is not None)
        calls = align(read(tmp_path / "out")).calls
        found.append({(one.collective, one.mode, one.site): len(one.sequences) for one in calls})
    assert found[0] == found[1]
    assert found[0]


def test_a_program_that_aborts_leaves_a_recording(tmp_path):
    done = record(tmp_path, "abort")
    assert done.returncode != 0
    recording = read(tmp_path / "out")
    assert not recording.finished
    assert 1 in recording.by_rank
