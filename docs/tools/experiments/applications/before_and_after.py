"""Programs that are recorded, tuned for, and run again, unmodified."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments import lab
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.programs import OF_FFTW, Program, loop_seconds
from docs.tools.experiments.stagegen import answer, stagegen
from docs.tools.target import Target
from stagegen.data import TOPOLOGIES
from stagegen.generate import run_make
from stagegen.recording import read
from stagegen.recording.blocks import blocks_of

#: Eight hosts on two switches, ranks dealt to them in turn, 20 Mbit/s.
TOPOLOGY = TOPOLOGIES / "quickstart.yaml"


#: 8 ranks do not divide the edge 30, so blocks are uneven.
PROGRAMS = {
    "sort": Program("sort", ("20000", "20")),
    "cube": Program("cube", ("32", "20")),
    "fourier": Program("fourier", ("128", "40")),
    "bodies": Program("bodies", ("256", "40")),
    "fftw uneven": Program("fftw", ("30", "20", "out-of-place", "estimate"), OF_FFTW),
    "fftw even": Program("fftw", ("32", "20", "out-of-place", "estimate"), OF_FFTW),
}

RUNS = 3

#: Per size, as `stagegen tune --budget` takes it.
BUDGET = 2

NATIVE, TUNED = "native", "tuned"


def _record(folder: Path, program: Program, recording: Path, library: Path | None) -> float:
    """Record a run; return the seconds of its loop."""
    tools = program.tools()
    built = lab.compiled(folder.parents[1] / "compiled", program.name, tools)
    record = ("stagegen", "record", "--mpicc", tools.mpicc, "--output", recording, "--")
    text = lab.run(
        TOPOLOGY, built, *program.arguments,
        library=library, before=record, mpi=tools.flavour,
    )  # fmt: skip
    return loop_seconds(text)


def patterns_in(recording: Path, file: Path) -> tuple[object, ...]:
    """Write the patterns that a recording has; return the options of ``tune`` for them."""
    if not blocks_of(read(recording)).patterns:
        return ()
    stagegen("patterns", recording, "--output", file)
    return ("--patterns", file, "--scales", 1)


def _library(folder: Path, program: Program, recording: Path) -> Path:
    """Return a library that was tuned for what a recording has."""
    made = folder / "library"
    tools = program.tools()
    log = made / "measurements.jsonl"
    stagegen(
        *("tune", "--topology", TOPOLOGY, "--for", recording, "--mpicc", tools.mpicc),
        *patterns_in(recording, folder / "patterns.yaml"),
        *("--budget", BUDGET, "--launches", 3, "--output", made),
        *(("--resume",) if log.exists() else ()),
    )
    run_make(made, tools, "libcoll.so")
    return made


def _measure(name: str, folder: Path) -> Any:
    program = PROGRAMS[name]
    first = folder / "first.recording"
    if not first.exists():  # a tuning that was stopped goes on for the calls that it began with
        _record(folder, program, first, None)
    library = _library(folder, program, first)
    found: dict[str, list[dict[str, float]]] = {NATIVE: [], TUNED: []}
    for _ in range(RUNS):  # in turn, so that what changes slowly changes both
        for how, with_library in ((NATIVE, None), (TUNED, library)):
            recording = folder / f"{how}.recording"
            seconds = _record(folder, program, recording, with_library)
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
        rows.append([f"`{PROGRAMS[name]}`", *cells])
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
