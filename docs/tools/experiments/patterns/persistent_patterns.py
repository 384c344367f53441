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
from stagegen.generate.write import write_file
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.tune.bounds import bound_of_pattern, size_of_pattern

#: A plan whose init is shared by so many starts may take 1 / LEAST of native's time.
STARTS, LEAST = 10, 0.97

_INIT = re.compile(r"^init: planned ([0-9.]+) ms, native ([0-9.]+) ms$", re.MULTILINE)


def _measure(cluster: str, congestion: str, number: int, folder: Path) -> Any:
    """Return the medians, the least and the most of a job, and the times of its inits."""
    top = folder.parents[1]
    topology = topology_file(cluster, folder)
    library = library_of(topology, top / "persistent-libraries" / cluster)
    pattern = tuned.pattern_of(number, CLUSTERS[cluster].topology().rank_count)
    counts = (folder / "counts.txt").absolute()
    write_file(counts, "".join(f"{' '.join(map(str, row))}\n" for row in pattern.sizes))
    program = lab.compiled(top / "compiled", "persistent")
    variables = {CONGESTION_VARIABLE: congestion, "LIBCOLL_PERSISTENT": "tokens"}
    words = (counts, PAIRS, "alltoallv")
    text = lab.run(topology, program, *words, library=library, variables=variables)
    bound = bound_of_pattern(CLUSTERS[cluster].topology(), pattern, round(size_of_pattern(pattern)))
    return {**rows_in(text), **inits_in(text), "bound": 1e3 * bound}


def inits_in(text: str) -> dict[str, float]:
    """Return what the inits took, in milliseconds.

    Raises:
        ValueError: the program does not tell.
    """
    found = _INIT.search(text)
    if found is None:
        raise ValueError(f"no inits in {text!r}")
    return {"planned_init": float(found[1]), "native_init": float(found[2])}


def spread(one: Any) -> float:
    """Return native over the plan if each init is shared by ten starts."""
    native, planned = one["native"][0], one["planned"][0]
    shared = (STARTS * native + one["native_init"]) / (STARTS * planned + one["planned_init"])
    return float(shared)


def _report(found: Found) -> str:
    rows = [
        [
            point,
            f"{one['bound']:.4g}",
            f"{one['planned'][0]:.4g} ({one['planned'][1]:.4g}–{one['planned'][2]:.4g})",
            f"{one['native'][0]:.4g} ({one['native'][1]:.4g}–{one['native'][2]:.4g})",
            f"{one['planned'][0] / one['bound']:.2f}",
            f"{one['ratio'][0]:.2f}",
            f"{one['planned_init']:.4g}",
            f"{spread(one):.2f}",
        ]
        for point, one in found.items()
    ]
    titles = ["cluster, congestion control, pattern", "bound, ms", "planned, ms", "native, ms",
              "planned / bound", "native / planned", "init, ms",
              f"native / planned, {STARTS} starts with their init"]  # fmt: skip
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


def _targets(found: Found) -> Sequence[Target]:
    shared = {point: spread(one) for point, one in found.items()}
    over = {point: one["planned"][0] / one["bound"] for point, one in found.items()}
    return [
        Target.at_least(LEAST, shared, f"native over a plan with its init in {STARTS} starts"),
        Target.at_most(1.35, over, "a plan of a persistent alltoallv over its bound"),
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
