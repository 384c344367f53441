"""Faults that strike a small, real tuning: what the tuning does then, and the table that it makes.

Each fault strikes a tuning of its own. If the tuning ends, it goes on with ``--resume``. Then its
files are compared with those that ``--from-log`` makes of the same measurements: that is what an
undisturbed run would have written. Times differ from run to run, so the measurements of another
run would tell nothing.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning.faulty import SIZE, add_faulty
from docs.tools.bench_tuning.full_disk import tuned_on_a_full_disk, why_no_small_disk
from docs.tools.bench_tuning.slurm_here import slurm_cluster, why_no_slurm
from docs.tools.bench_tuning.tunings import (
    TrialError,
    Tuning,
    processes,
    ranks,
    read_events,
    said,
    seconds_lost,
)
from stagegen.errors import LaunchError

#: Measurements before a fault.
BEFORE = 5

#: Two broadcasts at two sizes, beside the native one. To launch jobs takes seconds, so a fault that
#: comes after the first measurements finds the tuning at work.
_CALLS = (
    *("--collectives", "bcast", "--sizes", f"1,{SIZE}", "--budget", "0"),
    *("--algorithms", "flat,binomial"),
)

OPTIONS = ("--launcher", "local", *_CALLS)

#: The options of the tuning whose job reaches its time limit. Slurm checks limits every half
#: minute. The ranks compute between calls, so that the tuning lasts that long.
OF_A_JOB = (
    *("--launcher", "slurm", *_CALLS, "--timing", "computation", "--computation", "20"),
    *("--launches", "2"),
)

#: Megabytes of the disk that fills up: twice what the folder takes.
DISK = 24

#: The rank that is killed where a host dies, and its host.
_RANK, _HOST = 1, "n1"


@dataclass(frozen=True)
class Survived:
    """How a tuning went after a fault.

    Attributes:
        fault: a key of :data:`FAULTS`.
        done: what was done to the tuning.
        status: the exit status of the run that the fault struck; None if there is none.
        said: about the fault.
        kept: how many records were on disk when the run went on; None where it never ended.
        intact: whether these are the first records of the log in the end.
        records: of the log in the end.
        again: the last exit status; 0 if the tuning ended with a table.
        differs: the files that an undisturbed run from the same log writes otherwise.
        lost: the seconds from the last answer before the fault to the first one after it.
        unavailable: why this fault cannot be tried here.
        wrong: what else went wrong with the trial.
    """

    fault: str
    done: str
    status: int | None = None
    said: str = ""
    kept: int | None = None
    intact: bool = True
    records: int = 0
    again: int | None = None
    differs: tuple[str, ...] = ()
    lost: float = 0.0
    unavailable: str = ""
    wrong: str = ""

    @property
    def is_same(self) -> bool:
        """Whether the tuning has the table of an undisturbed run from the same log."""
        return self.again == 0 and self.intact and not self.differs and not self.wrong


@dataclass(frozen=True)
class Ended:
    """A run that has ended, and the run that went on with it, if there is one.

    Attributes:
        status: of the run that the fault struck; negative if a signal ended it.
        said: its standard error.
        kept: the records on disk before it went on; None where one run did all.
        intact: whether these are the first records of the log in the end.
        again: the last status.
    """

    status: int
    said: str
    kept: int | None = None
    intact: bool = True
    again: int = 0


def try_fault(name: str, folder: Path) -> Survived:
    """Let a fault strike a tuning in an empty folder; return how it went.

    Args:
        name: a key of :data:`FAULTS`.
        folder: for the tuning.
    """
    done, befall, why_not = FAULTS[name]
    if reason := why_not():
        return Survived(name, done, unavailable=reason)
    folder.mkdir(parents=True)
    tuning = Tuning(folder, OPTIONS)
    try:
        outcome = befall(tuning)
        differs = tuning.differences() if outcome.again == 0 else ()
    except (TrialError, LaunchError, subprocess.SubprocessError, OSError) as error:
        return Survived(name, done, wrong=str(error))
    return Survived(
        fault=name,
        done=done,
        status=outcome.status,
        said=said(outcome.said, {str(tuning.output): "DIR"}),
        kept=outcome.kept,
        intact=outcome.intact,
        records=len(tuning.records()),
        again=outcome.again,
        differs=differs,
        lost=round(seconds_lost(read_events(tuning.output)), 2),
    )


def form(survived: Survived) -> dict[str, Any]:
    """Return a row as JSON has it."""
    return {**asdict(survived), "differs": list(survived.differs), "same": survived.is_same}


def _undisturbed(tuning: Tuning) -> Ended:
    result = tuning.run()
    return Ended(result.returncode, result.stderr, again=result.returncode)


def _by_signal(number: signal.Signals, to_all: bool, tuning: Tuning) -> Ended:
    """Send a signal to a run, or to all of its group as a terminal does."""
    with tuning.started(BEFORE) as process:
        if not to_all:
            process.send_signal(number)
        elif process.poll() is None:
            os.killpg(process.pid, number)
        result = tuning.ended(process)
    return _resumed(tuning, result)


def _by_death(tuning: Tuning) -> Ended:
    """Kill a run, and see that nothing is left of its job."""
    result = tuning.interrupt(signal.SIGKILL, BEFORE)
    tuning.wait_until(lambda: not processes(tuning.session))
    return _resumed(tuning, result)


def _resumed(tuning: Tuning, result: subprocess.CompletedProcess[str]) -> Ended:
    """Go on with a run that a fault has ended."""
    _require_failed(result.returncode)
    before = tuning.log.read_bytes()
    whole, kept = before[: before.rfind(b"\n") + 1], len(tuning.records())
    again = tuning.run("--resume")
    intact = tuning.log.read_bytes().startswith(whole)
    if again.returncode:
        raise TrialError(f"it does not go on: {again.stderr}")
    return Ended(result.returncode, result.stderr, kept, intact, again.returncode)


def _require_failed(status: int) -> None:
    """Raise TrialError if the run ended by itself: the fault came too late."""
    if status == 0:
        raise TrialError("it ended before the fault")


def _without_a_host(stays: bool, tuning: Tuning) -> Ended:
    """Kill the rank of a host: once, or as often as it starts, until the run has ended."""
    killed = 0
    with tuning.started(BEFORE) as process:
        end = time.monotonic() + tuning.patience
        while process.poll() is None and (stays or not killed) and time.monotonic() < end:
            for rank in ranks(tuning.session, _RANK):
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(rank, signal.SIGKILL)
                    killed += 1
            time.sleep(0.05)
        result = tuning.ended(process)
    if not killed:
        raise TrialError("it ended before the fault")
    if stays:
        return _resumed(tuning, result)
    return Ended(result.returncode, result.stderr, again=result.returncode)


def _by_routine(name: str, tuning: Tuning) -> Ended:
    """Tune with one more routine, whose calls crash or hang."""
    add_faulty(tuning.folder, name)
    more = ("--algorithms", f"flat,binomial,{name}", "--patience", "24")
    tuning.options = (*tuning.options, *more)
    result = tuning.run()
    failures = [one["routine"] for one in tuning.records("failure")]
    if failures != [name]:
        raise TrialError(f"recorded as failed: {', '.join(failures) or 'nothing'}")
    return Ended(result.returncode, result.stderr, again=result.returncode)


def _on_a_full_disk(tuning: Tuning) -> Ended:
    found = tuned_on_a_full_disk(tuning, DISK)
    (status, text), (again, _) = found["full"], found["resumed"]
    _require_failed(status)
    return Ended(status, text, found["kept"], found["whole"] and found["goes on"], again)


def _at_the_limit(tuning: Tuning) -> Ended:
    """Tune in a Slurm job that reaches its time limit; submit the same script again."""
    folder = tuning.folder / "slurm"
    folder.mkdir()
    tuning.options = OF_A_JOB
    with slurm_cluster(folder) as variables:
        tuning.environment = dict(variables)
        script = tuning.folder / "job.sh"
        made = tuning.run("--sbatch", str(script), "--time-limit", "10")
        if made.returncode:
            raise TrialError(made.stderr)
        job = Submitted(tuning, script, "first")
        tuning.wait_until(lambda: len(tuning.records("measurement")) >= BEFORE)
        job.command("scontrol", "update", f"JobId={job.number}", "TimeLimit=1")
        status = job.status()
        _require_failed(status)
        before, kept = tuning.log.read_bytes(), len(tuning.records())
        again = Submitted(tuning, script, "second").status()
    intact = tuning.log.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    return Ended(status, job.output.read_text(encoding="utf-8"), kept, intact, again)


#: The states of a job of Slurm that has ended. Others pass by, such as SIGNALING.
_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE")


class Submitted:
    """A job that was submitted to Slurm.

    Args:
        tuning: what the script runs.
        script: what ``--sbatch`` wrote.
        turn: the name of the file of its output, without the suffix.
    """

    def __init__(self, tuning: Tuning, script: Path, turn: str):
        self._variables = tuning.variables
        self._patience = 2 * tuning.patience
        self.output = tuning.folder / f"{turn}.txt"
        self.number = self.command("sbatch", "--parsable", f"--output={self.output}", str(script))

    def command(self, *words: str) -> str:
        """Run a command of Slurm; return what it says."""
        done = subprocess.run(
            words, env=self._variables, capture_output=True, text=True, timeout=30, check=False
        )
        if done.returncode:
            raise TrialError(f"{words[0]}: {done.stderr}")
        return done.stdout.strip()

    def status(self) -> int:
        """Wait until the job has ended; return its exit status."""
        end = time.monotonic() + self._patience
        while time.monotonic() < end:
            shown = self.command("scontrol", "show", "job", self.number)
            state = re.search(r"JobState=(\w+)", shown)
            code = re.search(r"ExitCode=(\d+):(\d+)", shown)
            if state and code and state[1] in _ENDED:
                return int(code[1]) or (128 + int(code[2]) if int(code[2]) else 0)
            time.sleep(0.2)
        raise TrialError("the job of Slurm does not end")


def _nothing() -> str | None:
    return None


#: By name, in the order of the page: what is done, how, and why it may be impossible here.
FAULTS: Mapping[str, tuple[str, Callable[[Tuning], Ended], Callable[[], str | None]]] = {
    "none": ("nothing", _undisturbed, _nothing),
    "Ctrl-C": (
        "SIGINT to all processes of the terminal",
        partial(_by_signal, signal.SIGINT, True),
        _nothing,
    ),
    "SIGTERM": ("SIGTERM to `tune`", partial(_by_signal, signal.SIGTERM, False), _nothing),
    "SIGKILL": ("SIGKILL to `tune`", _by_death, _nothing),
    "a host restarts": (
        f"SIGKILL to the rank of {_HOST}, once",
        partial(_without_a_host, False),
        _nothing,
    ),
    "a host dies": (
        f"SIGKILL to the rank of {_HOST}, as often as it starts",
        partial(_without_a_host, True),
        _nothing,
    ),
    "a routine hangs": (
        f"a broadcast waits for ever at {SIZE} B",
        partial(_by_routine, "hanging"),
        _nothing,
    ),
    "a routine crashes": (
        f"a broadcast writes to address 0 at {SIZE} B",
        partial(_by_routine, "crashing"),
        _nothing,
    ),
    "a full disk": (
        f"a file fills the disk of {DISK} MB; later it is removed",
        _on_a_full_disk,
        why_no_small_disk,
    ),
    "the job's time limit": (
        "`scontrol update TimeLimit=1` to the job of `--sbatch`; the script is submitted again",
        _at_the_limit,
        why_no_slurm,
    ),
}
