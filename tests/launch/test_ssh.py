"""The launchers over ssh, with real ssh, to a real sshd in every host of a lab."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from docs.tools.bench_tuning.ssh_here import NETWORK_ONLY, why_no_sshd
from stagegen.measure.launch.base import Streams
from stagegen.measure.launch.helpers import idle_library
from stagegen.measure.launch.lab.network import plan_network
from stagegen.measure.launch.lab.process import start_in_network
from stagegen.measure.launch.registry import make_launcher
from tests.launch.installed import Installed, installed

pytestmark = [pytest.mark.lab, pytest.mark.mpi]

REPOSITORY = Path(__file__).parents[2]
PLACES = """\
name: places
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [n0, n1]}
  s1: {hosts: [n2]}
links:
  - {ends: [s0, s1]}
hosts:
  n0: {slots: 2}
  n2: {address: 10.77.0.3}
ranks: [n2, n0, n1, n0]
"""
LAUNCHERS = {"mpich": "hydra", "openmpi": "openmpi"}


@pytest.fixture
def over_ssh(cluster, tmp_path):
    """Run a job on the cluster `places`; return its status, lines of output, and complaints."""
    topology = cluster(PLACES)
    if reason := why_no_sshd():
        pytest.skip(reason)

    def run(mpi: Installed, *words: str, silent=(), down=()) -> tuple[int, list[str], str]:
        asked = {
            "topology": str(tmp_path / "cluster.yaml"),
            "launcher": LAUNCHERS[mpi.flavour],
            "mpi": mpi.flavour,
            "mpiexec": str(mpi.mpiexec),
            "program": [str(mpi.places), *words],
            "variables": {"GIVEN": "a,b c", **NETWORK_ONLY[mpi.flavour]},
            "preload": [str(idle_library())],
            "silent": silent,
            "down": down,
        }
        command = ["env", f"PYTHONPATH={REPOSITORY}", sys.executable]
        command += [str(REPOSITORY / "tests/launch/in_lab.py"), json.dumps(asked)]
        said, complained = tmp_path / "said", tmp_path / "complained"
        (tmp_path / "input").write_text("hello\n")
        with (
            (tmp_path / "input").open() as stdin,
            said.open("w") as stdout,
            complained.open("w") as stderr,
        ):
            plan = plan_network(topology, None)
            child = start_in_network(plan, command, {}, Streams(stdin, stdout, stderr))
            try:
                status = child.wait(100)
            finally:
                child.stop()
        return status, sorted(said.read_text().splitlines()), complained.read_text()

    return run


# MPICH of Debian 12 may wait forever in MPI_Finalize where all messages go over TCP.
@pytest.mark.parametrize("installation", ["wheel", "openmpi", "openmpi5"])
def test_ranks_stand_on_the_hosts_in_the_topologys_order(over_ssh, installation):
    mpi = installed(installation)
    status, lines, complaints = over_ssh(mpi)
    given = f"a,b c, {idle_library()}"
    assert (status, lines) == (
        0,
        [
            f"0 of 4 on n2: {given}, hello, {mpi.title}",
            f"1 of 4 on n0: {given}, -, {mpi.title}",
            f"2 of 4 on n1: {given}, -, {mpi.title}",
            f"3 of 4 on n0: {given}, -, {mpi.title}",
        ],
    ), complaints


@pytest.mark.parametrize("installation", ["wheel", "openmpi"])
def test_a_program_that_fails_ends_the_job_with_a_failure(over_ssh, installation):
    status, _, _ = over_ssh(installed(installation), "3")
    assert status == 3


@pytest.mark.parametrize("installation", ["wheel", "openmpi"])
@pytest.mark.parametrize("fault", ["silent", "down"])
def test_a_host_that_does_not_answer_is_named(over_ssh, installation, fault):
    status, lines, complaints = over_ssh(installed(installation), **{fault: ["n1"]})
    assert status != 0
    assert lines == []
    assert "n1" in complaints


def test_a_job_for_another_library_is_refused(cluster):
    for name, other in (("hydra", "openmpi"), ("openmpi", "mpich")):
        reason = make_launcher(name).why_unavailable(cluster(), other)
        assert reason is not None
        assert f"cannot start programs of {other}" in reason
