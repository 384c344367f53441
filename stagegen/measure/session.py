"""The measuring session: one MPI job that checks and times on command (drivers/session.c)."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

from stagegen.errors import MeasurementError
from stagegen.measure.entries import entry, natural, times
from stagegen.measure.launch.base import RunningJob
from stagegen.measure.records import WHOLE, Candidate, Check, Measurement, Request

#: Longest time in seconds that the job may take to start and say hello.
START_TIMEOUT = 120.0

T = TypeVar("T")

Answers = list[dict[str, Any]]


class Session:
    """Talks to a running session. A session that fails or hangs is stopped and stays dead.

    Args:
        job: the running driver, its standard input and output as pipes.
        complaints: the file that its standard error goes to, for error messages.
    """

    def __init__(self, job: RunningJob, complaints: Path | None = None):
        self._job = job
        self._busy = False
        self._communicator = WHOLE
        self._complaints = complaints
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        if job.stdin is None or job.stdout is None:
            raise MeasurementError("the session needs pipes to its standard input and output")
        self._stdin = job.stdin
        threading.Thread(target=_pump, args=(job.stdout, self._lines), daemon=True).start()

    @property
    def scale(self) -> float:
        """The factor by which all link rates were multiplied, at most 1."""
        return self._job.environment.scale

    def hello(self) -> dict[str, Any]:
        """Return the session's own description: ranks, kind of communicator, MPI version.

        Raises:
            MeasurementError: the job did not start.
        """

        def read(answers: Answers) -> dict[str, Any]:
            natural(answers[0], "ranks", 1)
            entry(answers[0], "mpi", str)
            return answers[0]

        return self._ask("hello", "the session did not start", START_TIMEOUT, read)

    def use(self, communicator: str, ranks: Sequence[int]) -> None:
        """Check and measure on these ranks of the job from now on; an empty list means all.

        Raises:
            MeasurementError: the job ended or did not answer in time.
        """
        if communicator != self._communicator:
            command = " ".join(["communicator", *map(str, ranks)])
            what = f"making the communicator {communicator}"
            self._ask(command, what, START_TIMEOUT, lambda _: None)
            self._communicator = communicator

    def check(
        self, collective: str, candidates: Sequence[Candidate], timeout: float
    ) -> list[Check]:
        """Compare each candidate with the native routine.

        Raises:
            MeasurementError: the job ended or did not answer within ``timeout`` seconds.
        """
        specs = [candidate.spec for candidate in candidates]

        def read(answers: Answers) -> list[Check]:
            _expect(specs, answers)
            told = {"collective": collective, "communicator": self._communicator}
            return [Check.from_json({**told, **answer}) for answer in answers]

        command = " ".join(["check", collective, *specs])
        return self._ask(command, f"checking {collective}", timeout, read)

    def measure(self, request: Request, timeout: float) -> Measurement:
        """Time the candidates of a request in turn.

        Raises:
            MeasurementError: the job ended or did not answer within ``timeout`` seconds.
        """
        specs = " ".join(candidate.spec for candidate in request.candidates)
        command = (
            f"measure {request.collective} {request.size} {request.timing.mechanism} "
            f"{request.timing.computation} {request.settle:d} {request.calls} "
            f"{request.repetitions} {specs}"
        )
        what = f"measuring {request.collective} of {request.size} bytes"
        what += "" if request.communicator == WHOLE else f" on {request.communicator}"
        what += f" ({specs})"

        def read(answers: Answers) -> Measurement:
            _expect(specs.split(), answers)
            seconds = tuple(times(answer["seconds"]) for answer in answers)
            if {len(repetitions) for repetitions in seconds} != {request.repetitions}:
                raise ValueError("a wrong number of repetitions")
            return Measurement(request, seconds)

        return self._ask(command, what, timeout, read)

    def compare(
        self,
        collective: str,
        size: int,
        calls: int,
        repetitions: int,
        timeout: float,
        *,
        settle: bool,
    ) -> dict[str, Any]:
        """Time native and tuned in turn (drivers/bench.c); returns its answer.

        Raises:
            MeasurementError: the job ended or did not answer within ``timeout`` seconds.
        """
        command = f"compare {collective} {size} {settle:d} {calls} {repetitions}"
        what = f"comparing {collective} of {size} bytes"

        def read(answers: Answers) -> dict[str, Any]:
            entry(answers[0], "routine", str)
            times(answers[0]["native"])
            times(answers[0]["tuned"])
            return answers[0]

        return self._ask(command, what, timeout, read)

    def close(self) -> None:
        """End the job: gently if it listens, at once if it is busy or was given up."""
        try:
            if not self._busy:
                self._stdin.write(b"quit\n")
                self._stdin.flush()
                self._job.wait(10)
        except (OSError, ValueError, TimeoutError):
            pass  # it is gone or hangs: stop() deals with both
        finally:
            self._job.stop()

    def _ask(self, command: str, what: str, timeout: float, read: Callable[[Answers], T]) -> T:
        """Send a command and return its answers as ``read`` makes sense of them."""
        answers = self._command(command, what, timeout)
        try:
            return read(answers)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._failure(what, f"unexpected answer: {error!r}") from error

    def _command(self, command: str, what: str, timeout: float) -> Answers:
        self._busy = True  # until all answers are here: before, it does not listen
        try:
            self._stdin.write(command.encode() + b"\n")
            self._stdin.flush()
        except (OSError, ValueError) as error:
            raise self._failure(what, "the job has ended") from error
        answers: Answers = []
        while True:
            answer = self._answer(what, timeout)
            if answer.get("done"):
                self._busy = False
                return answers
            if "error" in answer:
                raise self._failure(what, answer["error"])
            answers.append(answer)

    def _answer(self, what: str, timeout: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise self._failure(what, f"no answer within {timeout:.0f} s") from None
        if line is None:
            raise self._failure(what, "the job has ended")
        try:
            answer = json.loads(line)
            if not isinstance(answer, dict):
                raise TypeError("not an object")
        except (TypeError, ValueError, RecursionError):
            text = line.decode(errors="replace").strip()
            raise self._failure(what, f"unexpected output: {text}") from None
        return answer

    def _failure(self, what: str, why: str) -> MeasurementError:
        self._job.stop()
        said = "" if self._complaints is None else tail(self._complaints)
        return MeasurementError(f"{what}: {why}{said}")


def tail(path: Path, lines: int = 15) -> str:
    """Return the end of a job's standard error, to be added to a message."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "".join(f"\n  {line}" for line in text[-lines:])


def _expect(specs: list[str], answers: Answers) -> None:
    if [answer["routine"] for answer in answers] != specs:
        raise ValueError("not one answer for each routine")


def _pump(stream: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    """Move lines from the job to the queue; None marks the end."""
    try:
        for line in stream:
            lines.put(line)
    except (OSError, ValueError):
        pass  # the pipe was closed by stop()
    lines.put(None)
