"""The gap of every schedule to the bound, for data alone: needs no lab."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.patterns._clusters import CLUSTERS
from docs.tools.experiments.patterns._tuning import PAGE
from docs.tools.experiments.patterns.tuned import PATTERNS, pattern_of
from docs.tools.target import Target
from stagegen.schedule import PATTERN_CONSTRUCTIONS, pattern_schedule
from stagegen.schedule.verify import verify

#: Ours promises to be the least of several, the greedy order among them.
BEST, OTHER = "segments", "greedy"


def _measure(cluster: str, _folder: Path) -> Any:
    """Return the bound and the gap of each schedule, by pattern; every schedule is proven."""
    topology = CLUSTERS[cluster].topology()
    found = {}
    for number in range(len(PATTERNS)):
        pattern = pattern_of(number, topology.rank_count)
        made = {how: pattern_schedule(topology, pattern, how) for how in PATTERN_CONSTRUCTIONS}
        for schedule in made.values():
            verify(topology, schedule)
        found[pattern.name] = {
            "bound": made[BEST].bound_seconds,
            "gaps": {how: schedule.gap for how, schedule in made.items()},
        }
    return found


def _report(found: Found) -> str:
    return "\n\n".join(f"On `{name}`:\n\n{_table(one)}" for name, one in found.items())


def _table(patterns: Any) -> str:
    rows = [
        [
            name,
            milliseconds(one["bound"]),
            *(f"{one['gaps'][how]:.1%}" for how in PATTERN_CONSTRUCTIONS),
        ]
        for name, one in patterns.items()
    ]
    gaps = {how: [one["gaps"][how] for one in patterns.values()] for how in PATTERN_CONSTRUCTIONS}
    for what, of in (("median", median), ("worst", max)):
        rows.append([what, "", *(f"{of(gaps[how]):.1%}" for how in PATTERN_CONSTRUCTIONS)])
    return table(["pattern", "bound, ms", *(f"`{how}`" for how in PATTERN_CONSTRUCTIONS)], rows)


def _targets(found: Found) -> Sequence[Target]:
    longer = {
        name: max(one["gaps"][BEST] - one["gaps"][OTHER] for one in patterns.values())
        for name, patterns in found.items()
    }
    return [Target.at_most(0.0, longer, f"gap of {BEST} less that of {OTHER}, at worst")]


EXPERIMENT = Experiment(
    name="in_theory",
    what="the gap of each schedule of the twenty patterns to the bound; needs no lab",
    points={name: partial(_measure, name) for name in CLUSTERS},
    report=_report,
    page=PAGE,
    targets=_targets,
)
