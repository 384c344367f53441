"""The measuring session: one MPI job that checks and times on command (drivers/session.c)."""

from __future__ import annotations

import json
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

from stagegen.errors import MeasurementError, what_is_wrong
from stagegen.measure.arrivals import Imbalance, Lateness, Replay
from stagegen.measure.entries import entry, natural, number, rates, times
from stagegen.measure.launch.base import RunningJob
from stagegen.measure.machines import Machine, machines_of
from stagegen.measure.records import Candidate, Check, Measurement, Request
from stagegen.topology import WHOLE

#: Longest time in seconds that the job may take to start and say hello.
START_TIMEOUT = 120.0

#: Seconds in which a job that says something unexpected may say the rest, and end.
LAST_WORDS = 1.0

#: So many delays of a recorded call are given in a command at the most.
DELAYS = 1000

#: What is kept of a job's output: so many lines at the most, each of so many letters.
LINES, LETTERS = 20, 200

T = TypeVar("T")

Answers = list[dict[str, Any]]


@dataclass(frozen=True)
class Members:
    """The ranks that take part in calls.

    Attributes:
        ranks: of the job; empty for all.
        blocks: bytes that each has for each other, if blocks of pairs differ so; else empty.
    """

    ranks: Sequence[int] = ()
    blocks: Sequence[Sequence[int]] = ()


class SessionError(MeasurementError):
    """A command of a session failed.

    Attributes:
        why: what failed and how, in one line.
        output: the last lines of what the job said, without its answers.
    """

    def __init__(self, why: str, output: tuple[str, ...] = ()):
        super().__init__("\n  ".join((why, *output)))
        self.why = why
        self.output = output


