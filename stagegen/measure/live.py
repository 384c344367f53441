"""Starts sessions: builds the driver in a folder, launches it, logs the environment."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stagegen.errors import LaunchError, MeasurementError
from stagegen.generate import FLAVOURS, Toolchain, run_make, write_files
from stagegen.measure.comparable import Admission
from stagegen.measure.launch.base import PIPES, Environment, Job, Launcher, Streams
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.launch.registry import with_mpi_of
from stagegen.measure.log import LogWriter
from stagegen.measure.machines import Machine
from stagegen.measure.session import Session, SessionError
from stagegen.topology import Topology

#: Where a session's standard error goes, and that of one that checks, which may be beside it.
_COMPLAINTS, _COMPLAINTS_OF_CHECKS = "session.stderr", "checks.stderr"

#: With this variable, ranks sleep between commands (drivers/serve.h).
SLEEPS = "SESSION_SLEEPS"
_EVENTS = logging.getLogger(__name__)


class SessionStarter:
    """Starts the sessions of one tuning run; called by the source whenever it needs one.

    Args:
        folder: where the driver is built.
        files: the driver's sources, by name.
        toolchain: what builds them.
        launcher: what starts them.
        topology: the cluster.
        log: receives the environment of each session.
        admission: to the log; it refuses sessions whose times cannot be put with the others.
        computes: whether ranks compute before their calls, so that each must know its speed.
    """

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str],
        toolchain: Toolchain,
        launcher: Launcher,
        topology: Topology,
        log: LogWriter,
        admission: Admission | None = None,
        computes: bool = False,
    ):
        self._folder = folder
        self._files = files
        self._toolchain = toolchain
        self._launcher = launcher
        self._topology = topology
        self._log = log
        self._admission = admission or Admission()
        self._computes = computes

    def __call__(self) -> Session:
        """Build what is out of date, and start a session.

        Raises:
            GenerateError: the driver does not build.
            LaunchError: the job cannot be started.
            MeasurementError: it does not answer, or is not the job that was asked for.
            InputError: its times cannot be compared with those that the log has already.
        """
        self.build()
        begin = time.monotonic()
        session, environment = start_session(
            self._launcher,
            self._topology,
            self._folder / "session",
            self._folder,
            mpi=self._toolchain.flavour,
        )
        try:
            self._greet(session, environment)
        except BaseException:  # interrupts, too: nothing else knows of this job yet
            session.close()
            raise
        _EVENTS.info("session on %s started in %.1f s", self._launcher.name, _since(begin))
        return session

    def start_here(self) -> Session:
        """Start a session with all ranks on this machine, to check and not to measure.

        Between commands its ranks sleep, so it may stay while another session measures.

        Raises:
            GenerateError, LaunchError, MeasurementError: as for a session on the cluster.
        """
        self.build()
        begin = time.monotonic()
        session, environment = start_session(
            with_mpi_of(LocalLauncher(), self._toolchain),
            self._topology,
            self._folder / "session",
            self._folder,
            variables={SLEEPS: "1"},
            mpi=self._toolchain.flavour,
            complaints=_COMPLAINTS_OF_CHECKS,
        )
        try:
            self._hello(session, environment)
        except BaseException:
            session.close()
            raise
        _EVENTS.info("session on this machine, for checks, started in %.1f s", _since(begin))
        return session

    def build(self) -> None:
        """Build what is out of date.

        Raises:
            GenerateError: the driver does not build.
        """
        begin = time.monotonic()
        write_files(self._folder, self._files)
        run_make(self._folder, self._toolchain)
        _EVENTS.info("program built in %.1f s", _since(begin))

    def _hello(self, session: Session, environment: Environment) -> str:
        """Return the job's MPI library, if it is the job that was asked for."""
        try:
            answer = session.hello()
        except SessionError as error:
            raise self._not_started(error) from error
        require_library(environment, answer["mpi"])
        if answer["ranks"] != self._topology.rank_count:
            raise MeasurementError(
                f"the job has {answer['ranks']} ranks instead of {self._topology.rank_count}: "
                "mpiexec and mpicc belong to different MPI libraries; use one for both"
            )
        return str(answer["mpi"])

    def _not_started(self, error: SessionError) -> LaunchError:
        """Return the error, with the hosts that the job's output is about: ssh names them."""
        said = "\n".join(error.output)
        named = [
            host.name
            for host in self._topology.hosts
            if any(_is_in(name, said) for name in (host.name, host.address) if name)
        ]
        about = f"\nthe job's output is about {', '.join(named)}" if named else ""
        return LaunchError(f"{error}{about}")

    def _greet(self, session: Session, environment: Environment) -> None:
        """Log the session, if it is the one that was asked for, and may be put with the others."""
        mpi = self._hello(session, environment)
        seen = as_seen(environment, session.environment(), mpi, self._files)
        allowed = self._admission.admit(seen)
        speed = {"rates": list(session.calibrate())} if self._computes else {}
        record = {"kind": "session", "environment": seen.to_json(), "mpi": mpi, **speed}
        self._log.write(*allowed, record)


