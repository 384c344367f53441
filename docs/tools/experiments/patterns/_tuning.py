"""Tuning for one pattern, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.stagegen import stagegen
from docs.tools.experiments.tuned import read_tuned
from stagegen.catalogue.algorithm import NATIVE
from stagegen.generate.pattern_templates import algorithm_name
from stagegen.generate.write import write_file
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.patterns import Pattern, patterns_yaml
from stagegen.schedule import PATTERN_CONSTRUCTIONS
from stagegen.topology import load_topology
from stagegen.tune.bounds import bound_of_pattern, size_of_pattern

PAGE = Path("docs/patterns.md")

#: For a whole tuning.
BUDGET = "4m"


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
        *("--scales", 1, "--budget", BUDGET, "--quiet"),
        *("--output", folder / "tuned", *resume),
        variables={CONGESTION_VARIABLE: congestion},
    )
    size = round(size_of_pattern(pattern))
    bound = bound_of_pattern(load_topology(topology), pattern, size)
    tuned = read_tuned(folder / "tuned")
    return {
        "bound": bound,
        "chosen": tuned.chosen,
        "launches": tuned.is_decided,
        "seconds": tuned.seconds[tuned.chosen],
        "native": tuned.seconds[NATIVE],
        "others": tuned.seconds,
    }


#: Among what is kept of a point: the seconds of the pattern's own routines.
SCHEDULED = "scheduled"

#: In the order in which a pattern gets routines: a schedule that equals an earlier one has none.
SCHEDULES = ("segments", *(one for one in PATTERN_CONSTRUCTIONS if one != "segments"))


def seconds_of(one: Any, routine: str) -> float | None:
    """Return the least time of a routine, whatever its parameters; None if none is known."""
    known = one.get(SCHEDULED, {})  # points that were carried from the page have none
    times = (s for spec, s in known.items() if spec.partition(":")[0] == routine)
    return min(times, default=None)


def rows_of(found: Found, patterns: Mapping[str, Pattern]) -> str:
    """Return a table with a row for each point.

    Args:
        found: what is kept of points, by point.
        patterns: of the points, by point.
    """
    rows = [
        [
            name,
            one["chosen"],
            milliseconds(one["seconds"]),
            f"{one['seconds'] / one['bound']:.2f}",
            f"{one['native'] / one['seconds']:.2f}",
            *(_over_bound(one, algorithm_name(patterns[name], how)) for how in SCHEDULES),
        ]
        for name, one in found.items()
    ]
    titles = ["cluster, congestion control, pattern", "what serves", "ms", "over bound",
              "native over it", *(f"`{how}`" for how in SCHEDULES)]  # fmt: skip
    return table(titles, rows)


def _over_bound(one: Any, routine: str) -> str:
    seconds = seconds_of(one, routine)
    return "" if seconds is None else f"{seconds / one['bound']:.2f}"
