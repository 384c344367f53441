"""A program that changes its size and its balance half-way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments.adaptive._jobs import (
    COLLECTIVES,
    KIB,
    PAGE,
    STATIC,
    best_single,
    calls,
    candidates,
)  # fmt: skip
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.target import Target

#: Bytes and delays (in ms) of the halves.
SIZES = (2 * KIB, 8 * KIB)
LATE = (0, 16)

#: Calls; the latter half of each half is compared, when a policy has selected. Calls that find the
#: best single routine.
CALLS, SINGLE = 400, 80
QUARTER = CALLS // 4

NEAR = 1.05


def _measure(collective: str, folder: Path) -> Any:
    file = folder / "learned.json"
    words = (collective, SIZES[0], CALLS, f"late={LATE[0]}", f"then={SIZES[1]}",
             f"then_late={LATE[1]}")  # fmt: skip
    adapting = calls(folder, "star", *words, learn=file)["elapsed"]
    static = calls(folder, STATIC, *words)["elapsed"]
    parts = []
    for half, size, late in zip((0, 1), SIZES, LATE, strict=True):
        names = [name for name in candidates(file, size) if not name.endswith("=native")]
        alone = (collective, size, SINGLE, f"late={late}")
        best, _, _ = best_single(folder, names, 0, *alone)
        single = calls(folder, best, collective, size, QUARTER, f"late={late}")["elapsed"]
        span = slice((2 * half + 1) * QUARTER, (2 * half + 2) * QUARTER)
        parts.append(
            {
                "star_s": fmean(adapting[span]),
                "table_s": fmean(static[span]),
                "best_s": fmean(single),
                "best": best.partition("=")[2],
            }
        )
    return {"parts": parts, "whole": sum(static) / sum(adapting)}


def _report(found: Found) -> str:
    rows = []
    for point, result in found.items():
        for size, late, one in zip(SIZES, LATE, result["parts"], strict=True):
            rows.append(
                [
                    f"{point}, {size // KIB} KiB, late by up to {late} ms",
                    *(milliseconds(one[name]) for name in ("table_s", "star_s", "best_s")),
                    f"`{one['best']}`",
                    f"{one['star_s'] / one['best_s']:.3f}",
                    f"{result['whole']:.3f}",
                ]
            )
    titles = ["calls", "table, ms", "star, ms", "best, ms", "best", "star / best",
              "table / star, whole program"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    ratios = {
        f"{point} {size}": one["star_s"] / one["best_s"]
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
