"""What the recorder adds to a call: `stagegen record --overhead` on one rank, several times."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.stagegen import stagegen
from docs.tools.target import Target
from stagegen.catalogue import load_catalogue
from stagegen.generate import Toolchain

RUNS = 5

NAMES = load_catalogue().collectives

#: What was promised, in nanoseconds.
MOST = 300


def _measure(_folder: Path) -> Any:
    mpiexec = Path(Toolchain.find().mpicc).with_name("mpiexec")
    done = stagegen("record", "--overhead", "--", mpiexec, "-n", 1)
    return nanoseconds(done.stdout.decode())


def nanoseconds(text: str) -> dict[str, float]:
    """Return by collective what the benchmark prints: the last of four columns."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: float(row[3]) for row in rows if len(row) == 4 and row[0] in NAMES}


def _of_runs(found: Found) -> dict[str, list[float]]:
    """Return the nanoseconds of all runs by collective."""
    names = sorted({name for result in found.values() for name in result})
    return {name: [run[name] for run in found.values() if name in run] for name in names}


def _report(found: Found) -> str:
    rows = [
        [name, f"{statistics.median(runs):.0f}", f"{min(runs):.0f}", f"{max(runs):.0f}"]
        for name, runs in _of_runs(found).items()
    ]
    return table(["collective", "ns more, median", "least", "greatest"], rows)


def _targets(found: Found) -> Sequence[Target]:
    greatest = {name: max(runs) for name, runs in _of_runs(found).items()}
    return [Target.at_most(MOST, greatest, f"ns more for a call, greatest of {len(found)} runs")]


EXPERIMENT = Experiment(
    "overhead",
    "what the recorder adds to a call",
    {f"run {run}": _measure for run in range(1, RUNS + 1)},
    _report,
    Path("docs/recording.md"),
    _targets,
)
