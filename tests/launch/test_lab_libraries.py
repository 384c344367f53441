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
#define _GNU_SOURCE
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 15, LATE_US = 20000 };

static _Thread_local long yields;

/* The library's calls come here. */
int sched_yield(void)
{
    ++yields;
    return (int)syscall(SYS_sched_yield);
}

/* How often this thread has slept: left its CPU by itself, but for yields. */
static long sleeps(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static int compare(const void *a, const void *b)
{
    const long difference = *(const long *)a - *(const long *)b;
    return (difference > 0) - (difference < 0);
}

/* On rank 0: the least of all ranks' medians. */
static long least_median(long *counts)
{
    long least = 0;
    qsort(counts, ROUNDS, sizeof *counts, compare);
    MPI_Reduce(&counts[ROUNDS / 2], &least, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
    return least;
}

/*
 * Sends 1 KB around all ranks, several times; rank 0 comes late, so the others wait. Prints hosts
 * in rank order, then how often any other rank slept and how often it yielded in most waits.
 */
int main(int argc, char **argv)
{
    char data[1024] = {0}, host[64], hosts[64 * 64];
    int rank, size;
    long slept[ROUNDS], yielded[ROUNDS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);
    MPI_Gather(host, 64, MPI_CHAR, hosts, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const long slept_before = sleeps(), yielded_before = yields;
        if (rank == 0)
            usleep(LATE_US);
        else
            MPI_Recv(data, 1024, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        slept[i] = rank == 0 ? LONG_MAX : sleeps() - slept_before;
        yielded[i] = rank == 0 ? LONG_MAX : yields - yielded_before;
        MPI_Send(data, 1024, MPI_CHAR, (rank + 1) % size, 0, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Recv(data, 1024, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const long least_slept = least_median(slept), least_yielded = least_median(yielded);
    for (int i = 0; rank == 0 && i < size; i++)
        printf("%s ", hosts + 64 * i);
    if (rank == 0)
        printf("%ld %ld\n", least_slept, least_yielded);
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
    subprocess.run([compiler, "-rdynamic", "-o", program, source], check=True, capture_output=True)
    return str(program)


def output(launcher, job: Job, topology, folder: Path) -> list[str]:
    """Return the words that a job prints; its input stays open, as Hydra needs."""
    with (folder / "output").open("w+b") as file:
        asked = Job(job.program, mpi=job.mpi, streams=Streams(subprocess.PIPE, file, None))
        with launcher.start(asked, topology) as running:
            assert running.wait(60) == 0
        file.seek(0)
        return file.read().decode().split()


def leaves_its_cpu(flavour: str, sleeps: int, yields: int) -> bool:
    """Whether a waiting rank does: the idle helper lets it sleep, and Open MPI is told to yield.

    How Open MPI waits depends on its version: the helper knows only `epoll_wait`, not `poll`.
    """
    print(f"{flavour}: {sleeps} sleeps, {yields} yields in a wait")
    return sleeps > 0 or (flavour == "openmpi" and yields > 0)


@pytest.mark.lab
@pytest.mark.parametrize("text", [None, SHARED])
@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_waiting_ranks_of_both_libraries_leave_their_cpu_in_the_lab(
    cluster, tmp_path, monkeypatch, flavour, text
):
    mpi = installed(flavour)
    launcher = LabLauncher(mpi.mpiexec)
    topology = cluster(text) if text else cluster()
    if reason := launcher.why_unavailable(topology, flavour):
        pytest.skip(reason)
    monkeypatch.setenv("STAGEGEN_LAB_SCALE", "1")
    *hosts, sleeps, yields = output(
        launcher, Job((ring(mpi, tmp_path),), mpi=flavour), topology, tmp_path
    )
    assert tuple(hosts) == topology.ranks
    assert leaves_its_cpu(flavour, int(sleeps), int(yields))


@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_waiting_local_ranks_leave_their_cpu(cluster, tmp_path, flavour):
    mpi = installed(flavour)
    launcher = LocalLauncher(mpi.mpiexec)
    if reason := launcher.why_unavailable(cluster(), flavour):
        pytest.skip(reason)
    words = output(launcher, Job((ring(mpi, tmp_path),), mpi=flavour), cluster(), tmp_path)
    assert len(words) == 4 + 2
    assert leaves_its_cpu(flavour, *map(int, words[-2:]))
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
