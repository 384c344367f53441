"""Real MPI programs: both libraries in the lab, the local launcher, and Hydra over "ssh"."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stagegen.errors import InputError
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.hydra import HydraLauncher
from stagegen.measure.launch.lab.launcher import LabLauncher
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.launch.mpi import Mpi, find_mpi

pytestmark = [pytest.mark.mpi]

OPENMPI_VARIABLE = "STAGEGEN_TEST_OPENMPI"  # names an mpiexec of Open MPI
RING = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
/* Sends 1 KB around all ranks, several times; prints hosts in rank order, then milliseconds. */
int main(int argc, char **argv)
{
    char data[1024] = {0}, host[64], hosts[64 * 64];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);
    MPI_Gather(host, 64, MPI_CHAR, hosts, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
    double best = 1e9;
    for (int i = 0; i < 10; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        if (rank > 0)
            MPI_Recv(data, 1024, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, 1024, MPI_CHAR, (rank + 1) % size, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Recv(data, 1024, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (MPI_Wtime() - begin < best)
                best = MPI_Wtime() - begin;
        }
    }
    for (int i = 0; rank == 0 && i < size; i++)
        printf("%s ", hosts + 64 * i);
    if (rank == 0)
        printf("%.3f\n", best * 1e3);
    MPI_Finalize();
    return 0;
}
"""
SHARED = """\
name: shared
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [n0, n1]}
  s1: {hosts: [n2]}
links:
  - {ends: [s0, s1]}
hosts:
  n2: {slots: 2}
ranks: [n2, n0, n2, n1]
"""


def installed(flavour: str) -> Mpi:
    named = os.environ.get(OPENMPI_VARIABLE) if flavour == "openmpi" else None
    try:
        return find_mpi(flavour, Path(named) if named else None)
    except InputError as error:
        pytest.skip(f"{error}, or in {OPENMPI_VARIABLE}" if flavour == "openmpi" else str(error))


def ring(mpi: Mpi, folder: Path) -> str:
    source, program = folder / "ring.c", folder / "ring"
    source.write_text(RING)
    compiler = mpi.mpiexec.with_name("mpicc")
    subprocess.run([compiler, "-o", program, source], check=True, capture_output=True)
    return str(program)


def output(launcher, job: Job, topology, folder: Path) -> list[str]:
    with (folder / "output").open("w+b") as file:
        asked = Job(job.program, mpi=job.mpi, streams=Streams(-3, file, None))
        with launcher.start(asked, topology) as running:
            assert running.wait(60) == 0
        file.seek(0)
        return file.read().decode().split()


@pytest.mark.alone
@pytest.mark.lab
@pytest.mark.parametrize("text", [None, SHARED])
@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_ranks_of_both_libraries_talk_fast_in_the_lab(
    cluster, tmp_path, monkeypatch, flavour, text
):
    mpi = installed(flavour)
    launcher = LabLauncher(mpi.mpiexec)
    topology = cluster(text) if text else cluster()
    if reason := launcher.why_unavailable(topology, flavour):
        pytest.skip(reason)
    monkeypatch.setenv("STAGEGEN_LAB_SCALE", "1")
    *hosts, milliseconds = output(
        launcher, Job((ring(mpi, tmp_path),), mpi=flavour), topology, tmp_path
    )
    assert tuple(hosts) == topology.ranks
    assert float(milliseconds) < 20  # spinning ranks would take some 70


@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_local_ranks_talk_fast(cluster, tmp_path, flavour):
    mpi = installed(flavour)
    launcher = LocalLauncher(mpi.mpiexec)
    if reason := launcher.why_unavailable(cluster(), flavour):
        pytest.skip(reason)
    words = output(launcher, Job((ring(mpi, tmp_path),), mpi=flavour), cluster(), tmp_path)
    assert len(words) == 5
    assert float(words[-1]) < 20
    assert launcher.environment(cluster(), flavour).representative is False


def test_hydra_calls_ssh_with_the_hosts_addresses(cluster, tmp_path, monkeypatch):
    launcher = HydraLauncher(installed("mpich").mpiexec)
    shell = tmp_path / "ssh"
    shell.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n'
        "while getopts xo: option; do :; done\n"
        'shift "$OPTIND"\nexec sh -c "$*"\n'
    )
    shell.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    text = (
        "name: x\ndefaults: {bandwidth: 10Mbit, latency: 50us}\nswitches: {s0: {hosts: [a, b]}}\n"
        "hosts: {a: {address: 192.0.2.1}, b: {address: 192.0.2.2}}\nranks: [b, a]\n"
    )
    topology = cluster(text)
    assert launcher.why_unavailable(topology) is None
    job = Job(("sh", "-c", 'echo "$PMI_RANK"'))
    assert sorted(output(launcher, job, topology, tmp_path)) == ["0", "1"]
    calls = (tmp_path / "calls").read_text()
    assert "192.0.2.1" in calls
    assert "192.0.2.2" in calls
