"""Tuning for one pattern, and what came of it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.experiment import Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.stagegen import stagegen
from stagegen.catalogue.algorithm import NATIVE
from stagegen.generate.write import write_file
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.patterns import Pattern, patterns_yaml
from stagegen.topology import load_topology
from stagegen.tune.bounds import bound_of_pattern, size_of_pattern

PAGE = Path("docs/patterns.md")

#: For a whole tuning.
BUDGET, LAUNCHES = "4m", 3


def measured(topology: Path, congestion: str, pattern: Pattern, folder: Path) -> Any:
    """Tune for a pattern alone; return its bound in seconds, what serves, and its times.

    Args:
        topology: the cluster.
        congestion: the congestion control of its hosts.
        pattern: of all its ranks.
        folder: of the point.
    """
    file = folder / "pattern.yaml"
    write_file(file, patterns_yaml([pattern]))
    resume = ("--resume",) if (folder / "tuned" / "measurements.jsonl").exists() else ()
    stagegen(
        *("tune", "--topology", topology, "--patterns", file, "--communicators", "patterns"),
        *("--scales", 1, "--budget", BUDGET, "--launches", LAUNCHES, "--quiet"),
        *("--output", folder / "tuned", *resume),
        variables={CONGESTION_VARIABLE: congestion},
    )
    size = round(size_of_pattern(pattern))
    bound = bound_of_pattern(load_topology(topology), pattern, size)
    return {"bound": bound, **_times(folder / "tuned")}


def _times(folder: Path) -> dict[str, Any]:
    """Return what serves, and the median seconds of it and of the native routine.

    Both are of the launches that decide, in which they took turns; where a budget left none of
    them, of scouting.
    """
    decision = json.loads((folder / "decision.json").read_text())
    rule = decision["tables"][0]["rules"][0]
    own = [f"{name}={value}" for name, value in sorted(rule["parameters"].items())]
    chosen = ":".join([rule["algorithm"], *own])
    scouted: dict[str, list[float]] = defaultdict(list)
    raced: dict[str, list[float]] = defaultdict(list)
    for line in (folder / "measurements.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "measurement":
            for spec, times in record["seconds"].items():
                (raced if record["launch"] else scouted)[spec] += times
    seconds = {**scouted, **raced}
    return {
        "chosen": chosen,
        "launches": chosen in raced and NATIVE in raced,
        "seconds": median(seconds[chosen]),
        "native": median(seconds[NATIVE]),
        "others": {spec: median(times) for spec, times in sorted(seconds.items())},
    }


def rows_of(found: Found) -> str:
    """Return a table with a row for each point."""
    rows = [
        [
            name,
            one["chosen"],
            milliseconds(one["seconds"]),
            f"{one['seconds'] / one['bound']:.2f}",
            f"{one['native'] / one['seconds']:.2f}",
        ]
        for name, one in found.items()
    ]
    titles = ["cluster, congestion control, pattern", "what serves", "ms", "over bound",
              "native over it"]  # fmt: skip
    return table(titles, rows)
