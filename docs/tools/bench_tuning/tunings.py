"""Runs of ``stagegen tune`` in processes of their own, which trials and tests disturb."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning.runs import EVENTS
from stagegen.errors import StagegenError
from stagegen.tune.recorded import LOG

REPOSITORY = Path(__file__).parents[3]

#: Four ranks on hosts of two switches.
CLUSTER = "small"
TOPOLOGY = f"""\
name: {CLUSTER}
launcher: local
defaults: {{bandwidth: 1Gbit, latency: 50us}}
switches:
  s0: {{hosts: "n[0-1]"}}
  s1: {{hosts: "n[2-3]"}}
links:
  - {{ends: [s0, s1]}}
"""

#: What two runs from the same measurements have in common, byte for byte.
SAME = ("decision.json", "manifest.json", "report.html", "src/rules.c")


class TrialError(StagegenError):
    """Something that a trial waits for does not happen."""


@dataclass
class Tuning:
    """A folder, and the runs that write into it.

    Attributes:
        folder: for everything.
        options: of `tune` beyond topology and output.
        environment: of the runs, besides this process's.
        program: what Python runs in place of ``-m stagegen``.
        patience: seconds in which whatever a trial waits for happens, on a busy machine, too.
    """

    folder: Path
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-m", "stagegen")
    patience: float = 200.0

    def __post_init__(self) -> None:
        self.topology.write_text(TOPOLOGY, encoding="utf-8")

    @property
    def topology(self) -> Path:
        """The cluster's file."""
        return self.folder / "small.yaml"

    @property
    def output(self) -> Path:
        """The generated folder."""
        return self.folder / "out"

    @property
    def log(self) -> Path:
        """The file of all measurements."""
        return self.output / LOG

    @property
    def session(self) -> str:
        """The program of the ranks."""
        return str(self.output / "build" / "session" / "session")

    def command(self, *words: str) -> list[str]:
        """Return the command line of a run."""
        return [
            sys.executable, *self.program, "tune", "--topology", str(self.topology),
            "--output", str(self.output), "--communicators", "whole", *self.options, *words,
        ]  # fmt: skip

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the runs."""
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), **self.environment}

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Start a run; kill it in the end if it has not ended."""
        with in_session(self.command(*words), self.variables) as process:
            yield process

    @contextmanager
    def started(self, after: int, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Start a run, likewise; go on when the log has so many more measurements."""
        count = len(self.records("measurement")) + after
        with self.running(*words) as process:
            self.wait_until(lambda: len(self.records("measurement")) >= count, process)
            yield process

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        with self.running(*words) as process:
            return self.ended(process)

    def ended(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        """Wait until a run ends.

        Raises:
            TrialError: it does not, or it ends in an error that it does not know.
        """
        try:
            out, err = process.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            raise TrialError(f"it did not end within {self.patience:.0f} s") from None
        if "Traceback" in err:
            raise TrialError(err)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def wait_until(
        self, condition: Callable[[], bool], process: subprocess.Popen[str] | None = None
    ) -> None:
        """Wait until something holds, while a process runs.

        Raises:
            TrialError: it never does, or the process ends before.
        """
        end = time.monotonic() + self.patience
        while not condition():
            if process is not None and process.poll() is not None:
                raise TrialError(f"the run has ended before: {process.communicate()}")
            if time.monotonic() > end:
                raise TrialError(f"it never happens, within {self.patience:.0f} s")
            time.sleep(0.01)

    def records(self, what: str | None = None) -> list[dict[str, Any]]:
        """Return the whole records of the log without the header: all, or those of one `kind`."""
        try:
            lines = self.log.read_bytes().split(b"\n")[1:-1]
        except OSError:
            return []
        found = [json.loads(line) for line in lines]
        return [one for one in found if what in (None, one["kind"])]

    def interrupt(
        self, number: signal.Signals, after: int, *words: str
    ) -> subprocess.CompletedProcess[str]:
        """Run until the log has so many more measurements, and send a signal."""
        with self.started(after, *words) as process:
            process.send_signal(number)
            return self.ended(process)

    def from_log(self, output: Path) -> subprocess.CompletedProcess[str]:
        """Make a folder from the log alone."""
        words = ["tune", "--topology", self.topology, "--from-log", self.log, "--output", output]
        return subprocess.run(
            [sys.executable, *self.program, *map(str, words)], env=self.variables, cwd=REPOSITORY,
            capture_output=True, text=True, timeout=self.patience, check=False,
        )  # fmt: skip

    def differences(self) -> tuple[str, ...]:
        """Return the files that differ from those of an undisturbed run from the same log.

        Raises:
            TrialError: there is no such run.
        """
        again = self.folder / "again"
        result = self.from_log(again)
        if result.returncode:
            raise TrialError(f"the log alone makes no table: {result.stderr}")
        return tuple(name for name in SAME if _bytes(self.output / name) != _bytes(again / name))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@contextmanager
def in_session(
    command: Sequence[str], variables: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a command as a login shell does: with its signals, and a session of its own.

    If it has not ended in the end, the whole session is killed: no terminal would do so. A group of
    processes is not enough, as salloc starts its command in another group. What runs between fork
    and exec sets signals alone, so it needs no lock of another thread.
    """

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    with subprocess.Popen(
        command, cwd=REPOSITORY, text=True, preexec_fn=prepare,  # noqa: PLW1509
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=variables, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:  # else its number may be another's by now
                _kill_session(process.pid)


def _kill_session(leader: int) -> None:
    """Kill all processes of a session. The first one has not been waited for yet."""
    os.kill(leader, signal.SIGKILL)  # it starts no more
    for number, _ in _others():
        with suppress(ProcessLookupError):  # it has just ended
            if os.getsid(number) == leader:
                os.kill(number, signal.SIGKILL)


def processes(marker: str) -> list[int]:
    """Return the processes with a text in their command lines."""
    found = []
    for number, folder in _others():
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if marker in line.replace(b"\0", b" ").decode(errors="replace"):
            found.append(number)
    return found


def ranks(program: str, number: int) -> list[int]:
    """Return the processes of a rank of MPICH that run a program, one at most per job."""
    found = []
    for process, folder in _others():
        try:
            is_it = (folder / "cmdline").read_bytes().split(b"\0")[0] == program.encode()
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if is_it and f"PMI_RANK={number}".encode() in variables:
            found.append(process)
    return found


def _others() -> list[tuple[int, Path]]:
    entries = ((int(path.name), path) for path in Path("/proc").glob("[0-9]*"))
    return [(number, path) for number, path in entries if number != os.getpid()]


#: A line of ``tune.log``, and the end of those that tell of answers: of checks and measurements.
_LINE = re.compile(r"^ *(\d+\.\d\d) ([A-Z]+) +(.*)$")
_ANSWER = re.compile(r"(checks|calls of .*) in \d+\.\d\d s$")


def seconds_lost(events: str) -> float:
    """Return the time from the last answer before a fault to the first one after it.

    What passes between two runs does not count. A fault shows where another run begins, and in
    warnings. Those at the end, with no answer after them, are about something else.

    Args:
        events: what ``tune.log`` has, of all runs.
    """
    seen = list(_answers_and_faults(events))
    answers = [place for place, (_, is_answer) in enumerate(seen) if is_answer]
    if not answers:
        return 0.0
    between = range(answers[0], answers[-1])
    marks = [place for place in between if not seen[place][1]]
    if not marks:
        return 0.0
    before = max(place for place in answers if place < marks[0])
    after = min(place for place in answers if place > marks[-1])
    return seen[after][0] - seen[before][0]


def _answers_and_faults(events: str) -> Iterator[tuple[float, bool]]:
    """Yield the times of answers, with True, and of faults, counted over all runs."""
    earlier = last = 0.0
    for line in events.splitlines():
        if found := _LINE.match(line):
            seconds, level, text = float(found[1]), found[2], found[3]
            if seconds < last:  # another run
                earlier += last
                yield earlier, False
            last = seconds
            if _ANSWER.search(text):
                yield earlier + seconds, True
            elif level == "WARNING":
                yield earlier + seconds, False


def read_events(folder: Path) -> str:
    """Return what ``tune.log`` has; nothing if it is not there."""
    path = folder / EVENTS
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


#: What lines of a run's standard error have that tell of a fault.
_TELLING = re.compile(
    r"job has ended|no answer within|never chosen|No space left|ended by SIG|go on with --resume"
)


def said(text: str, names: Mapping[str, str]) -> str:
    """Return the first and the last line of a run about a fault; without any, nothing.

    Args:
        text: its standard error.
        names: what stands in place of paths.
    """
    for path, name in names.items():
        text = text.replace(path, name)
    lines = [line.strip() for line in text.splitlines() if _TELLING.search(line)]
    return " … ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))
