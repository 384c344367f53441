"""The launcher of a real cluster with Open MPI: ``mpirun`` over ssh, or inside an allocation."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from stagegen.errors import InputError
from stagegen.measure.launch.base import Environment, Job, RunningJob, here
from stagegen.measure.launch.command_lines import HANDED_OVER, handed_over, openmpi_command
from stagegen.measure.launch.mpi import find_mpi, require_flavour
from stagegen.measure.launch.mpiexec import start_mpiexec
from stagegen.measure.launch.slurm import ALLOCATION, nodes_of, why_not_allocated
from stagegen.measure.launch.ssh import SSH_OPTIONS, addresses, why_unresolved
from stagegen.topology import Topology


@dataclass(frozen=True)
class OpenMpiLauncher:
    """Starts programs of Open MPI 4 or 5 with its own ``mpirun``.

    The parameters that the user has set for Open MPI (files, ``OMPI_MCA_…``) hold, so that what is
    measured is what the cluster's programs get.

    Attributes:
        mpiexec: the ``mpirun`` to use; None looks for one.
    """

    mpiexec: Path | None = None
    flavours: tuple[str, ...] = ("openmpi",)
    name: str = "openmpi"
    emulates: bool = False
    stays_here: bool = False

    def why_unavailable(self, topology: Topology, mpi: str = "openmpi") -> str | None:
        """Return why the cluster cannot be reached; looks names up, but contacts no host."""
        try:
            require_flavour(self.name, self.flavours, mpi)
            find_mpi(mpi, self.mpiexec)
        except InputError as error:
            return str(error)
        if ALLOCATION in os.environ:  # mpirun starts its daemons with srun
            return why_not_allocated(topology)
        if shutil.which("ssh") is None:
            return "ssh was not found; install an ssh client (Debian: openssh-client)"
        return why_unresolved(topology)

    def environment(self, topology: Topology, mpi: str = "openmpi") -> Environment:
        """Return the record of the cluster itself."""
        found = find_mpi(mpi, self.mpiexec)
        return here(self.name, found, representative=True, latency="real")

    def start(self, job: Job, topology: Topology) -> RunningJob:
        """Start a job on the topology's hosts, reached by their address or name."""
        require_flavour(self.name, self.flavours, job.mpi)
        command = openmpi_command(
            find_mpi(job.mpi, self.mpiexec),
            job.program,
            _where(topology, job.rank_hosts(topology)),
            variables={**handed_over(), **job.variables()},
            # All hosts are called from here: else a host that is not reached goes unnoticed.
            control={"shell_options": SSH_OPTIONS, "flat": "1"},
            data={},
            options=["--allow-run-as-root"] if os.geteuid() == 0 else [],
        )
        environment = self.environment(topology, job.mpi)
        return start_mpiexec(command, job.streams, environment, without={HANDED_OVER})


def _where(topology: Topology, hosts: tuple[str, ...]) -> list[str]:
    """Return where ``mpirun`` reaches each host: inside an allocation of Slurm, it is the node.

    Raises:
        LaunchError: hosts are not in the allocation.
    """
    if ALLOCATION in os.environ:
        return nodes_of(topology, hosts)
    return list(addresses(topology, hosts))
