"""The launcher of a real cluster with MPICH: ``mpiexec`` (Hydra) over ssh."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from stagegen.errors import InputError
from stagegen.measure.launch.base import Environment, Job, RunningJob, here
from stagegen.measure.launch.command_lines import hydra_command
from stagegen.measure.launch.mpi import find_mpi, require_flavour
from stagegen.measure.launch.mpiexec import start_mpiexec
from stagegen.measure.launch.ssh import SSH_OPTIONS, addresses, why_unresolved
from stagegen.topology import Topology

# Hydra's own variable for more options of its remote shell.
_SSH_VARIABLE = "HYDRA_LAUNCHER_EXTRA_ARGS"


@dataclass(frozen=True)
class HydraLauncher:
    """The launcher of a real cluster with MPICH: one ``mpiexec`` over ssh.

    Attributes:
        mpiexec: the one to use; None looks for one.
    """

    mpiexec: Path | None = None
    flavours: tuple[str, ...] = ("mpich",)
    name: str = "hydra"
    emulates: bool = False
    stays_here: bool = False

    def why_unavailable(self, topology: Topology, mpi: str = "mpich") -> str | None:
        """Return why the cluster cannot be reached; looks names up, but contacts no host."""
        try:
            require_flavour(self.name, self.flavours, mpi)
            find_mpi(mpi, self.mpiexec)
        except InputError as error:
            return str(error)
        if shutil.which("ssh") is None:
            return "ssh was not found; install an ssh client (Debian: openssh-client)"
        return why_unresolved(topology)

    def environment(self, topology: Topology, mpi: str = "mpich") -> Environment:
        """Return the record of the cluster itself."""
        found = find_mpi(mpi, self.mpiexec)
        return here(self.name, found, representative=True, latency="real")

    def start(self, job: Job, topology: Topology) -> RunningJob:
        """Start a job on the topology's hosts, reached by their address or name."""
        require_flavour(self.name, self.flavours, job.mpi)
        mpi = find_mpi(job.mpi, self.mpiexec)
        hosts = addresses(topology, job.rank_hosts(topology))
        command = hydra_command(mpi, job.program, hosts, variables=job.variables())
        environment = self.environment(topology, job.mpi)
        own = {_SSH_VARIABLE: os.environ.get(_SSH_VARIABLE, SSH_OPTIONS)}
        return start_mpiexec(command, job.streams, environment, own)