class Session:
    """Talks to a running session. A session that fails or hangs is stopped and stays dead.

    Args:
        job: the running driver, its standard input and output as pipes.
        complaints: the file that its standard error goes to, for error messages.
    """

    def __init__(self, job: RunningJob, complaints: Path | None = None):
        self._job = job
        self._busy = False
        self._communicators: tuple[str, ...] = (WHOLE,)
        self._complaints = complaints
        self._messages: dict[tuple[str, str, int], float] = {}
        self._replayed = ""
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
            SessionError: the job did not start.
        """

        def read(answers: Answers) -> dict[str, Any]:
            natural(answers[0], "ranks", 1)
            entry(answers[0], "mpi", str)
            return answers[0]

        return self._ask("hello", "the session did not start", START_TIMEOUT, read)

    def calibrate(self) -> tuple[int, ...]:
        """Return how much each rank computes in a millisecond, in thousands of operations.

        Raises:
            MeasurementError: the job ended or did not answer in time.
        """

        def read(answers: Answers) -> tuple[int, ...]:
            (answer,) = answers
            return rates(answer)

        return self._ask("calibrate", "calibrating computation", START_TIMEOUT, read)

    def environment(self) -> tuple[Machine, ...]:
        """Return the hosts of the job, as its ranks see them.

        Raises:
            MeasurementError: the job ended or did not answer in time.
        """
        what = "asking for the ranks' environment"
        return self._ask("environment", what, START_TIMEOUT, machines_of)

    def use(self, communicators: Mapping[str, Members]) -> None:
        """Check and measure on these ranks of the job from now on.

        Args:
            communicators: by name; they have no rank in common. On several, only
                :meth:`measure_together` is possible, and their members must have even blocks.

        Raises:
            SessionError: the job ended or did not answer in time.
        """
        names = tuple(communicators)
        if names == self._communicators:
            return
        lists = (" ".join(map(str, members.ranks)) for members in communicators.values())
        command = f"communicator {' | '.join(lists)}".rstrip()
        what = f"making the communicator {' and '.join(names)}"
        self._ask(command, what, START_TIMEOUT, lambda _: None)
        for name, members in communicators.items():
            for rank, row in enumerate(members.blocks):
                some = " ".join(f"{to} {size}" for to, size in enumerate(row) if size)
                what = f"giving the {name}"
                self._ask(f"blocks {rank} {some}", what, START_TIMEOUT, lambda _: None)
        self._communicators = names

    @property
    def _communicator(self) -> str:
        """The communicator, if there is one."""
        (name,) = self._communicators
        return name

    def check(
        self,
        collective: str,
        candidates: Sequence[Candidate],
        timeout: float,
        *,
        again: bool = False,
    ) -> list[Check]:
        """Compare each candidate with the native routine.

        Args:
            collective: of the candidates.
            candidates: to compare.
            timeout: for all of them, in seconds.
            again: leave out some trials of a routine that was right, with whatever values of its
                parameters, on these ranks in this session.

        Raises:
            SessionError: the job ended or did not answer within ``timeout`` seconds.
        """
        specs = [candidate.spec for candidate in candidates]

        def read(answers: Answers) -> list[Check]:
            _expect(specs, answers)
            told = {"collective": collective, "communicator": self._communicator}
            return [Check.from_json({**told, **answer}) for answer in answers]

        command = " ".join(["check_again" if again else "check", collective, *specs])
        return self._ask(command, f"checking {collective}", timeout, read)

    def make_late(self, request: Request) -> float:
        """Get ready for a request to which ranks come late.

        Returns:
            The seconds by which a rank is late at the most; 0 if none is.

        Raises:
            SessionError: the job ended or did not answer in time.
        """
        arrivals = request.timing.arrivals
        if arrivals is None:
            return 0.0
        if isinstance(arrivals, Replay):
            self._replay(arrivals)
        return arrivals.longest(self._message(request))

    def _message(self, request: Request) -> float | None:
        """Return the seconds of a message of the operation's size, if its delays depend on it."""
        arrivals = request.timing.arrivals
        if not isinstance(arrivals, Imbalance) or not arrivals.in_messages:
            return None
        key = self._communicator, request.collective, request.size
        if key not in self._messages:
            command = f"message {request.collective} {request.size}"
            what = f"timing a message of {request.collective} of {request.size} bytes"
            self._messages[key] = self._ask(
                command, what, START_TIMEOUT, lambda answers: number(answers[0]["message"])
            )
        return self._messages[key]

    def _replay(self, replay: Replay) -> None:
        """Give the session the recorded delays, if it does not have them."""
        if self._replayed == replay.hash:
            return
        for call, delays in enumerate(replay.in_turn):
            for rank in range(0, len(delays), DELAYS):
                some = " ".join(map(str, delays[rank : rank + DELAYS]))
                what = f"giving the delays of recorded call {call}"
                self._ask(f"delays {call} {rank} {some}", what, START_TIMEOUT, lambda _: None)
        self._replayed = replay.hash

    def measure(self, request: Request, timeout: float) -> Measurement:
        """Time the candidates of a request in turn; if ranks come late, after ``make_late``.

        Raises:
            SessionError: the job ended or did not answer within ``timeout`` seconds.
        """
        (measurement,) = self.measure_together([request], timeout)
        return measurement

    def measure_together(self, requests: Sequence[Request], timeout: float) -> list[Measurement]:
        """Time requests at the same time, each on its own communicator.

        Args:
            requests: in the order of the communicators of :meth:`use`.
            timeout: seconds until the first answer, and from each to the next one.

        Raises:
            SessionError: the job ended or did not answer in time.
        """
        messages = [self._message(request) for request in requests]
        words = map(_words, requests, messages)

        def read(answers: Answers) -> list[Measurement]:
            _expect([spec for request in requests for spec in _specs(request)], answers)
            each = iter(answers)
            own = [list(islice(each, len(request.candidates))) for request in requests]
            return list(map(_measurement, requests, own, messages))

        what = "; ".join(map(_in_short, requests))
        return self._ask(f"measure {' | '.join(words)}", f"measuring {what}", timeout, read)

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
            SessionError: the job ended or did not answer within ``timeout`` seconds.
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
            raise self._failure(what, f"unexpected answer: {what_is_wrong(error)}") from error

    def _command(self, command: str, what: str, timeout: float) -> Answers:
        self._busy = True  # until all answers are here: before, it does not listen
        try:
            self._stdin.write(command.encode() + b"\n")
            self._stdin.flush()
        except (OSError, ValueError) as error:
            raise self._failure(what, self._ended()) from error
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
            raise self._failure(what, self._ended())
        try:
            answer = json.loads(line)
            if not isinstance(answer, dict):
                raise TypeError("not an object")
        except (TypeError, ValueError, RecursionError):
            said, ended = self._last_words(line)
            why = self._ended() if ended else f"unexpected output: {_plain(line)}"
            raise self._failure(what, why, said) from None
        return answer

    def _last_words(self, line: bytes) -> tuple[list[str], bool]:
        """Return what the job still says on its standard output, and whether it has ended.

        ``mpiexec`` of MPICH tells there how a rank ended.
        """
        said = deque([_plain(line)], LINES)
        end = time.monotonic() + LAST_WORDS
        while (left := end - time.monotonic()) > 0:
            try:
                more = self._lines.get(timeout=left)
            except queue.Empty:
                break
            if more is None:
                return list(said), True
            said.append(_plain(more))
        return list(said), False

    def _ended(self) -> str:
        """Return how the job ended, as its standard output has."""
        try:
            status = self._job.wait(LAST_WORDS)
        except TimeoutError:
            return "the job has closed its standard output"
        return f"the job has ended{_in_words(status)}"

    def _failure(self, what: str, why: str, said: Sequence[str] = ()) -> SessionError:
        self._job.stop()
        complaints = () if self._complaints is None else tail(self._complaints)
        output = [line for line in (*said, *complaints) if line]
        return SessionError(f"{what}: {why}", tuple(output[-LINES:]))


