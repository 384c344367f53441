"""Late processes (Faraj 2006, Fig. 4.20): adapting against the table and every single routine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    message_ms,
    ratio,
    singles,
)  # fmt: skip
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.target import Target

SIZE = 2 * KIB

#: MAX_IMBALANCE_FACTOR: processes are late by 0 to MAX - 1 times the time of a message.
FACTORS = (16, 64)

#: All calls of a policy, and how many come first: only the others are compared, as the policy has
#: selected by then. Of a single routine, as many calls are compared.
CALLS, FIRST = 400, 200

#: Calls of the short run of each routine, and how many of them open connections.
SHORT, OPENING = 24, 4

#: The target: the policy's time over that of the best single routine, at the most.
NEAR = 1.05


def _measure(collective: str, factor: int, folder: Path) -> Any:
    message = message_ms(folder, SIZE)

    def elapsed(served: str, count: int, seed: int, learn: Path | None = None) -> list[float]:
        delays = (f"factor={factor}", f"message={message:.6f}", f"seed={seed}")
        return calls(folder, served, collective, SIZE, count, *delays, learn=learn)["elapsed"]

    def latter(served: str, first: int) -> Callable[[int], float]:
        count = first + CALLS - FIRST
        return lambda i: fmean(elapsed(served, count, i + 1)[first:])

    file = folder / "learned.json"
    elapsed(STAR, SHORT, 1, learn=file)
    names = finalists(singles(file, SIZE), lambda name: fmean(elapsed(name, SHORT, 1)[OPENING:]))
    arms = {name: latter(name, OPENING) for name in (STATIC, *names)}
    adapting = {policy: latter(policy, FIRST) for policy in (STAR, GUARD)}
    times = in_turn({**adapting, **arms})
    return {"message_ms": message, "best": fastest(times, list(arms)), "times": times}


def _report(found: Found) -> str:
    rows = []
    for point, one in found.items():
        times, best = one["times"], one["best"]
        rows.append(
            [
                point,
                f"{one['message_ms']:.3g}",
                *(milliseconds(fmean(times[name])) for name in (STATIC, STAR, GUARD, best)),
                f"`{best}`",
                f"{ratio(times[STAR], times[best]):.3f}",
                f"{ratio(times[STATIC], times[STAR]):.3f}",
                f"{ratio(times[STATIC], times[GUARD]):.3f}",
                str(len(times[STAR])),
            ]
        )
    titles = ["calls", "T, ms", "table, ms", "star, ms", "guard, ms", "best, ms", "best",
              "star / best", "table / star", "table / guard", "patterns"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    ratios = {
        point: ratio(one["times"][STAR], one["times"][one["best"]]) for point, one in found.items()
    }
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
