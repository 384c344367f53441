"""A program that computes between its calls (Faraj 2006, Fig. 4.26): adapting against the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments.adaptive._jobs import (
    COLLECTIVES,
    KIB,
    NATIVE,
    PAGE,
    STAR,
    STATIC,
    calls,
    in_turn,
    ratio,
)  # fmt: skip
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.target import Target

SIZE = 2 * KIB

#: All calls count, those of the search included.
CALLS = 300

#: Calls of MPICH alone that say how long it computes, and how many of them open connections; by how
#: much the computation is longer.
ALONE, OPENING, COMPUTATION = 40, 4, 5

#: The target: adapting is so many times as fast as the table in at least one program.
GAIN = 1.1

ARMS = (NATIVE, STATIC, STAR)


def _measure(collective: str, folder: Path) -> Any:
    opened = calls(folder, NATIVE, collective, SIZE, ALONE)["elapsed"][OPENING:]
    rest_ms = COMPUTATION * 1e3 * fmean(opened)

    def mean(served: str) -> Callable[[int], float]:
        words = (collective, SIZE, CALLS, f"rest={rest_ms:.3f}")
        return lambda _: fmean(calls(folder, served, *words)["elapsed"])

    return {"rest_ms": rest_ms, "times": in_turn({served: mean(served) for served in ARMS})}


def _report(found: Found) -> str:
    rows = [
        [
            point,
            f"{one['rest_ms']:.3g}",
            *(milliseconds(fmean(one["times"][name])) for name in ARMS),
            f"{ratio(one['times'][STATIC], one['times'][STAR]):.3f}",
            f"{ratio(one['times'][NATIVE], one['times'][STAR]):.3f}",
        ]
        for point, one in found.items()
    ]
    titles = ["calls", "computes, ms", *(f"{name}, ms" for name in ARMS), "table / star",
              "MPI / star"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    gains = {point: ratio(one["times"][STATIC], one["times"][STAR]) for point, one in found.items()}
    told = ", ".join(f"{point} {gain:.3f}" for point, gain in gains.items())
    met = max(gains.values()) >= GAIN if gains else None
    return [Target(met, f"star at least {GAIN} × as fast as the table in one program: {told}")]


EXPERIMENT = Experiment(
    "computing",
    "a program that computes between its calls (Faraj 2006, Fig. 4.26)",
    {f"{collective} {SIZE} B": partial(_measure, collective) for collective in COLLECTIVES},
    _report,
    PAGE,
    _targets,
)
