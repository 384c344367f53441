"""The lab: real MPI processes on an emulated tree of Ethernet switches, on this machine.

It is Hydra (or Open MPI's PRRTE) with a remote shell of its own: hosts are network namespaces,
and everything lives in namespaces that vanish with their first process (``docs/lab.md``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from stagegen.errors import LaunchError
from stagegen.generate import FLAVOURS
from stagegen.measure.launch.base import Environment, Job, RunningJob, here
from stagegen.measure.launch.command_lines import (
    HANDED_OVER,
    handed_over,
    hydra_command,
    openmpi_command,
)
from stagegen.measure.launch.helpers import idle_library, lacking_here
from stagegen.measure.launch.lab.capacity import lab_scale
from stagegen.measure.launch.lab.network import (
    CONTROL_DEVICE,
    HOST_DEVICE,
    SUBNET,
    plan_network,
)
from stagegen.measure.launch.lab.process import (
    congestion_control,
    lab_delay,
    machine_congestion_control,
    start_in_network,
    why_no_lab,
)
from stagegen.measure.launch.mpi import Mpi, find_mpi
from stagegen.measure.launch.preload import preload_list
from stagegen.topology import Topology

# Where `init_process` puts things, inside the lab.
_SHELL = Path("/run/lab-shell")
_RANK = "/run/lab-rank"
_SESSIONS = Path("/run/tmp")
_PRELOAD = "LAB_PRELOAD"

# Ranks of one host talk through memory, which the idle helper cannot wait for.
_SHARED_HOST = {"LAB_IDLE_LONGEST_US": "50"}

# MPICH's own choice would include the shared memory of this one machine.
_MPICH_VARIABLES = {
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": HOST_DEVICE,
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": HOST_DEVICE,
}
_OPENMPI_PARAMETERS = {
    "btl": "tcp,self",
    "btl_tcp_if_include": str(SUBNET),
    "pml": "ob1",
    "mpi_yield_when_idle": "1",
}
# Every user is root inside the lab; all hosts have the CPUs of one machine.
_OPENMPI_OPTIONS = ("--allow-run-as-root", "--bind-to", "none")


@dataclass(frozen=True)
class LabLauncher:
    """Starts jobs in the lab, each in a lab of its own.

    Attributes:
        mpiexec: the one to use; None looks for one.
    """

    mpiexec: Path | None = None
    flavours: tuple[str, ...] = tuple(FLAVOURS)
    name: str = "lab"
    emulates: bool = True
    stays_here: bool = True

    def why_unavailable(self, topology: Topology, mpi: str = "mpich") -> str | None:
        """Return why no lab can be built here and which setting would help, or None."""
        return lacking_here(mpi, self.mpiexec) or why_no_lab()

    def environment(self, topology: Topology, mpi: str = "mpich") -> Environment:
        """Return the record of the lab of a topology, with the scale of its rates."""
        scale = lab_scale(topology)
        delay = lab_delay()
        notes = [delay.note(topology)]
        asked, own = congestion_control(), machine_congestion_control()
        whose = asked or f"{own}, the machine's own"
        notes.append(f"TCP congestion control: {whose}")
        if scale.note:
            notes.append(scale.note)
        return here(
            self.name,
            find_mpi(mpi, self.mpiexec),
            representative=True,
            latency=delay.record(topology),
            scale=scale.factor,
            notes=tuple(notes),
            congestion_control=asked or own,
        )

    def start(self, job: Job, topology: Topology) -> RunningJob:
        """Build the lab of a topology and start a job in it.

        Returns when the network stands and ``mpiexec`` has been started.
        """
        if reason := self.why_unavailable(topology, job.mpi):
            raise LaunchError(f"the lab cannot run here: {reason}")
        environment = self.environment(topology, job.mpi)
        plan = plan_network(
            topology,
            environment.scale,
            lab_delay(),
            congestion=congestion_control(),
        )
        command = lab_command(find_mpi(job.mpi, self.mpiexec), job, topology)
        return RunningJob(environment, start_in_network(plan, command, {}, job.streams))


def lab_command(mpi: Mpi, job: Job, topology: Topology) -> list[str]:
    """Return the command line that starts a job from the lab's outer namespace."""
    hosts = job.rank_hosts(topology)
    program = (_RANK, *job.program)
    shared = _SHARED_HOST if len(set(hosts)) < len(hosts) else {}
    if mpi.flavour == "openmpi":
        command = openmpi_command(
            mpi,
            program,
            hosts,
            variables={**handed_over(), **_variables(job, shared)},
            control={
                "shell": str(_SHELL),
                "flat": "1",
                "network": str(SUBNET),
                "folder": str(_SESSIONS),
            },
            data=_OPENMPI_PARAMETERS,
            options=_OPENMPI_OPTIONS,
        )
        return ["env", "-u", HANDED_OVER, *command]
    return hydra_command(
        mpi,
        program,
        hosts,
        variables=_variables(job, {**_MPICH_VARIABLES, **shared}),
        remote_shell=_SHELL,
        device=CONTROL_DEVICE,
    )


def _variables(job: Job, defaults: dict[str, str]) -> dict[str, str]:
    """Return the ranks' variables; the user's own settings win over the lab's defaults."""
    chosen = {name: os.environ.get(name, value) for name, value in defaults.items()}
    libraries = preload_list([idle_library()], job.preload_variable())
    return {**chosen, _PRELOAD: libraries, **job.environment}
