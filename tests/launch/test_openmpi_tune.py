"""Programs of Open MPI get decisions that were measured with Open MPI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.installed import installed

pytestmark = pytest.mark.mpi

REPOSITORY = Path(__file__).parents[2]
HERE = """\
name: here
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [one]}
hosts:
  one: {address: 127.0.0.1, slots: 2}
launcher: openmpi
"""


@pytest.mark.parametrize("installation", ["openmpi", "openmpi5"])
def test_a_tuning_by_mpirun_measures_open_mpi(tmp_path, installation):
    mpi = installed(installation)
    (tmp_path / "t.yaml").write_text(HERE)
    words = [sys.executable, "-m", "stagegen", "tune", "--topology", str(tmp_path / "t.yaml")]
    words += [
        "--communicators",
        "whole",
        "--collectives",
        "barrier",
        "--mpicc",
        mpi.toolchain.mpicc,
    ]
    words += ["--output", str(tmp_path / "out")]
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMPI_MCA_mpi_yield_when_idle": "1"}
    done = subprocess.run(
        words, env=variables, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "measurements.jsonl").read_text().splitlines()
    sessions = [one for one in map(json.loads, lines) if one["kind"] == "session"]
    assert sessions
    for session in sessions:
        environment = session["environment"]
        assert (environment["launcher"], environment["mpi"]) == ("openmpi", "openmpi")
        assert session["mpi"].startswith(f"Open MPI v{environment['mpi_version']}")
