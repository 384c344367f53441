"""What every launcher shares: the job it starts, the running job, and its environment's record."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any, Protocol

from stagegen.errors import InputError
from stagegen.measure.launch.lifeline import ChildProcess
from stagegen.measure.launch.mpi import Mpi
from stagegen.measure.launch.preload import preload_list
from stagegen.measure.machines import Machine
from stagegen.topology import Topology

#: The variable by which ``stagegen record`` tells its recorder where to write.
RECORDING = "STAGEGEN_RECORD"


@dataclass(frozen=True)
class Streams:
    """Where a job's standard streams go, each as `subprocess.Popen` takes it.

    Attributes:
        stdin: read by rank 0.
        stdout: of all ranks.
        stderr: of all ranks.
    """

    stdin: int | IO[Any] | None = None
    stdout: int | IO[Any] | None = None
    stderr: int | IO[Any] | None = None


INHERIT = Streams()
PIPES = Streams(stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@dataclass(frozen=True)
class Job:
    """An MPI program to start.

    Attributes:
        program: the program and its arguments.
        environment: variables that the ranks get besides those of this process.
        preload: libraries that the ranks load first.
        mpi: the MPI library that the program was built with, `mpich` or `openmpi`.
        hosts: the host of each rank, by their names in the topology; None starts all ranks of
            the topology, on its hosts in its order.
        streams: standard input, output and error.
    """

    program: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    preload: tuple[Path, ...] = ()
    mpi: str = "mpich"
    hosts: tuple[str, ...] | None = None
    streams: Streams = PIPES

    def rank_hosts(self, topology: Topology) -> tuple[str, ...]:
        """Return the host of every rank of the job.

        Raises:
            InputError: there is no rank, or a host that the topology does not have.
        """
        hosts = topology.ranks if self.hosts is None else self.hosts
        if not hosts:
            raise InputError("a job needs at least one rank")
        if unknown := sorted(set(hosts) - set(topology.host_by_name)):
            raise InputError(f"topology {topology.name} has no host named {', '.join(unknown)}")
        return hosts

    def variables(self) -> dict[str, str]:
        """Return the ranks' variables, ``LD_PRELOAD`` among them if something is preloaded."""
        preload = self.preload_variable()
        return {**({"LD_PRELOAD": preload} if preload else {}), **self.environment}

    def preload_variable(self) -> str:
        """Return the value of ``LD_PRELOAD`` for the ranks; empty if nothing is preloaded.

        The libraries of this process's own ``LD_PRELOAD`` stay in it, after the job's. Only the
        recorder of ``stagegen record`` comes first: a library before it would hide its calls.
        """
        own = preload_list(path.absolute() for path in self.preload)
        inherited = [name for name in re.split("[: ]", os.environ.get("LD_PRELOAD", "")) if name]
        recorder = inherited[: RECORDING in os.environ]  # `record` puts it first
        return ":".join(filter(None, [*recorder, own, *inherited[len(recorder) :]]))


#: The launcher that emulated networks when records did not say which one does.
_ONLY_EMULATOR = "lab"