def _specs(request: Request) -> list[str]:
    return [candidate.spec for candidate in request.candidates]


def _words(request: Request, message: float | None) -> str:
    """Return a request as a `measure` command has it; ``message`` is a message's seconds."""
    arrivals, timing = request.timing.arrivals, request.timing.mechanism
    if arrivals is not None:
        timing = arrivals.word(request.experiment, message, request.calls)
    return (
        f"{request.collective} {request.size} {timing} {request.timing.computation_ms} "
        f"{request.timing.metric} {request.settle:d} {request.calls} {request.repetitions} "
        f"{' '.join(_specs(request))}"
    )


def _in_short(request: Request) -> str:
    """Return what is measured, for error messages."""
    where = "" if request.communicator == WHOLE else f" on {request.communicator}"
    specs = " ".join(_specs(request))
    return f"{request.collective} of {request.size} bytes{where} ({specs})"


def _measurement(request: Request, answers: Answers, message: float | None) -> Measurement:
    """Return what the answers to a request say.

    Raises:
        KeyError, TypeError, ValueError: they are no answers to it.
    """
    seconds = tuple(times(answer["seconds"]) for answer in answers)
    if {len(repetitions) for repetitions in seconds} != {request.repetitions}:
        raise ValueError("a wrong number of repetitions")
    late = request.timing.arrivals is not None
    return Measurement(request, seconds, _lateness(answers, message) if late else None)


def _in_words(status: int) -> str:
    """Return an exit status in words, for the end of a sentence; of 0 there is nothing to say."""
    try:
        signal_name = signal.Signals(status - 128).name if status > 128 else ""
    except ValueError:
        signal_name = ""
    if signal_name:
        return f" by {signal_name}"
    return f" with status {status}" if status else ""


def tail(path: Path) -> tuple[str, ...]:
    """Return the last lines of a job's standard error, to be added to a message."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - LINES * LETTERS))
            lines = stream.read(LINES * LETTERS).splitlines()
    except OSError:
        return ()
    return tuple(_plain(line) for line in lines[-LINES:])


def _plain(line: bytes) -> str:
    """Return a line as text that a terminal only shows."""
    text = line.decode(errors="replace").rstrip()
    return "".join(letter if letter.isprintable() else " " for letter in text)[:LETTERS]


def _lateness(answers: Answers, message: float | None) -> Lateness:
    """Return what the answers to a measurement tell of ranks that come late.

    Raises:
        KeyError, TypeError, ValueError: they do not.
    """
    return Lateness(
        message,
        number(answers[0]["behind"]),
        number(answers[0]["clock_error"]),
        tuple(times(answer["mean"]) for answer in answers),
        tuple(times(answer["last"]) for answer in answers),
        tuple(tuple(map(number, answer["spread"])) for answer in answers),
    )


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
