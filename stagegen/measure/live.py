"""Starts sessions: builds the driver in a folder, launches it, logs the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stagegen.errors import InputError, MeasurementError
from stagegen.generate import Toolchain, run_make, write_files
from stagegen.measure.launch.base import PIPES, Environment, Job, Launcher, Streams
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.log import LogWriter
from stagegen.measure.session import Session
from stagegen.topology import Topology

_COMPLAINTS = "session.stderr"


class SessionStarter:
    """Starts the sessions of one tuning run; called by the source whenever it needs one.

    Args:
        folder: where the driver is built.
        files: the driver's sources, by name.
        toolchain: what builds them.
        launcher: what starts them.
        topology: the cluster.
        log: receives the environment of each session.
        before: the environments that the log has already; a session must not differ from them
            in what its times depend on.
    """

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str],
        toolchain: Toolchain,
        launcher: Launcher,
        topology: Topology,
        log: LogWriter,
        before: Sequence[Environment] = (),
    ):
        self._folder = folder
        self._files = files
        self._toolchain = toolchain
        self._launcher = launcher
        self._topology = topology
        self._log = log
        self._before = before

    def __call__(self) -> Session:
        """Build what is out of date, and start a session.

        Raises:
            GenerateError: the driver does not build.
            LaunchError: the job cannot be started.
            MeasurementError: it does not answer, or is not the job that was asked for.
            InputError: its times cannot be compared with those that the log has already.
        """
        self._build()
        session, environment = start_session(
            self._launcher, self._topology, self._folder / "session", self._folder
        )
        try:
            require_comparable(environment, self._before)
            self._greet(session, environment)
        except BaseException:  # interrupts, too: nothing else knows of this job yet
            session.close()
            raise
        return session

    def start_here(self) -> Session:
        """Start a session with all ranks on this machine, to check and not to measure.

        Raises:
            GenerateError, LaunchError, MeasurementError: as for a session on the cluster.
        """
        self._build()
        session, _ = start_session(
            LocalLauncher(), self._topology, self._folder / "session", self._folder
        )
        try:
            self._hello(session)
        except BaseException:
            session.close()
            raise
        return session

    def _build(self) -> None:
        write_files(self._folder, self._files)
        run_make(self._folder, self._toolchain)

    def _hello(self, session: Session) -> str:
        """Return the job's MPI library, if it is the job that was asked for."""
        answer = session.hello()
        if answer["ranks"] != self._topology.rank_count:
            raise MeasurementError(
                f"the job has {answer['ranks']} ranks instead of {self._topology.rank_count}: "
                "mpiexec and mpicc belong to different MPI libraries; use one for both"
            )
        return str(answer["mpi"])

    def _greet(self, session: Session, environment: Environment) -> None:
        """Log the session, if it is the one that was asked for."""
        mpi = self._hello(session)
        self._log.write({"kind": "session", "environment": environment.to_json(), "mpi": mpi})


def start_session(
    launcher: Launcher,
    topology: Topology,
    program: Path,
    folder: Path,
    preload: tuple[Path, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> tuple[Session, Environment]:
    """Start a driver on all ranks of the topology, with pipes to talk to it.

    The launcher puts rank r on the topology's r-th host, so the ranks take that as their
    place and need not find it by host names.
    """
    complaints = folder / _COMPLAINTS
    with complaints.open("wb") as stderr:
        job = Job(
            program=(str(program.absolute()),),
            environment={"LIBCOLL_PLACEMENT": "rank", **(variables or {})},
            preload=preload,
            streams=Streams(PIPES.stdin, PIPES.stdout, stderr),
        )
        running = launcher.start(job, topology)
    return Session(running, complaints), running.environment


def require_comparable(now: Environment, before: Sequence[Environment]) -> None:
    """Refuse to mix measurements of different launchers, scales, MPI libraries or TCPs.

    An unknown congestion control matches any.

    Raises:
        InputError: the conditions differ; says which.
    """
    for then in before:
        for name in ("launcher", "scale", "mpi", "mpi_version", "congestion_control"):
            was, is_now = getattr(then, name), getattr(now, name)
            if was != is_now and None not in (was, is_now):
                raise InputError(
                    f"--resume: the log was measured with {name} {was}, this is {is_now}; "
                    "go on as it was begun, or leave --resume out to measure anew"
                )


def environments(records: Sequence[Mapping[str, Any]]) -> list[Environment]:
    """Return the environments of a log's sessions."""
    return [
        Environment.from_json(record["environment"])
        for record in records
        if record["kind"] == "session"
    ]
