"""A program that changes its size and its balance half-way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments.adaptive._jobs import (
    COLLECTIVES,
    GUARD,
    KIB,
    PAGE,
    STAR,
    STATIC,
    calls,
    fastest,
    finalists,
    in_turn,
    ratio,
    singles,
)  # fmt: skip
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.target import Target

#: Bytes and delays (in ms) of the halves.
SIZES = (2 * KIB, 8 * KIB)
LATE = (0, 16)
HALVES = (0, 1)

#: What serves, besides the single routines. All make all calls, so delays are the same for all.
WHOLE = (STAR, GUARD, STATIC)

#: All calls; the latter half of each half is compared, as a policy has selected by then. Calls of
#: the short run of each routine, and how many of them open connections.
CALLS, SHORT, OPENING = 400, 24, 4
QUARTER = CALLS // 4

NEAR = 1.05


def _measure(collective: str, folder: Path) -> Any:
    file = folder / "learned.json"
    words = (collective, SIZES[0], CALLS, f"late={LATE[0]}", f"then={SIZES[1]}",
             f"then_late={LATE[1]}")  # fmt: skip

    def whole(served: str, seed: int, learn: Path | None = None) -> list[float]:
        return calls(folder, served, *words, f"seed={seed}", learn=learn)["elapsed"]

    def short(name: str, half: int) -> float:
        own = (collective, SIZES[half], SHORT, f"late={LATE[half]}", "seed=1")
        return fmean(calls(folder, name, *own)["elapsed"][OPENING:])

    whole(STAR, 1, learn=file)
    names = [finalists(singles(file, SIZES[half]), partial(short, half=half)) for half in HALVES]
    arms: dict[str, Callable[[int], list[float]]] = {
        served: lambda i, served=served: whole(served, i + 1)
        for served in dict.fromkeys((*WHOLE, *names[0], *names[1]))
    }
    found = in_turn(arms)
    return {
        "whole": {served: [sum(times) for times in found[served]] for served in WHOLE},
        "parts": [_part(found, half) for half in HALVES],
    }


def _part(found: Mapping[str, Sequence[Sequence[float]]], half: int) -> dict[str, Any]:
    """Return the mean times of a call in a half, by arm and round, and the best single routine."""
    span = slice((2 * half + 1) * QUARTER, (2 * half + 2) * QUARTER)
    times = {served: [fmean(each[span]) for each in rounds] for served, rounds in found.items()}
    singles_of_part = [name for name in times if name not in (STAR, GUARD)]
    return {"best": fastest(times, singles_of_part), "times": times}


def _report(found: Found) -> str:
    rows = []
    for point, result in found.items():
        for size, late, one in zip(SIZES, LATE, result["parts"], strict=True):
            times, best = one["times"], one["best"]
            rows.append(
                [
                    f"{point}, {size // KIB} KiB, late by up to {late} ms",
                    *(milliseconds(fmean(times[name])) for name in (STATIC, STAR, GUARD, best)),
                    f"`{best}`",
                    f"{ratio(times[STAR], times[best]):.3f}",
                    f"{ratio(times[STATIC], times[STAR]):.3f}",
                    f"{ratio(result['whole'][STATIC], result['whole'][STAR]):.3f}",
                    f"{ratio(times[STATIC], times[GUARD]):.3f}",
                ]
            )
    titles = ["calls", "table, ms", "star, ms", "guard, ms", "best, ms", "best", "star / best",
              "table / star", "table / star, whole program", "table / guard"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    ratios = {
        f"{point} {size}": ratio(one["times"][STAR], one["times"][one["best"]])
        for point, result in found.items()
        for size, one in zip(SIZES, result["parts"], strict=True)
    }
    return [Target.at_most(NEAR, ratios, "star over the best single routine of each part")]


EXPERIMENT = Experiment(
    "halves",
    "a program that changes its size and its balance half-way",
    {collective: partial(_measure, collective) for collective in COLLECTIVES},
    _report,
    PAGE,
    _targets,
)
