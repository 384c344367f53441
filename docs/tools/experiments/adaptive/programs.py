"""Faraj 2006, §4.3.2.2: whole programs, unmodified, with the library before them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.adaptive._jobs import NATIVE, PAGE, STATIC, run
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.target import Target

#: Each with arguments for some seconds, and the source's program that it stands for.
PROGRAMS = {
    "fourier": (("128", "120"), "FFTW"),
    "bodies": (("64", "600"), "NBODY"),
    "sort": (("4000", "120"), "–"),
    "cube": (("32", "50"), "FT"),
}
SERVED = (NATIVE, STATIC, "star-enhanced", "star", "guard")
RUNS = 3

#: In at least one program, adapting was to be so many times as fast as the table.
GAIN = 1.1


def _seconds(text: str) -> float:
    found = re.search(r"^right: .* ([0-9.]+) s$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no time in {text!r}")
    return float(found[1])


def _measure(name: str, folder: Path) -> Any:
    arguments, _ = PROGRAMS[name]
    times: dict[str, list[float]] = {served: [] for served in SERVED}
    for _ in range(RUNS):  # in turn, so that what changes slowly changes all
        for served in SERVED:
            times[served].append(_seconds(run(folder, served, name, *arguments)))
    return times


def _summary(times: Mapping[str, Sequence[float]]) -> Any:
    """Return the median of each, and the largest spread of all."""
    return {
        "seconds": {served: median(each) for served, each in times.items()},
        "spread": max(max(each) / min(each) for each in times.values()),
    }


def _report(found: Found) -> str:
    rows = [
        [
            f"`{name} {' '.join(PROGRAMS[name][0])}`",
            PROGRAMS[name][1],
            *(f"{one['seconds'][served]:.3f}" for served in SERVED),
            f"{one['spread']:.2f}",
        ]
        for name, one in found.items()
    ]
    titles = ["program", "as", *(f"{served}, s" for served in SERVED), "largest spread"]
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    times = {name: one["seconds"] for name, one in found.items()}
    gains = {name: of[STATIC] / of["star"] for name, of in times.items()}
    told = ", ".join(f"{name} {gain:.3f}" for name, gain in gains.items())
    met = max(gains.values()) >= GAIN if gains else None
    return [Target(met, f"star at least {GAIN} × as fast as the table in one program: {told}")]


EXPERIMENT = Experiment(
    "programs",
    "whole programs (Faraj 2006, Tables 4.14 to 4.17)",
    {name: partial(_measure, name) for name in PROGRAMS},
    _report,
    PAGE,
    _targets,
    _summary,
)
