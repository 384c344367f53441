"""Twenty patterns on two clusters: what tuning chooses for each, over bound and over native."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.patterns._clusters import CLUSTERS, topology_file
from docs.tools.experiments.patterns._tuning import PAGE, SCHEDULED, measured, rows_of
from docs.tools.target import Target
from stagegen.generate.pattern_templates import PREFIX
from stagegen.generate.write import write_file
from stagegen.patterns import Pattern, make_pattern
from stagegen.topology import load_topology

KIB = 1 << 10
#: The family of each pattern, its own number, and the mean bytes of a block; the seed is the place.
PATTERNS: Sequence[tuple[str, float | None, int]] = (
    ("zipf", None, 16 * KIB),
    ("sparse", 0.1, 16 * KIB),
    ("banded", None, 16 * KIB),
    ("heavy", None, 16 * KIB),
    ("zipf", None, 4 * KIB),
    ("sparse", 0.05, 4 * KIB),
    ("banded", 3, 4 * KIB),
    ("heavy", 4, 4 * KIB),
    ("zipf", None, 64 * KIB),
    ("sparse", 0.3, 64 * KIB),
    ("banded", 1, 64 * KIB),
    ("heavy", 16, 64 * KIB),
    ("zipf", 0.7, 32 * KIB),
    ("sparse", 0.2, 32 * KIB),
    ("banded", 4, 32 * KIB),
    ("heavy", None, 32 * KIB),
    ("zipf", 1.5, 256 * KIB),
    ("sparse", 0.1, 256 * KIB),
    ("banded", None, 256 * KIB),
    ("heavy", None, 256 * KIB),
)
CONGESTION = ("cubic", "bbr")


def pattern_of(number: int, ranks: int) -> Pattern:
    """Return a pattern of the list."""
    family, own, average = PATTERNS[number]
    made = make_pattern(family, ranks, average, seed=number + 1, number=own)
    return replace(made, name=f"{family}-{number + 1}")


def write_counts(pattern: Pattern, folder: Path) -> Path:
    """Write the bytes of each pair of ranks, as example programs read them; return the file."""
    file = (folder / "counts.txt").absolute()
    write_file(file, "".join(f"{' '.join(map(str, row))}\n" for row in pattern.sizes))
    return file


def _measure(cluster: str, congestion: str, number: int, folder: Path) -> Any:
    topology = topology_file(cluster, folder)
    pattern = pattern_of(number, load_topology(topology).rank_count)
    return measured(topology, congestion, pattern, folder)


def _kept(result: Any) -> Any:
    """Return what the report needs: of all other candidates, the schedules of the pattern."""
    own = {spec: s for spec, s in result["others"].items() if spec.startswith(PREFIX)}
    return {**{name: value for name, value in result.items() if name != "others"}, SCHEDULED: own}


def point_of(cluster: str, congestion: str, number: int) -> str:
    """Return the name of a point."""
    return f"{cluster} {congestion} {PATTERNS[number][0]}-{number + 1}"


#: What each point is of: every cluster's first pattern of each family, then the others.
POINTS: Mapping[str, tuple[str, str, int]] = {
    point_of(*one): one
    for number in range(len(PATTERNS))
    for cluster in CLUSTERS
    for congestion in CONGESTION
    for one in ((cluster, congestion, number),)
}


def _report(found: Found) -> str:
    summary = [f"{name}: {text}." for name, text in _summary(found)]
    count = f"{len(found)} of {len(EXPERIMENT.points)} points were measured."
    patterns = {name: _pattern_of_point(name) for name in found}
    return "\n".join((count, "", rows_of(found, patterns), "", *summary))


def _pattern_of_point(point: str) -> Pattern:
    cluster, _, number = POINTS[point]
    return pattern_of(number, CLUSTERS[cluster].topology().rank_count)


def _summary(found: Found) -> Iterator[tuple[str, str]]:
    over = [one["seconds"] / one["bound"] for one in found.values()]
    faster = [one["native"] / one["seconds"] for one in found.values()]
    mean = exp(fmean(map(log, faster)))
    yield "Over the bound", f"{median(over):.2f} in the median, {max(over):.2f} at worst"
    yield (
        "Native over what serves",
        f"{mean:.2f} in the geometric mean, {min(faster):.2f} at worst",
    )


def _targets(found: Found) -> list[Target]:
    if not found:
        return [Target(None, "time of the chosen routines over bound and native")]
    over = [one["seconds"] / one["bound"] for one in found.values()]
    faster = [one["native"] / one["seconds"] for one in found.values()]
    mean = exp(fmean(map(log, faster)))
    told: Mapping[str, tuple[float, bool]] = {
        "over the bound in the median at most 1.2": (median(over), median(over) <= 1.2),
        "over the bound at worst at most 1.35": (max(over), max(over) <= 1.35),
        "times native in the geometric mean at least 1.5": (mean, mean >= 1.5),
        "times native at worst at least 0.97": (min(faster), min(faster) >= 0.97),
    }
    count = f"of {len(found)} of {len(EXPERIMENT.points)} points"
    return [Target(met, f"{what}: {value:.2f} {count}") for what, (value, met) in told.items()]


EXPERIMENT = Experiment(
    name="tuned",
    what="twenty patterns by a seed: what tuning chooses, over the bound and over native",
    points={name: partial(_measure, *one) for name, one in POINTS.items()},
    report=_report,
    page=PAGE,
    targets=_targets,
    summary=_kept,
    congestion={name: congestion for name, (_, congestion, _) in POINTS.items()},
)
