"""Programs that are recorded, tuned for, and run again, unmodified."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments import lab
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.stagegen import answer, stagegen
from docs.tools.target import Target
from stagegen.data import TOPOLOGIES
from stagegen.generate import Toolchain, run_make

#: Eight hosts on two switches, ranks dealt to them in turn, 20 Mbit/s.
TOPOLOGY = TOPOLOGIES / "quickstart.yaml"

#: With arguments for some seconds.
PROGRAMS = {
    "sort": ("20000", "20"),
    "cube": ("32", "20"),
    "fourier": ("128", "40"),
    "bodies": ("256", "40"),
}

RUNS = 3

#: Per size, as `stagegen tune --budget` takes it.
BUDGET = 2

NATIVE, TUNED = "native", "tuned"


def _record(folder: Path, name: str, recording: Path, library: Path | None) -> float:
    """Record a run; return the seconds of its loop."""
    program = lab.compiled(folder.parents[1] / "compiled", name)
    record = ("stagegen", "record", "--output", recording, "--")
    text = lab.run(TOPOLOGY, program, *PROGRAMS[name], library=library, before=record)
    found = re.search(r"^right: .* ([0-9.]+) s$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no time in {text!r}")
    return float(found[1])


def _library(folder: Path, recording: Path) -> Path:
    """Return a library that was tuned for what a recording has."""
    made = folder / "library"
    log = made / "measurements.jsonl"
    stagegen(
        *("tune", "--topology", TOPOLOGY, "--for", recording),
        *("--budget", BUDGET, "--launches", 3, "--output", made),
        *(("--resume",) if log.exists() else ()),
    )
    run_make(made, Toolchain.find(), "libcoll.so")
    return made


def _measure(name: str, folder: Path) -> Any:
    first = folder / "first.recording"
    _record(folder, name, first, None)
    library = _library(folder, first)
    found: dict[str, list[dict[str, float]]] = {NATIVE: [], TUNED: []}
    for _ in range(RUNS):  # in turn, so that what changes slowly changes both
        for how, with_library in ((NATIVE, None), (TUNED, library)):
            recording = folder / f"{how}.recording"
            seconds = _record(folder, name, recording, with_library)
            profile = answer("profile", recording)
            found[how].append(
                {
                    "loop_s": seconds,
                    "collectives_s": profile["elapsed_s"],
                    "operation_s": profile["operation_s"],
                }
            )
    return {
        how: {key: median(run[key] for run in runs) for key in runs[0]}
        for how, runs in found.items()
    }


def _report(found: Found) -> str:
    rows = []
    for name, one in found.items():
        cells = []
        for key in ("collectives_s", "operation_s", "loop_s"):
            before, after = one[NATIVE][key], one[TUNED][key]
            cells += [f"{before:.3f}", f"{after:.3f}", f"{before / after:.2f}"]
        rows.append([f"`{name} {' '.join(PROGRAMS[name])}`", *cells])
    titles = ["program", "in collectives, s", "tuned", "×", "in operations, s", "tuned", "×",
              "loop, s", "tuned", "×"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    gains = {name: one[NATIVE]["loop_s"] / one[TUNED]["loop_s"] for name, one in found.items()}
    return [Target.at_least(0.97, gains, "native over tuned")]


EXPERIMENT = Experiment(
    "before_and_after",
    "programs that are recorded, tuned for, and run again",
    {name: partial(_measure, name) for name in PROGRAMS},
    _report,
    Path("docs/applications.md"),
    _targets,
)
