"""The launcher of clusters with Slurm: ``srun`` inside an allocation."""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stagegen.errors import LaunchError, StagegenError
from stagegen.generate import FLAVOURS
from stagegen.measure.launch.base import Environment, Job, RunningJob, here
from stagegen.measure.launch.command_lines import slurm_command
from stagegen.measure.launch.mpi import Mpi, find_mpi
from stagegen.measure.launch.mpiexec import start_mpiexec
from stagegen.topology import Topology, expand_hostlist

#: How the ranks of each MPI library find each other: the plugin of ``srun --mpi``.
PLUGINS = {"mpich": "pmi2", "openmpi": "pmix"}

ALLOCATION = "SLURM_JOB_ID"
_NODES = "SLURM_JOB_NODELIST"

# An allocation's own wishes for its steps, which would contradict the list of nodes.
_NOT_FOR_STEPS = frozenset({"SLURM_NTASKS_PER_NODE", "SLURM_HOSTFILE", "SLURM_DISTRIBUTION"})


@dataclass(frozen=True)
class SlurmLauncher:
    """Starts each job as a step of the allocation in which stagegen runs.

    Attributes:
        mpiexec: names the MPI library's version for the records, if there is one; starts nothing.
    """

    mpiexec: Path | None = None
    flavours: tuple[str, ...] = tuple(FLAVOURS)
    name: str = "slurm"
    emulates: bool = False
    stays_here: bool = False

    def why_unavailable(self, topology: Topology, mpi: str = "mpich") -> str | None:
        """Return what is missing: srun, an allocation, nodes of the topology, the PMI plugin."""
        if shutil.which("srun") is None:
            return "srun was not found; install Slurm's client (Debian: slurm-client)"
        if ALLOCATION not in os.environ:
            return (
                "this is no allocation of Slurm: run stagegen inside of salloc or sbatch; "
                "`stagegen tune --sbatch FILE` writes the script of such a job"
            )
        if reason := why_not_allocated(topology):
            return reason
        plugins = _plugins()
        if plugins and PLUGINS[mpi] not in plugins:
            return (
                f"srun has no --mpi={PLUGINS[mpi]}, which programs of {FLAVOURS[mpi]} need; "
                f"install that plugin of Slurm (it has {', '.join(plugins)}), or use the launcher "
                f"{'hydra' if mpi == 'mpich' else 'openmpi'}"
            )
        return None

    def environment(self, topology: Topology, mpi: str = "mpich") -> Environment:
        """Return the record of the cluster itself."""
        try:
            found = find_mpi(mpi, self.mpiexec)
        except StagegenError:  # it is not needed here
            found = Mpi(mpi, "unknown", Path("srun"))
        return here(self.name, found, representative=True, latency="real")

    def start(self, job: Job, topology: Topology) -> RunningJob:
        """Start a job as a step, on the nodes of the topology's hosts."""
        if reason := self.why_unavailable(topology, job.mpi):
            raise LaunchError(f"launcher slurm: {reason}")
        command = slurm_command(
            Path(str(shutil.which("srun"))),
            PLUGINS[job.mpi],
            job.program,
            nodes_of(topology, job.rank_hosts(topology)),
            variables=job.variables(),
        )
        environment = self.environment(topology, job.mpi)
        return start_mpiexec(command, job.streams, environment, without=_NOT_FOR_STEPS)


def allocated(topology: Topology) -> bool:
    """Tell whether this is an allocation that has a node for every host with a rank."""
    return ALLOCATION in os.environ and why_not_allocated(topology) is None


def why_not_allocated(topology: Topology) -> str | None:
    """Return why this allocation has no node for some host with a rank; None if it has all."""
    try:
        nodes_of(topology, topology.ranks)
    except LaunchError as error:
        return str(error)
    return None


def nodes_of(topology: Topology, hosts: tuple[str, ...]) -> list[str]:
    """Return the node of each host in the allocation.

    The node has the host's name, or its address without a user, or the first label of either.

    Raises:
        LaunchError: hosts are not in the allocation, or its list of nodes cannot be read.
    """
    told = os.environ.get(_NODES)
    try:
        present = set(expand_hostlist(told)) if told else set()
    except ValueError as error:
        raise LaunchError(f"{_NODES}: {error}") from error
    missing: dict[str, None] = {}
    nodes = []
    for name in hosts:
        address = (topology.host_by_name[name].address or "").rpartition("@")[2]
        names = (name, address, name.partition(".")[0], _first_label(address))
        node = next((one for one in names if one in present), None)
        if node is None:
            missing[name] = None
        else:
            nodes.append(node)
    if missing:
        raise LaunchError(
            f"not in this allocation: {', '.join(missing)}; ask for them with --nodelist, as the "
            "script of `stagegen tune --sbatch` does, or give their nodes' names as `address:`"
        )
    return nodes


def _first_label(address: str) -> str:
    """Return the first label of a name; an IP address has none."""
    return "" if is_ip(address) else address.partition(".")[0]


def is_ip(address: str) -> bool:
    """Whether an address is one of IP, not a name."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1)
def _plugins() -> tuple[str, ...]:
    """Return what ``srun --mpi=list`` lists; nothing if it does not answer."""
    try:
        asked = subprocess.run(
            ["srun", "--mpi=list"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = (asked.stdout + asked.stderr).splitlines()
    return tuple(line.split(":")[-1].strip() for line in lines[1:]) if asked.returncode == 0 else ()
