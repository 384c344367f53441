"""Runs of `stagegen tune`, which tests interrupt and let go on; some of them are no MPI jobs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from docs.tools.bench_tuning import tunings
from tests.cli.test_tune import stagegen

RUN = str(Path(__file__).with_name("run.py"))
OPTIONS = ("--launcher", "model", "--collectives", "bcast", "--sizes", "1,4096", "--budget", "0")


@dataclass
class Tuning(tunings.Tuning):
    """A folder, and the runs that write into it; unless told otherwise, the launcher is `model`."""

    options: tuple[str, ...] = OPTIONS
    program: tuple[str, ...] = (RUN,)
    patience: float = 60.0

    def from_log(self, output: Path) -> subprocess.CompletedProcess[str]:
        """In this process, which is quicker."""
        words = ("tune", "--topology", self.topology, "--from-log", self.log, "--output", output)
        return stagegen(*words)

    def require_same_from_log(self) -> None:
        """The folder's decision is the one of an uninterrupted run from the same log."""
        assert self.differences() == ()