@dataclass(frozen=True)
class Environment:
    """The conditions of measurements made through a launcher, for their records.

    Attributes:
        launcher: its name.
        representative: whether times say something about the topology's cluster.
        scale: the factor by which all link rates were multiplied, at most 1.
        latency: `real`; `emulated` on every link; `relay` or `relay:TIME`, on long links only; or
            `none`.
        mpi: `mpich` or `openmpi`.
        mpi_version: its version.
        kernel: release of the kernel of the machine that started the job.
        cpus: how many CPUs the starting process may use.
        notes: sentences for people.
        congestion_control: of TCP, such as `cubic`; None if unknown, as in old records.
        mpi_library: as the MPI library itself says it; None if unknown, as in old records.
        machines: the hosts of the ranks, as these see them; none if unknown, as in old records.
        program_hash: of the sources of the session program.
        emulated: whether the launcher emulates the network.
    """

    launcher: str
    representative: bool
    scale: float
    latency: str
    mpi: str
    mpi_version: str
    kernel: str
    cpus: int
    notes: tuple[str, ...] = ()
    congestion_control: str | None = None
    mpi_library: str | None = None
    machines: tuple[Machine, ...] = ()
    program_hash: str | None = None
    emulated: bool = False

    @property
    def crowded(self) -> tuple[Machine, ...]:
        """The hosts whose ranks must share cores."""
        return tuple(machine for machine in self.machines if machine.is_crowded)

    def to_json(self) -> dict[str, Any]:
        """Return the canonical JSON form."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        machines = [machine.to_json() for machine in self.machines]
        return {**own, "notes": list(self.notes), "machines": machines}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Environment:
        """Make an environment from its canonical JSON form; old ones do not say `emulated`.

        Raises:
            KeyError, TypeError, ValueError: it does not have that form.
        """
        machines = tuple(Machine.from_json(one) for one in form.get("machines", ()))
        own = {"emulated": form["launcher"] == _ONLY_EMULATOR, **form}
        return cls(**{**own, "notes": tuple(form["notes"]), "machines": machines})


def here(
    launcher: str,
    mpi: Mpi,
    *,
    representative: bool,
    latency: str,
    scale: float = 1.0,
    notes: tuple[str, ...] = (),
    congestion_control: str | None = None,
) -> Environment:
    """Return an environment record with this machine's own facts filled in."""
    return Environment(
        launcher=launcher,
        representative=representative,
        scale=scale,
        latency=latency,
        mpi=mpi.flavour,
        mpi_version=mpi.version,
        kernel=platform.release(),
        cpus=len(os.sched_getaffinity(0)),
        notes=notes,
        congestion_control=congestion_control,
    )


@dataclass
class RunningJob:
    """A started job; as a context manager it ends all processes of the job on exit.

    Attributes:
        environment: the conditions of its measurements.
    """

    environment: Environment
    _process: ChildProcess

    @property
    def stdin(self) -> IO[Any] | None:
        """Rank 0's standard input, if the job was given a pipe for it; binary."""
        return self._process.popen.stdin

    @property
    def stdout(self) -> IO[Any] | None:
        """All ranks' standard output, if the job was given a pipe for it; binary."""
        return self._process.popen.stdout

    @property
    def stderr(self) -> IO[Any] | None:
        """All ranks' standard error, if the job was given a pipe for it; binary."""
        return self._process.popen.stderr

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the job has ended by itself.

        Args:
            timeout: in seconds; None waits without a limit.

        Returns:
            The program's exit status, 128 + n where signal n ended it.

        Raises:
            TimeoutError: the job still runs; it goes on.
        """
        return self._process.wait(timeout)

    def poll(self) -> int | None:
        """Return the exit status as `wait` does, or None while the job runs."""
        return self._process.poll()

    def stop(self) -> None:
        """End the job and every process in it, now; does nothing if it has ended."""
        self._process.stop()

    def __enter__(self) -> RunningJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Launcher(Protocol):
    """A way to start MPI programs on the hosts of a topology."""

    @property
    def name(self) -> str:
        """Its name in ``--launcher`` and in the topology's ``launcher:`` key."""

    @property
    def flavours(self) -> tuple[str, ...]:
        """The MPI libraries whose programs it can start."""

    @property
    def emulates(self) -> bool:
        """Whether it emulates the network; if so, checks of results can run without it."""

    @property
    def stays_here(self) -> bool:
        """Whether all ranks are on this machine, whatever the topology's hosts are."""

    def why_unavailable(self, topology: Topology, mpi: str = "mpich") -> str | None:
        """Return why jobs cannot be started here and what would help; None if they can."""

    def environment(self, topology: Topology, mpi: str = "mpich") -> Environment:
        """Return the conditions of measurements made through this launcher."""

    def start(self, job: Job, topology: Topology) -> RunningJob:
        """Start a job.

        Raises:
            InputError: the job asks for something that the topology or this machine lacks.
            LaunchError: the job could not be started; says why and what would help.
        """


def stays_here(launcher: Launcher) -> bool:
    """Whether all ranks are on this machine; if a user's launcher does not say so, they are not."""
    return bool(getattr(launcher, "stays_here", False))
