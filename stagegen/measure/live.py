"""Starting sessions: build the driver in a folder, launch it, note the environment in the log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagegen.errors import MeasurementError
from stagegen.generate import Toolchain, build, write_files
from stagegen.measure.launch.base import PIPES, Environment, Job, Launcher, Streams
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
        topology: where.
        log: told the environment of each session.
    """

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str],
        toolchain: Toolchain,
        launcher: Launcher,
        topology: Topology,
        log: LogWriter,
    ):
        self._folder = folder
        self._files = files
        self._toolchain = toolchain
        self._launcher = launcher
        self._topology = topology
        self._log = log

    def __call__(self) -> Session:
        """Build what is out of date, and start a session.

        Raises:
            GenerateError: the driver does not build.
            LaunchError: the job cannot be started.
            MeasurementError: it does not answer, or is not the job that was asked for.
        """
        write_files(self._folder, self._files)
        build(self._folder, self._toolchain)
        session, environment = start_session(
            self._launcher, self._topology, self._folder / "session", self._folder
        )
        answer = session.hello()
        if answer["ranks"] != self._topology.rank_count:
            session.close()
            raise MeasurementError(
                f"the job has {answer['ranks']} ranks in place of {self._topology.rank_count}: "
                "mpiexec and mpicc are of different MPI libraries"
            )
        self._log.write(
            {"kind": "session", "environment": environment.to_json(), "mpi": answer["mpi"]}
        )
        return session


def start_session(
    launcher: Launcher,
    topology: Topology,
    program: Path,
    folder: Path,
    preload: tuple[Path, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> tuple[Session, Environment]:
    """Start a driver on all ranks of the topology, with pipes to talk to it.

    The launcher puts rank r on the topology's r-th host, so the ranks are told to take that
    as their place and need not find it by host names.
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


def environments(records: list[dict[str, Any]]) -> list[Environment]:
    """Return the environments of a log's sessions."""
    return [
        Environment.from_json(record["environment"])
        for record in records
        if record["kind"] == "session"
    ]
