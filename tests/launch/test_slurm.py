"""The launcher slurm and the script of ``--sbatch``, with a real slurmctld and four slurmd."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from docs.tools.bench_tuning.faults import Submitted
from docs.tools.bench_tuning.slurm_here import in_allocation, slurm_cluster
from stagegen.errors import LaunchError
from stagegen.measure.launch.base import Job
from stagegen.measure.launch.helpers import idle_library
from stagegen.measure.launch.slurm import SlurmLauncher
from tests.faults.tuning import RUN, Tuning
from tests.launch.installed import installed

REPOSITORY = Path(__file__).parents[2]
CLUSTER = """\
name: jobs
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [n0, n1]}
  s1: {hosts: [n2, head]}
links:
  - {ends: [s0, s1]}
hosts:
  n0: {slots: 2}
  head: {address: n3}
ranks: [n2, n0, head, n0]
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The variables of a Slurm cluster; skips the tests if its daemons are missing or cannot run.

    They need namespaces, which some containers forbid.
    """
    with ExitStack() as daemons:
        try:
            environment = daemons.enter_context(slurm_cluster(tmp_path_factory.mktemp("slurm")))
        except LaunchError as error:
            pytest.skip(str(error))
        yield {**environment, "PYTHONPATH": str(REPOSITORY)}


@pytest.fixture
def step(slurm, cluster, tmp_path):
    """Run a job in an allocation; return its status, lines of output, and complaints."""
    cluster(CLUSTER)

    def run(mpi, *words: str) -> tuple[int, list[str], str]:
        asked = {
            "topology": str(tmp_path / "cluster.yaml"),
            "mpi": mpi.flavour,
            "program": [str(mpi.places), *words],
            "variables": {"GIVEN": "a,b c"},
            "preload": [str(idle_library())],
        }
        script = str(REPOSITORY / "tests/launch/in_allocation.py")
        words = in_allocation([sys.executable, script, json.dumps(asked)])
        done = subprocess.run(
            words,
            env=slurm,
            input="hello\n",
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return done.returncode, sorted(filter(None, done.stdout.splitlines())), done.stderr

    return run


#: On a busy machine, a rank of Open MPI 5 may crash in MPI_Init, when another rank's message comes
#: before the communicator is complete. Such a job is started again.
IN_INIT, TRIES = "ompi_mpi_init", 3


@pytest.mark.mpi
@pytest.mark.parametrize("installation", ["wheel", "mpich", "openmpi", "openmpi5"])
def test_ranks_stand_on_the_nodes_in_the_topologys_order(step, installation):
    mpi = installed(installation)
    for _ in range(TRIES):
        status, lines, complaints = step(mpi)
        if IN_INIT not in complaints:
            break
    assert "launcher slurm: this allocation has all hosts" in complaints
    given = f"a,b c, {idle_library()}"
    assert (status, lines) == (
        0,
        [
            f"0 of 4 on n2: {given}, hello, {mpi.title}",
            f"1 of 4 on n0: {given}, -, {mpi.title}",
            f"2 of 4 on n3: {given}, -, {mpi.title}",
            f"3 of 4 on n0: {given}, -, {mpi.title}",
        ],
    ), complaints


@pytest.mark.mpi
def test_the_status_is_the_programs(step):
    status, _, _ = step(installed("wheel"), "3")
    assert status == 3


@pytest.mark.mpi
def test_a_rank_that_crashes_ends_the_job(step):
    """The other ranks wait for it in MPI_Finalize, until srun ends them."""
    status, _, _ = step(installed("wheel"), "crash")
    assert status != 0


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({}, "inside of salloc or sbatch"),
        ({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[0-2]"}, "not in this allocation: head"),
    ],
)
def test_the_error_says_what_an_allocation_lacks(cluster, monkeypatch, variables, reason, tmp_path):
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\nexit 1\n")
    srun.chmod(0o755)
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    topology, launcher = cluster(CLUSTER), SlurmLauncher()
    assert reason in str(launcher.why_unavailable(topology))
    with pytest.raises(LaunchError, match=r"launcher slurm: "):
        launcher.start(Job(("true",)), topology)
    srun.unlink()
    assert "srun was not found" in str(launcher.why_unavailable(topology))


def wait_for(path: Path, text: str, seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and text in (said := path.read_text()):
            return said
        time.sleep(0.2)
    pytest.fail(f"no {text!r} in {path}: {path.read_text() if path.exists() else 'no such file'}")


@pytest.mark.mpi
def test_the_script_of_sbatch_tunes_and_may_be_submitted_again(slurm, cluster, tmp_path):
    """Submitted twice: the second job goes on where the first ended, so it measures nothing."""
    cluster(CLUSTER)
    installed("wheel")
    output, script = tmp_path / "tuned", tmp_path / "job.sh"
    words = [sys.executable, "-m", "stagegen", "tune", "--topology", tmp_path / "cluster.yaml"]
    words += ["--communicators", "whole", "--collectives", "barrier", "--output", output]
    made = [*words, "--sbatch", script, "--time-limit", "10"]
    subprocess.run(made, env=slurm, check=True, timeout=60)
    logs = []
    for turn in ("first", "second"):
        said = tmp_path / turn
        submit = ["sbatch", f"--output={said}", str(script)]
        subprocess.run(submit, env=slurm, check=True, timeout=30, capture_output=True)
        wait_for(said, "make install", 200)
        logs.append((output / "measurements.jsonl").read_bytes())
    assert logs[0] == logs[1]
    assert b'"launcher": "slurm"' in logs[0] or b'"launcher":"slurm"' in logs[0]


#: A tuning that is no MPI job, in a script for Slurm; long enough for Slurm, which looks at limits
#: every half minute.
OPTIONS = ("--launcher", "model-of-nodes", "--collectives", "bcast", "--budget", "0")
SIZES = ("--sizes", "1,16,256,4096,64KiB")
SLOW = json.dumps([{"words": ["measure"], "does": "slow"}])


def test_a_tuning_that_reaches_its_jobs_time_limit_goes_on_when_submitted_again(slurm, tmp_path):
    command, script = tmp_path / "bin" / "stagegen", tmp_path / "job.sh"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {RUN} "$@"\n')
    command.chmod(0o755)
    variables = {**slurm, "PATH": f"{command.parent}:{slurm['PATH']}", "FAULTS": SLOW}
    tuning = Tuning(tmp_path, (*OPTIONS, *SIZES), variables)
    made = tuning.run("--sbatch", str(script), "--time-limit", "10")
    assert made.returncode == 0, made.stderr
    job = Submitted(tuning, script, "first")
    tuning.wait_until(lambda: len(tuning.records("measurement")) >= 2)
    job.command("scontrol", "update", f"JobId={job.number}", "TimeLimit=1")
    status, said = job.status(), job.output.read_text()
    assert status == 128 + signal.SIGTERM, said
    assert "TIME LIMIT" not in said, "the signal comes before the limit"
    assert "what was measured is in" in said
    assert "go on with --resume" in said
    before = tuning.log.read_bytes()
    del tuning.environment["FAULTS"]
    again = Submitted(tuning, script, "second")
    assert again.status() == 0, again.output.read_text()
    assert tuning.log.read_bytes().startswith(before)
    tuning.require_same_from_log()
