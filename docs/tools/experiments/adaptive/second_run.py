"""What a program learned, taken over by ``stagegen learn``: the next run starts from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments.adaptive._jobs import PAGE, STAR, STATIC, in_turn, library, ratio, run
from docs.tools.experiments.adaptive.programs import PROGRAMS
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.programs import loop_seconds
from docs.tools.experiments.stagegen import stagegen
from docs.tools.target import Target
from stagegen.generate import run_make

#: One whose collective the table was not tuned for, and one that the table serves well.
NAMES = ("frames", "sort")

#: The library that has learned, without adapting and with it.
LEARNED_TABLE, LEARNED_STAR = "table, learned", "star, learned"
ARMS = (STATIC, STAR, LEARNED_TABLE, LEARNED_STAR)


def _learned(folder: Path, name: str) -> Path:
    """Return a copy of the library that has taken over what a run of the program learned."""
    program, _ = PROGRAMS[name]
    file, made, tools = folder / "learned.json", folder / "library", program.tools()
    run(folder, STAR, program, learn=file)
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(library(folder, tools), made, ignore=shutil.ignore_patterns("build"))
    stagegen("learn", file, "--library", made)
    run_make(made, tools, "libcoll.so")
    return made


def _measure(name: str, folder: Path) -> Any:
    program, _ = PROGRAMS[name]
    learned = _learned(folder, name)

    def seconds(served: str, preloaded: Path | None) -> Callable[[int], float]:
        return lambda _: loop_seconds(run(folder, served, program, preloaded=preloaded))

    return in_turn(
        {
            STATIC: seconds(STATIC, None),
            STAR: seconds(STAR, None),
            LEARNED_TABLE: seconds(STATIC, learned),
            LEARNED_STAR: seconds(STAR, learned),
        }
    )


def _report(found: Found) -> str:
    rows = [
        [
            f"`{PROGRAMS[name][0]}`",
            *(f"{fmean(times[arm]):.3f}" for arm in ARMS),
            f"{ratio(times[STAR], times[LEARNED_STAR]):.3f}",
            f"{ratio(times[STATIC], times[LEARNED_STAR]):.3f}",
        ]
        for name, times in found.items()
    ]
    titles = ["program", *(f"{arm}, s" for arm in ARMS), "star / star, learned",
              "table / star, learned"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    gains = {name: ratio(times[STAR], times[LEARNED_STAR]) for name, times in found.items()}
    return [Target.at_least(1.0, gains, "star over star that starts from what was learned")]


EXPERIMENT = Experiment(
    "second_run",
    "what a program learned, from the first call of the next run on",
    {name: partial(_measure, name) for name in NAMES},
    _report,
    PAGE,
    _targets,
)
