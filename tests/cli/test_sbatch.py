"""The job script of ``stagegen tune --sbatch``."""

from __future__ import annotations

import shlex

import pytest

from stagegen.cli._sbatch import job_script
from stagegen.errors import InputError
from stagegen.topology import load_topology

TEXT = """\
name: night
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [a, b, c, spare]}
hosts:
  a: {slots: 2}
  b: {address: root@node-b}
  c: {address: root@10.0.0.3}
ranks: [b, a, c, a]
"""


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text(TEXT)
    return lambda *words, limit="30": job_script(load_topology(file), words, limit).splitlines()


def test_the_job_has_the_nodes_of_the_ranks_and_a_signal_before_its_limit(script):
    lines = script("tune", "--topology", "my cluster.yaml", "--sbatch", "-")
    assert lines[0] == "#!/bin/bash"
    assert set(lines) >= {
        "#SBATCH --nodes=3",
        "#SBATCH --ntasks-per-node=2",
        "#SBATCH --nodelist=node-b,a,c",
        "#SBATCH --time=30",
        "#SBATCH --signal=B:TERM@120",
    }
    assert shlex.split(lines[-1]) == [
        *("exec", "stagegen", "tune", "--topology", "my cluster.yaml"),
        *("--launcher", "slurm", "--resume"),
    ]


@pytest.mark.parametrize(
    "words", [("--sbatch=x", "--time-limit=1:00"), ("--time-limit", "1:00", "--sbatch", "x")]
)
def test_the_job_runs_the_same_command_line(script, words):
    line = script("tune", "--resume", *words, "--launcher=openmpi", "--sizes", "1")[-1]
    assert line == "exec stagegen tune --resume --launcher=openmpi --sizes 1"


@pytest.mark.parametrize("limit", ["soon", "", "1h", "1-", "1:2:3:4"])
def test_a_limit_that_sbatch_would_refuse_is_an_input_error(script, limit):
    with pytest.raises(InputError, match="write minutes, HH:MM:SS or D-HH:MM:SS"):
        script("tune", limit=limit)


@pytest.mark.parametrize("launcher", ["lab", "local"])
def test_a_launcher_that_uses_no_nodes_is_an_input_error(script, launcher):
    with pytest.raises(InputError, match=f"launcher {launcher} does not use the nodes"):
        script("tune", "--launcher", launcher)
