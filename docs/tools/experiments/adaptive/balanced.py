"""Processes that arrive together: what adapting costs, against the decision table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.adaptive._jobs import COLLECTIVES, KIB, PAGE, STATIC, calls
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.target import Target
from stagegen.adaptive.learned import read_learned

CALLS, SIZE = 2000, 2 * KIB

#: Only the first size of a communicator adapts; the table serves the other, of nearly as many
#: bytes. So calls of both are paired in one job. What these bytes take, a job without policy tells.
BESIDE = SIZE + 16

POLICIES = ("star", "star-enhanced", "guard")

#: The targets: the time over the table's, over all calls and after selection.
WHOLE, AFTER = 1.02, 1.01


def _ratios(told: Mapping[str, Sequence[float]], first: int) -> dict[str, float]:
    """Return the ratios of the calls to those beside them; `first` is the first after selection."""
    ours, beside = told["last"], told["beside_last"]
    pairs = list(zip(ours, beside, strict=True))
    return {
        "whole": sum(ours) / sum(beside),
        "after": sum(ours[first:]) / sum(beside[first:]),
        "pairs": median(a / b for a, b in pairs[first:]),
    }


def _measure(collective: str, policy: str, folder: Path) -> Any:
    file = folder / "learned.json"
    words = (collective, SIZE, CALLS, f"beside={BESIDE}")
    told = calls(folder, f"{policy},sizes=1", *words, learn=file)
    (one,) = (s for s in read_learned(file).situations if s.size == SIZE)
    first = one.selected_after or 0
    ratios = _ratios(told, first)
    control = _ratios(calls(folder, STATIC, *words), first)
    return {
        **{name: ratio / control[name] for name, ratio in ratios.items()},
        "control": control["pairs"],
        "table_s": median(told["beside_last"]),
        "selected_after": one.selected_after,
        "chosen": one.candidates[one.current].spec,
        "table": one.candidates[0].spec,
    }


def _report(found: Found) -> str:
    rows = [
        [
            point,
            milliseconds(one["table_s"]),
            f"{one['whole']:.3f}",
            f"{one['after']:.3f}",
            f"{one['pairs']:.3f}",
            "–" if one["selected_after"] is None else str(one["selected_after"]),
            f"`{one['chosen']}`",
        ]
        for point, one in found.items()
    ]
    titles = ["calls", "table, ms", "all calls", "after selection", "pairs", "selected after",
              "in the end"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    ours = {point: one for point, one in found.items() if "enhanced" not in point}
    return [
        Target.at_most(most, {point: one[name] for point, one in ours.items()}, f"{what}, × table")
        for name, most, what in (("whole", WHOLE, "all calls"), ("after", AFTER, "after selection"))
    ]


EXPERIMENT = Experiment(
    "balanced",
    "what adapting costs where processes arrive together",
    {
        f"{collective} {policy}": partial(_measure, collective, policy)
        for collective in COLLECTIVES
        for policy in POLICIES
    },
    _report,
    PAGE,
    _targets,
)