def as_seen(
    environment: Environment, machines: tuple[Machine, ...], mpi: str, files: Mapping[str, str]
) -> Environment:
    """Return a launcher's environment with what the ranks of a job say of it.

    Where ranks share cores, times say little about a cluster, unless it is emulated.

    Args:
        environment: the launcher's.
        machines: the hosts, as the ranks see them.
        mpi: the MPI library, as it says itself.
        files: the sources of the session program, by name.
    """
    text = "".join(f"{name}\n{text}" for name, text in sorted(files.items()))
    seen = replace(
        environment,
        mpi_library=mpi,
        machines=machines,
        program_hash=hashlib.sha256(text.encode()).hexdigest(),
    )
    if seen.emulated or not seen.crowded:
        return seen
    notes = (
        f"{one.ranks} ranks on {one.cores} cores of {', '.join(one.hosts)}: not representative"
        for one in seen.crowded
    )
    return replace(seen, representative=False, notes=(*seen.notes, *notes))


def _since(begin: float) -> float:
    """Return the seconds since a time of the monotonic clock."""
    return time.monotonic() - begin


def _is_in(name: str, text: str) -> bool:
    """Tell whether a text has a name of a host, and not only as a part of another word."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None


def start_session(
    launcher: Launcher,
    topology: Topology,
    program: Path,
    folder: Path,
    preload: tuple[Path, ...] = (),
    variables: Mapping[str, str] | None = None,
    mpi: str = "mpich",
    complaints: str = _COMPLAINTS,
) -> tuple[Session, Environment]:
    """Start a driver on all ranks of the topology, with pipes to talk to it.

    The launcher puts rank r on the topology's r-th host, so the ranks take that as their
    place and need not find it by host names. Their standard error goes to the file ``complaints``
    of the folder.
    """
    file = folder / complaints
    with file.open("wb") as stderr:
        job = Job(
            program=(str(program.absolute()),),
            environment={"LIBCOLL_PLACEMENT": "rank", **(variables or {})},
            preload=preload,
            mpi=mpi,
            streams=Streams(PIPES.stdin, PIPES.stdout, stderr),
        )
        running = launcher.start(job, topology)
    return Session(running, file), replace(running.environment, emulated=launcher.emulates)


def require_library(environment: Environment, library: str) -> None:
    """Refuse a job whose ranks run with another MPI library than the one that started them.

    Args:
        environment: of the job.
        library: what the ranks' ``MPI_Get_library_version`` says.

    Raises:
        MeasurementError: one is Open MPI, the other is not.
    """
    if library.startswith("Open MPI") != (environment.mpi == "openmpi"):
        name, *_ = library.split(",")
        raise MeasurementError(
            f"the ranks run with {name}, but were started as programs of "
            f"{FLAVOURS[environment.mpi]}: mpiexec and mpicc belong to different MPI libraries; "
            "use one for both"
        )


def environments(records: Sequence[Mapping[str, Any]]) -> list[Environment]:
    """Return the environments of a log's sessions."""
    return [
        Environment.from_json({"mpi_library": record["mpi"], **record["environment"]})
        for record in records
        if record["kind"] == "session"
    ]
