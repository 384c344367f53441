"""A persistent alltoall with a plan against the MPI library's own persistent form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments import lab
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.patterns._clusters import CLUSTERS, topology_file
from docs.tools.experiments.patterns.tuned import CONGESTION
from docs.tools.experiments.stagegen import stagegen
from docs.tools.target import Target
from stagegen.generate import Toolchain, run_make
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.schedule import lower_bound

BYTES, PAIRS = 32 << 10, 9

#: A native form's median differs from job to job, as some of its calls lose frames.
JOBS = 5

#: What the program calls its rows, as the results have them.
ROWS = {"planned, ms": "planned", "native, ms": "native", "native / planned": "ratio"}

_ROW = re.compile(r"^(\S.*\S) +median +([0-9.]+), +([0-9.]+) to +([0-9.]+)$", re.MULTILINE)


def library_of(topology: Path, folder: Path) -> Path:
    """Return a library of a cluster: its plan of an alltoall depends on nothing that is tuned."""
    if not (folder / "libcoll.so").exists():
        stagegen(
            *("tune", "--topology", topology, "--collectives", "alltoall", "--sizes", 1),
            *("--communicators", "whole", "--budget", 1, "--quiet", "--output", folder),
            *(("--resume",) if (folder / "measurements.jsonl").exists() else ()),
        )
        run_make(folder, Toolchain.find(), "libcoll.so")
    return folder


def _measure(cluster: str, congestion: str, folder: Path) -> Any:
    """Return the medians, the least and the most of a job."""
    top = folder.parents[1]
    topology = topology_file(cluster, folder)
    library = library_of(topology, top / "persistent-libraries" / cluster)
    program = lab.compiled(top / "compiled", "persistent")
    variables = {CONGESTION_VARIABLE: congestion}
    text = lab.run(topology, program, BYTES, PAIRS, library=library, variables=variables)
    return rows_in(text)


def rows_in(text: str) -> dict[str, list[float]]:
    """Return median, least and most of what the program prints: milliseconds, and ratios.

    Raises:
        ValueError: a row is missing.
    """
    found = {one[1]: [*map(float, one.groups()[1:])] for one in _ROW.finditer(text)}
    if set(found) != set(ROWS):
        raise ValueError(f"not all of {', '.join(ROWS)} are in {text!r}")
    return {ROWS[name]: numbers for name, numbers in found.items()}


def _jobs(found: Found) -> dict[tuple[str, str], list[Any]]:
    """Return the jobs that were measured, by cluster and congestion control."""
    jobs: dict[tuple[str, str], list[Any]] = {}
    for point, one in found.items():
        cluster, congestion, _ = point.split()
        jobs.setdefault((cluster, congestion), []).append(one)
    return jobs


def _ratio(jobs: Sequence[Any]) -> float:
    """Return the median over jobs of their medians of pairs."""
    ratios: list[float] = [one["ratio"][0] for one in jobs]
    return median(ratios)


def _report(found: Found) -> str:
    rows = []
    for (cluster, congestion), jobs in _jobs(found).items():
        bound = lower_bound(CLUSTERS[cluster].topology(), "alltoall", BYTES).seconds
        ratios = ", ".join(f"{ratio:.2f}" for ratio in sorted(one["ratio"][0] for one in jobs))
        rows.append(
            [
                f"`{cluster}`, {congestion}",
                f"{1e3 * bound:.0f}",
                *(_times([one[who] for one in jobs]) for who in ("planned", "native")),
                ratios,
                f"{_ratio(jobs):.2f}",
            ]
        )
    titles = ["cluster, congestion control", "bound, ms", "planned, ms", "native, ms",
              "native / planned of each job", "median"]  # fmt: skip
    return table(titles, rows)


def _times(jobs: Sequence[Sequence[float]]) -> str:
    """Return the median of the jobs' medians, and the least and the most of all their times."""
    middle = median(one[0] for one in jobs)
    return f"{middle:.0f} ({min(one[1] for one in jobs):.0f}–{max(one[2] for one in jobs):.0f})"


def _targets(found: Found) -> Sequence[Target]:
    ratios = {" ".join(which): _ratio(jobs) for which, jobs in _jobs(found).items()}
    return [Target.at_least(1.3, ratios, "native over a plan of a persistent alltoall")]


#: What each point is of, by its name.
POINTS: Mapping[str, tuple[str, str]] = {
    f"{cluster} {congestion} {job}": (cluster, congestion)
    for job in range(1, JOBS + 1)
    for cluster in CLUSTERS
    for congestion in CONGESTION
}

EXPERIMENT = Experiment(
    name="persistent",
    what="a persistent alltoall of 32 KiB with a plan, and the MPI library's own persistent form",
    points={name: partial(_measure, *one) for name, one in POINTS.items()},
    report=_report,
    page=Path("docs/persistent.md"),
    targets=_targets,
    congestion={name: congestion for name, (_, congestion) in POINTS.items()},
)
