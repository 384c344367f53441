"""Two identical trees in turn (Bongo, Anshus and Bjørndalen, Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.paths._trees import SHAPES, cluster
from docs.tools.experiments.paths.reconfigured import in_turn, over
from docs.tools.experiments.stagegen import stagegen
from stagegen.tune.reconfigure import SHARED

ONE, OTHER = TREES = ("one", "other")

#: Jobs in which the trees take turns, and repetitions in each: 20 times as many for short calls.
LAUNCHES, REPETITIONS = 5, 15


def _measure(hosts: int, slots: int, folder: Path) -> Any:
    topology, _ = cluster(folder, hosts, slots)
    files = [folder / f"{name}.tree.yaml" for name in TREES]
    for name, file in zip(TREES, files, strict=True):
        made = ("--shape", "nary", "--name", name, "--output", file)
        stagegen("tree", "make", "--topology", topology, *made)
    trees = [word for file in files for word in ("--tree", file)]
    names = [f"configured_tree_{name}:on_host={SHARED}" for name in TREES]
    times = [
        in_turn(topology, "allreduce", names, folder / "compare", REPETITIONS, trees)
        for _ in range(LAUNCHES)
    ]
    return {"seconds": dict(zip(TREES, zip(*times, strict=True), strict=True))}


def _summary(result: Mapping[str, Any]) -> Any:
    """Return the medians over the jobs, and the median, least and greatest quotient of a job."""
    times = {name: median(result["seconds"][name]) for name in TREES}
    quotients = over(result, ONE, OTHER)
    return {**times, "ratio": [median(quotients), min(quotients), max(quotients)]}


def _report(found: Found) -> str:
    rows = [
        [point, *(milliseconds(one[name]) for name in TREES), _ratio(one)]
        for point, one in found.items()
    ]
    titles = ["hosts × ranks", "one, ms", "the other, ms", "ratio (least–greatest)"]
    if all("ratio" in one for one in found.values()):
        return table(titles, rows)
    return (
        f"{table(titles, rows)}\n\n"
        "A ratio without brackets is of an earlier run: the quotient of the two medians. In that "
        "run, each tree had the better of both ways to hand over data on hosts."
    )


def _ratio(one: Mapping[str, Any]) -> str:
    if "ratio" not in one:  # of an earlier form of this experiment
        return f"{one[ONE] / one[OTHER]:.3f}"
    middle, least, greatest = one["ratio"]
    return f"{middle:.3f} ({least:.3f}–{greatest:.3f})"


EXPERIMENT = Experiment(
    "noise_floor",
    "two identical trees in turn (PATHS, Fig. 7)",
    {f"{hosts} × {slots}": partial(_measure, hosts, slots) for hosts, slots in SHAPES},
    _report,
    Path("docs/paths.md"),
    summary=_summary,
)
