"""Late processes (Faraj 2006, Fig. 4.20): adapting against the table and every single routine."""

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

SIZE = 2 * KIB

#: MAX of the delays, in times of a message of 2 KiB: 0.9 ms at 20 Mbit/s, and as much for starts.
FACTORS = (16, 64)
MESSAGE_MS = 1.0

#: Calls; the last ones are compared, when a policy has selected.
CALLS, FIRST, SINGLE = 400, 200, 120

#: The policy's routine may take so many times the best single one's time.
NEAR = 1.05


def _measure(collective: str, factor: int, folder: Path) -> Any:
    file = folder / "learned.json"
    delays = (f"late={factor * MESSAGE_MS}", f"seed={factor}")
    words = (collective, SIZE, CALLS, *delays)
    adapting = calls(folder, "star", *words, learn=file)["elapsed"]
    static = calls(folder, STATIC, *words)["elapsed"]
    names = [name for name in candidates(file, SIZE) if not name.endswith("=native")]
    best, best_s, _ = best_single(folder, names, 0, collective, SIZE, SINGLE, *delays)
    again = calls(folder, best, *words)["elapsed"]
    return {
        "star_s": fmean(adapting[FIRST:]),
        "table_s": fmean(static[FIRST:]),
        "best": best.partition("=")[2],
        "best_s": fmean(again[FIRST:]),
        "best_short_s": best_s,
    }


def _report(found: Found) -> str:
    rows = [
        [
            point,
            *(milliseconds(one[name]) for name in ("table_s", "star_s", "best_s")),
            f"`{one['best']}`",
            f"{one['star_s'] / one['best_s']:.3f}",
            f"{one['table_s'] / one['star_s']:.3f}",
        ]
        for point, one in found.items()
    ]
    titles = ["calls", "table, ms", "star, ms", "best, ms", "best", "star / best", "table / star"]
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    ratios = {point: one["star_s"] / one["best_s"] for point, one in found.items()}
    return [Target.at_most(NEAR, ratios, "star over the best single routine")]


EXPERIMENT = Experiment(
    "imbalance",
    "adapting where processes come late (Faraj 2006, Fig. 4.20)",
    {
        f"{collective}, factor {factor}": partial(_measure, collective, factor)
        for collective in COLLECTIVES
        for factor in FACTORS
    },
    _report,
    PAGE,
    _targets,
)
