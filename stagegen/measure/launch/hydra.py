"""MPICH's ``mpiexec`` (Hydra): over ssh on a real cluster, or with another remote shell.

The lab starts its jobs with the same command line and a remote shell of its own.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stagegen.errors import InputError
from stagegen.measure.launch.base import Environment, Job, RunningJob, here
from stagegen.measure.launch.mpi import Mpi, find_mpi
from stagegen.measure.launch.plain import start_plain
from stagegen.topology import Topology


def hydra_command(
    mpi: Mpi,
    program: Sequence[str],
    hosts: Sequence[str],
    *,
    variables: Mapping[str, str],
    remote_shell: Path | None = None,
    device: str | None = None,
) -> list[str]:
    """Return the command line that puts rank r on the r-th host.

    Args:
        mpi: an MPICH.
        program: the program and its arguments.
        hosts: where ssh reaches the host of each rank; a host may come several times.
        variables: set for the ranks.
        remote_shell: called as ssh is; None is ssh itself.
        device: the local network device by which the ranks' machines reach this one.
    """
    command = [str(mpi.mpiexec), "-launcher", "ssh"]
    if remote_shell is not None:
        command += ["-launcher-exec", str(remote_shell)]
    if device is not None:
        command += ["-iface", device]
    command += ["-hosts", ",".join(hosts), "-n", str(len(hosts))]
    for name, value in sorted(variables.items()):
        command += ["-genv", name, value]
    return [*command, *program]


def rank_hosts(job: Job, topology: Topology) -> tuple[str, ...]:
    """Return the host name of every rank of a job.

    Raises:
        InputError: there is no rank, or a host that the topology does not have.
    """
    hosts = job.rank_hosts(topology)
    if not hosts:
        raise InputError("a job needs at least one rank")
    if unknown := sorted(set(hosts) - set(topology.host_by_name)):
        raise InputError(f"topology {topology.name} has no host named {', '.join(unknown)}")
    return hosts


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

    def why_unavailable(self, topology: Topology, mpi: str = "mpich") -> str | None:
        """Return why the cluster cannot be reached; only names are looked up, nobody is called."""
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
        hosts = [topology.host_by_name[name].address or name for name in rank_hosts(job, topology)]
        variables = dict(job.environment)
        if preload := job.preload_variable():
            variables["LD_PRELOAD"] = preload
        command = hydra_command(mpi, job.program, hosts, variables=variables)
        return start_plain(command, job.streams, self.environment(topology, job.mpi))


def _mpich_only(flavour: str) -> None:
    if flavour != "mpich":
        raise InputError(
            f"launcher hydra is MPICH's own and cannot start programs of {flavour}; "
            "use the lab, or build the program with MPICH"
        )
