"""Runs of `stagegen tune` in processes of their own, which tests interrupt and let go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.test_tune import stagegen

RUN = Path(__file__).with_name("run.py")
REPOSITORY = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds in which whatever a test waits for happens, on a busy machine, too

TOPOLOGY = """
name: small
launcher: local
defaults: {bandwidth: 1Gbit, latency: 50us}
switches:
  s0: {hosts: "n[0-1]"}
  s1: {hosts: "n[2-3]"}
links:
  - {ends: [s0, s1]}
"""
OPTIONS = ("--launcher", "model", "--collectives", "bcast", "--sizes", "1,4096", "--budget", "0")


@dataclass
class Tuning:
    """A folder, and the runs that write into it.

    Attributes:
        folder: for everything.
        options: of `tune` beyond topology and output.
        environment: of the runs, besides this process's.
    """

    folder: Path
    options: tuple[str, ...] = OPTIONS
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.topology.write_text(TOPOLOGY, encoding="utf-8")

    @property
    def topology(self) -> Path:
        return self.folder / "small.yaml"

    @property
    def output(self) -> Path:
        return self.folder / "out"

    @property
    def log(self) -> Path:
        return self.output / "measurements.jsonl"

    def command(self, *words: str) -> list[str]:
        return [
            sys.executable, str(RUN), "tune", "--topology", str(self.topology),
            "--output", str(self.output), "--communicators", "whole", *self.options, *words,
        ]  # fmt: skip

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a run, with signals as at a login, whatever this process ignores.

        What runs between fork and exec sets signals alone, so it needs no lock of another thread.
        """

        def prepare() -> None:
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)

        return subprocess.Popen(
            self.command(*words), cwd=REPOSITORY, text=True, preexec_fn=prepare,  # noqa: PLW1509
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **self.environment},
        )  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        return ended(self.start(*words))

    def records(self, kind: str | None = None) -> list[dict]:
        """The whole records of the log, without the header."""
        try:
            lines = self.log.read_bytes().split(b"\n")[1:-1]
        except OSError:
            return []
        found = [json.loads(line) for line in lines]
        return [one for one in found if kind in (None, one["kind"])]

    def interrupt(self, number: signal.Signals, after: int, *words: str):
        """Run until the log has so many more measurements, and send a signal."""
        count = len(self.records("measurement")) + after
        process = self.start(*words)
        wait_until(lambda: len(self.records("measurement")) >= count, process)
        process.send_signal(number)
        return ended(process)

    def _separately(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run the command in the environment of the runs."""
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **self.environment}
        return subprocess.run(
            [sys.executable, str(RUN), *map(str, words)], env=environment, cwd=REPOSITORY,
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip

    def require_same_from_log(self) -> None:
        """The folder's decision is the one of an uninterrupted run from the same log."""
        again = self.folder / "again"
        words = ("tune", "--topology", self.topology, "--from-log", self.log, "--output", again)
        result = self._separately(*words) if "TEMPLATES" in self.environment else stagegen(*words)
        assert result.returncode == 0, result.stderr
        for name in ("decision.json", "manifest.json", "report.html", "src/rules.c"):
            assert (self.output / name).read_bytes() == (again / name).read_bytes(), name


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happens"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.01)


def processes(marker: str) -> list[str]:
    """The command lines of processes that have a text in them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line and int(entry.name) != os.getpid():
            found.append(line)
    return found
