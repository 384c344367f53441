"""Persistent alltoallvs of patterns: their plans against the MPI library's own persistent form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

from docs.tools.experiments import lab
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.patterns import tuned
from docs.tools.experiments.patterns._clusters import CLUSTERS, topology_file
from docs.tools.experiments.patterns.persistent import PAIRS, library_of, rows_in
from docs.tools.target import Target
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.schedule import lower_bound_of_sizes

#: The targets: native over a plan whose init is shared by so many starts; a plan over its bound.
STARTS, LEAST, MOST = 10, 0.97, 1.35

#: Seconds for all starts of a job, by the bound, and the least number of pairs.
SECONDS, PAIRS_LEAST = 60, 3

_LINE = re.compile(r"^(mean|init): planned ([0-9.]+) ms, native ([0-9.]+) ms$", re.MULTILINE)


def _measure(cluster: str, congestion: str, number: int, folder: Path) -> Any:
    """Return the medians, the least, the most and the means of a job, and the times of inits.

    Raises:
        ValueError: the library made no plan.
    """
    top = folder.parents[1]
    topology = topology_file(cluster, folder)
    library = library_of(topology, top / "persistent-libraries" / cluster)
    pattern = tuned.pattern_of(number, CLUSTERS[cluster].topology().rank_count)
    counts = tuned.write_counts(pattern, folder)
    program = lab.compiled(top / "compiled", "persistent")
    bound = lower_bound_of_sizes(CLUSTERS[cluster].topology(), "alltoallv", pattern.sizes).seconds
    variables = {
        CONGESTION_VARIABLE: congestion, "LIBCOLL_PERSISTENT": "tokens", "LIBCOLL_TRACE": "1"
    }  # fmt: skip
    text = lab.run(
        topology, program, counts, pairs_of(bound), "alltoallv",
        library=library, variables=variables, with_errors=True,
    )  # fmt: skip
    if "persistent, planned" not in text:
        raise ValueError(f"no plan in {text!r}")
    return {**rows_in(text), **means_in(text), "bound": 1e3 * bound}


def pairs_of(seconds: float) -> int:
    """Return how many pairs of starts a job has if a start takes so long."""
    return max(PAIRS_LEAST, min(PAIRS, int(SECONDS / (2 * seconds))))


def means_in(text: str) -> dict[str, float]:
    """Return the mean times of starts, and what the inits took, in milliseconds.

    Raises:
        ValueError: the program does not tell.
    """
    found = {
        f"{whose}_{what}": float(number)
        for what, *numbers in _LINE.findall(text)
        for whose, number in zip(("planned", "native"), numbers, strict=True)
    }
    if len(found) != 4:
        raise ValueError(f"no means and inits in {text!r}")
    return found


def ratio_with_init(one: Any) -> float:
    """Return native over the plan if each init is shared by ten starts."""
    native, planned = (
        STARTS * one[f"{whose}_mean"] + one[f"{whose}_init"] for whose in ("native", "planned")
    )
    return float(native / planned)


def _report(found: Found) -> str:
    rows = [
        [
            point,
            f"{one['bound']:.4g}",
            f"{one['planned'][0]:.4g} ({one['planned'][1]:.4g}–{one['planned'][2]:.4g})",
            f"{one['native'][0]:.4g} ({one['native'][1]:.4g}–{one['native'][2]:.4g})",
            f"{one['planned'][0] / one['bound']:.2f}",
            f"{one['ratio'][0]:.2f}",
            f"{one['planned_init']:.4g}, {one['native_init']:.4g}",
            f"{ratio_with_init(one):.2f}",
        ]
        for point, one in found.items()
    ]
    titles = ["cluster, congestion control, pattern", "bound, ms", "planned, ms", "native, ms",
              "planned / bound", "native / planned", "inits: planned, native, ms",
              f"native / planned, {STARTS} starts and init"]  # fmt: skip
    summary = "\n".join(f"{name}: {text}." for name, text in _summary(found))
    count = f"{len(found)} of {len(EXPERIMENT.points)} points were measured."
    return f"{count}\n\n{table(titles, rows)}\n\n{summary}"


def _summary(found: Found) -> Iterator[tuple[str, str]]:
    if not found:
        return
    over = [one["planned"][0] / one["bound"] for one in found.values()]
    gains = [one["ratio"][0] for one in found.values()]
    mean = exp(fmean(map(log, gains)))
    yield "Planned over the bound", f"{median(over):.2f} in the median, {max(over):.2f} at worst"
    yield (
        "Native over planned",
        f"{mean:.2f} in the geometric mean, {min(gains):.2f} at worst",
    )
    worst = min(map(ratio_with_init, found.values()))
    yield f"The same with {STARTS} starts and their init", f"{worst:.2f} at worst"


def _targets(found: Found) -> Sequence[Target]:
    shared = {point: ratio_with_init(one) for point, one in found.items()}
    over = {point: one["planned"][0] / one["bound"] for point, one in found.items()}
    return [
        Target.at_least(LEAST, shared, f"native over a plan with its init in {STARTS} starts"),
        Target.at_most(MOST, over, "a plan of a persistent alltoallv over its bound"),
    ]


EXPERIMENT = Experiment(
    name="persistent_patterns",
    what="persistent alltoallvs of the twenty patterns, with a plan and in the MPI library's form",
    points={point: partial(_measure, *one) for point, one in tuned.POINTS.items()},
    report=_report,
    page=Path("docs/persistent.md"),
    targets=_targets,
    congestion=tuned.EXPERIMENT.congestion,
)
