"""Plain ``mpiexec`` on this machine: to check programs, not to measure a cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from stagegen.generate import FLAVOURS
from stagegen.measure.launch.base import Environment, Job, RunningJob, here
from stagegen.measure.launch.command_lines import HANDED_OVER, handed_over
from stagegen.measure.launch.helpers import idle_library, lacking_here
from stagegen.measure.launch.mpi import Mpi, find_mpi
from stagegen.measure.launch.mpiexec import start_mpiexec
from stagegen.measure.launch.preload import preload_list
from stagegen.topology import Topology

# TCP instead of shared memory: with more ranks than CPUs, ranks must sleep while they wait, and the
# idle helper can do this for TCP only.
_MPICH_VARIABLES = {
    "MPIR_CVAR_NOLOCAL": "1",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": "lo",
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": "lo",
}
_OPENMPI_PARAMETERS = {"btl": "tcp,self", "pml": "ob1", "mpi_yield_when_idle": "1"}


def local_command(mpi: Mpi, job: Job, ranks: int) -> list[str]:
    """Return the command line that starts a job with a number of ranks on this machine."""
    defaults = _own(_MPICH_VARIABLES) if mpi.flavour == "mpich" else {}
    libraries = preload_list([idle_library()], job.preload_variable())
    handed = handed_over() if mpi.flavour == "openmpi" else {}
    variables = {**defaults, **handed, "LD_PRELOAD": libraries, **job.environment}
    command = [str(mpi.mpiexec)]
    if mpi.flavour == "mpich":
        command += ["-launcher", "fork", "-n", str(ranks)]
        options = [["-genv", name, value] for name, value in sorted(variables.items())]
    else:
        command += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command += ["--oversubscribe", "-n", str(ranks)]
        options = [["--mca", name, value] for name, value in _OPENMPI_PARAMETERS.items()]
        options += [["-x", f"{name}={value}"] for name, value in sorted(variables.items())]
    return [*command, *(word for option in options for word in option), *job.program]


def _own(defaults: dict[str, str]) -> dict[str, str]:
    return {name: os.environ.get(name, value) for name, value in defaults.items()}


@dataclass(frozen=True)
class LocalLauncher:
    """Starts all ranks as processes of this machine, which says nothing about a cluster.

    Attributes:
        mpiexec: the one to use; None looks for one.
    """

    mpiexec: Path | None = None
    flavours: tuple[str, ...] = tuple(FLAVOURS)
    name: str = "local"
    emulates: bool = False
    stays_here: bool = True

    def why_unavailable(self, topology: Topology, mpi: str = "mpich") -> str | None:
        """Return what is missing on this machine, or None."""
        return lacking_here(mpi, self.mpiexec)

    def environment(self, topology: Topology, mpi: str = "mpich") -> Environment:
        """Return a record marked as not representative of the topology's cluster."""
        note = "all ranks ran on one machine; times say nothing about the topology"
        found = find_mpi(mpi, self.mpiexec)
        return here(self.name, found, representative=False, latency="none", notes=(note,))

    def start(self, job: Job, topology: Topology) -> RunningJob:
        """Start a job with as many ranks as it would have on the cluster."""
        command = local_command(find_mpi(job.mpi, self.mpiexec), job, len(job.rank_hosts(topology)))
        environment = self.environment(topology, job.mpi)
        return start_mpiexec(command, job.streams, environment, without={HANDED_OVER})
