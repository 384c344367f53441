"""The launcher of a real cluster with MPICH: ``mpiexec`` (Hydra) over ssh."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from stagegen.errors import InputError
from stagegen.measure.launch.base import Environment, Job, RunningJob, here
from stagegen.measure.launch.command_lines import hydra_command
from stagegen.measure.launch.mpi import find_mpi
from stagegen.measure.launch.mpiexec import start_mpiexec
from stagegen.topology import Topology


def unresolved(topology: Topology) -> list[str]:
    """Return the addresses of hosts with ranks that no name service knows, in file order."""
    missing = []
    for host in topology.hosts:
        if host.name in topology.ranks and not _resolves(host.address or host.name):
            missing.append(host.address or host.name)
    return missing


def _resolves(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class HydraLauncher:
    """The launcher of a real cluster with MPICH: one ``mpiexec`` over ssh.

    Attributes:
        mpiexec: the one to use; None looks for one.
    """

    mpiexec: Path | None = None
    name: str = "hydra"
    emulates: bool = False

    def why_unavailable(self, topology: Topology, mpi: str = "mpich") -> str | None:
        """Return why the cluster cannot be reached; looks names up, but contacts no host."""
        try:
            _mpich_only(mpi)
            find_mpi(mpi, self.mpiexec)
        except InputError as error:
            return str(error)
        if missing := unresolved(topology):
            shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
            return f"no address is known for {shown}; give hosts an `address:` in the topology"
        return None

    def environment(self, topology: Topology, mpi: str = "mpich") -> Environment:
        """Return the record of the cluster itself."""
        found = find_mpi(mpi, self.mpiexec)
        return here(self.name, found, representative=True, latency="real")

    def start(self, job: Job, topology: Topology) -> RunningJob:
        """Start a job on the topology's hosts, reached by their address or name."""
        _mpich_only(job.mpi)
        mpi = find_mpi(job.mpi, self.mpiexec)
        hosts = [topology.host_by_name[name].address or name for name in job.rank_hosts(topology)]
        variables = dict(job.environment)
        if preload := job.preload_variable():
            variables["LD_PRELOAD"] = preload
        command = hydra_command(mpi, job.program, hosts, variables=variables)
        return start_mpiexec(command, job.streams, self.environment(topology, job.mpi))


def _mpich_only(flavour: str) -> None:
    if flavour != "mpich":
        raise InputError(
            f"launcher hydra is MPICH's own and cannot start programs of {flavour}; "
            "use the lab, or build the program with MPICH"
        )
