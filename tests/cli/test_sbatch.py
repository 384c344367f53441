"""The job script of ``stagegen tune --sbatch``."""

from __future__ import annotations

import shlex

import pytest

from stagegen.cli._sbatch import job_script
from stagegen.errors import InputError
from stagegen.measure.launch.slurm import nodes_of
from stagegen.topology import load_topology
from tests.cli.here import stagegen

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


def test_a_folder_with_a_log_is_not_gone_on_with_unasked(tmp_path):
    """Its options would win: the job might measure nothing."""
    file = tmp_path / "t.yaml"
    file.write_text(TEXT)
    words = ("tune", "--topology", file, "--output", tmp_path / "out", "--sbatch", "-")
    assert stagegen(*words).returncode == 0
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "measurements.jsonl").write_text("")
    ended = stagegen(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "give --resume if it is to, or another --output" in " ".join(ended.stderr.split())
    assert "its header is missing" in stagegen(*words, "--resume").stderr


def test_the_job_has_the_nodes_of_the_ranks_and_a_signal_before_its_limit(script):
    lines = script("tune", "--topology", "my cluster.yaml", "--sbatch", "-")
    assert lines[0] == "#!/bin/bash"
    assert set(lines) >= {
        "#SBATCH --nodes=3",
        "#SBATCH --ntasks=4",
        "#SBATCH --nodelist=node-b,a,c",
        "#SBATCH --time=30",
        "#SBATCH --signal=B:TERM@120",
    }
    assert shlex.split(lines[-1]) == [
        *("exec", "stagegen", "tune", "--topology", "my cluster.yaml"),
        *("--launcher", "slurm", "--resume"),
    ]


def test_hosts_with_different_numbers_of_ranks_need_no_more_cpus_than_they_have(script):
    """With ``--ntasks-per-node=2``, Slurm would want two CPUs of b and c, too."""
    assert not [line for line in script("tune") if "per-node" in line]


def test_mpirun_of_open_mpi_needs_slots_on_each_node(script):
    lines = script("tune", "--launcher", "openmpi")
    assert "#SBATCH --ntasks-per-node=2" in lines


def test_hosts_with_as_many_ranks_have_them_each(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text(TEXT.replace("b: {", "b: {slots: 2, ").replace("[b, a, c, a]", "[b, a, b, a]"))
    lines = job_script(load_topology(file), ("tune",), "30").splitlines()
    assert "#SBATCH --ntasks-per-node=2" in lines


@pytest.mark.parametrize(
    ("address", "node"),
    [
        ("n7", "n7"),
        ("root@n7", "n7"),
        ("b.cluster.example", "b"),
        ("root@10.0.0.4", "b"),
        ("c.cluster.example", "c.cluster.example"),
    ],
)
def test_the_script_asks_for_the_node_that_the_launcher_will_find(
    tmp_path, monkeypatch, address, node
):
    file = tmp_path / "t.yaml"
    file.write_text(TEXT.replace("root@node-b", address).replace("[b, a, c, a]", "[b]"))
    topology = load_topology(file)
    assert f"#SBATCH --nodelist={node}" in job_script(topology, ("tune",), "30").splitlines()
    monkeypatch.setenv("SLURM_JOB_NODELIST", node)
    assert nodes_of(topology, ("b",)) == [node]


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
