"""Runs of ``stagegen`` that may be stopped and go on, and the seconds that they took together."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagegen.generate.write import write_file
from stagegen.tune.recorded import LOG

#: What ``stagegen tune`` writes its events to, and the seconds that a line begins with.
EVENTS = "tune.log"
_LINE = re.compile(r"^ *(\d+\.\d\d) [A-Z]+ ")

#: The file of a folder that was tuned to the end.
DONE = "tuned.json"

#: Seconds in which a run that is told to stop keeps what it has.
GRACE = 30.0


class OutOfTime(Exception):  # noqa: N818 - no error: go on later
    """The time of this run is over; what was measured is kept."""


@dataclass(frozen=True)
class Clock:
    """The time that is left to a run.

    Attributes:
        end: of :func:`time.monotonic`; None if there is no limit.
    """

    end: float | None = None

    @classmethod
    def of(cls, seconds: float | None) -> Clock:
        """Return the clock of a run that begins now."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    @property
    def left(self) -> float | None:
        """The seconds that are left; None if there is no limit.

        Raises:
            OutOfTime: there are none.
        """
        if self.end is None:
            return None
        left = self.end - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return left

    def require_time(self) -> None:
        """Raise OutOfTime if no time is left."""
        _ = self.left


def stagegen(clock: Clock, *words: object) -> str:
    """Run a command of stagegen; return its standard output.

    Raises:
        OutOfTime: it was stopped.
        subprocess.CalledProcessError: it failed; it has said why.
    """
    left = clock.left
    command = [sys.executable, "-m", "stagegen", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            output, _ = running.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGTERM)
            _ended(running)
            raise OutOfTime from None
        except BaseException:
            running.send_signal(signal.SIGTERM)
            _ended(running)
            raise
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    return output


def _ended(running: subprocess.Popen[str]) -> None:
    try:
        running.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        running.kill()


def tuned(clock: Clock, folder: Path, *words: object) -> dict[str, Any]:
    """Tune into a folder, or go on there; return the seconds and the number of runs.

    Raises:
        OutOfTime: it is not done.
        subprocess.CalledProcessError: it failed; it has said why.
    """
    if not (folder / DONE).exists():
        resume = ["--resume"] if (folder / LOG).exists() else []
        stagegen(clock, "tune", *words, "--output", folder, *resume)
        runs = seconds_of_runs((folder / EVENTS).read_text(encoding="utf-8"))
        write_file(folder / DONE, json.dumps({"seconds": sum(runs), "runs": len(runs)}) + "\n")
    found: dict[str, Any] = json.loads((folder / DONE).read_text(encoding="utf-8"))
    return found


def seconds_of_runs(events: str) -> list[float]:
    """Return the seconds of each run that wrote into ``tune.log``: up to its last event.

    The lines of a run begin with the seconds since its start, so a run begins where they fall.
    """
    runs: list[float] = []
    last = float("inf")
    for line in events.splitlines():
        if found := _LINE.match(line):
            seconds = float(found[1])
            if seconds < last:
                runs.append(seconds)
            runs[-1] = last = seconds
    return runs


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """Return the JSON of a file; make it where it is not there."""
    if not path.exists():
        write_file(path, json.dumps(make(), ensure_ascii=False) + "\n")
    return json.loads(path.read_text(encoding="utf-8"))


def listed(values: Sequence[object]) -> str:
    """Return values as options of stagegen take them."""
    return ",".join(map(str, values))
