"""Two identical trees in turn (Bongo, Anshus and Bjørndalen, Fig. 7)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.paths._trees import SHAPES, cluster
from docs.tools.experiments.paths.reconfigured import SIZE
from docs.tools.experiments.stagegen import stagegen
from docs.tools.experiments.tuned import read_tuned

TREES = ("one", "other")


def _measure(hosts: int, slots: int, folder: Path) -> Any:
    topology, _ = cluster(folder, hosts, slots)
    for name in TREES:
        stagegen(
            *("tree", "make", "--topology", topology, "--shape", "nary", "--name", name),
            *("--output", folder / f"{name}.tree.yaml"),
        )
    trees = [word for name in TREES for word in ("--tree", folder / f"{name}.tree.yaml")]
    resume = ("--resume",) if (folder / "tuned" / "measurements.jsonl").exists() else ()
    stagegen(
        *("tune", "--topology", topology, "--collectives", "allreduce", "--sizes", SIZE, *trees),
        *("--algorithms", "configured_tree_*", "--communicators", "whole", "--budget", 2),
        *("--launches", 5, "--output", folder / "tuned", "--quiet", *resume),
    )
    seconds = read_tuned(folder / "tuned").seconds
    return {
        name: {spec: time for spec, time in seconds.items() if f"_{name}:" in f"{spec}:"}
        for name in TREES
    }


def _summary(result: Any) -> Any:
    """Return the time of each tree with the better way to hand over data on hosts."""
    return {name: min(result[name].values()) for name in TREES}


def _report(found: Found) -> str:
    rows = []
    for point, times in found.items():
        one, other = (times[name] for name in TREES)
        rows.append([point, milliseconds(one), milliseconds(other), f"{one / other:.3f}"])
    return table(["hosts × ranks", "one, ms", "the other, ms", "ratio"], rows)


EXPERIMENT = Experiment(
    "noise_floor",
    "two identical trees in turn (PATHS, Fig. 7)",
    {f"{hosts} × {slots}": partial(_measure, hosts, slots) for hosts, slots in SHAPES},
    _report,
    Path("docs/paths.md"),
    summary=_summary,
)
