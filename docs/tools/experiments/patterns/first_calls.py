"""The first ten calls of each pattern on a communicator: recognition's messages are in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments import lab, results
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.patterns import tuned
from docs.tools.experiments.patterns._clusters import topology_file
from docs.tools.experiments.patterns._tuning import PAGE
from docs.tools.target import Target
from stagegen.generate import Toolchain, run_make
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.topology import load_topology

#: Only the first round of a job has what the library prepares once in a process.
JOBS = 3

#: For all calls of a job, and the most rounds of ten calls by each that it has.
SECONDS, ROUNDS = 30, 5
CALLS = 2 * 10

_ROUND = re.compile(r"^round \d+: library ([0-9.]+) s, native ([0-9.]+) s$", re.MULTILINE)


def _measure(cluster: str, congestion: str, number: int, folder: Path) -> Any:
    point = tuned.point_of(cluster, congestion, number)
    top = folder.parents[1]
    library = results.folder_of(tuned.EXPERIMENT, point, top) / "tuned"
    is_there = (library / "decision.json").exists()  # a result may be there without it
    if not (is_there and results.is_measured(tuned.EXPERIMENT, point, top)):
        results.measure(tuned.EXPERIMENT, point, top)
    known = results.found(tuned.EXPERIMENT, top)[point]
    run_make(library, Toolchain.find(), "libcoll.so")
    topology = topology_file(cluster, folder)
    pattern = tuned.pattern_of(number, load_topology(topology).rank_count)
    counts = tuned.write_counts(pattern, folder)
    program = lab.compiled(top / "compiled", "first_calls")
    texts = [
        lab.run(
            topology, program, counts, rounds_of(known["native"]),
            library=library, variables={CONGESTION_VARIABLE: congestion},
        )
        for _ in range(JOBS)
    ]  # fmt: skip
    return {"chosen": known["chosen"], "jobs": list(map(rounds_in, texts))}


def rounds_of(seconds: float) -> int:
    """Return how many rounds a job has if a call takes so long."""
    return max(1, min(ROUNDS, int(SECONDS / (CALLS * seconds))))


def rounds_in(text: str) -> list[list[float]]:
    """Return the seconds of ten calls by the library and by native, for each round of a job.

    Raises:
        ValueError: the program did not tell that all is right.
    """
    found = [[float(one[1]), float(one[2])] for one in _ROUND.finditer(text)]
    if not found or "right: " not in text:
        raise ValueError(f"no times of right calls in {text!r}")
    return found


def _ratios(one: Any) -> tuple[float, float]:
    """Return native over the library, a median: of all rounds, and of the first of each job."""
    ratios = [[native / own for own, native in job] for job in one["jobs"]]
    return median(ratio for job in ratios for ratio in job), median(job[0] for job in ratios)


def _report(found: Found) -> str:
    rows = []
    for name, one in found.items():
        of_all, of_first = _ratios(one)
        seconds = median(own for job in one["jobs"] for own, _ in job)
        rows.append([name, one["chosen"], f"{seconds:.3f}", f"{of_all:.2f}", f"{of_first:.2f}"])
    titles = ["cluster, congestion control, pattern", "what serves", "ten calls, s",
              "native over it", "in new processes"]  # fmt: skip
    count = f"{len(found)} of {len(EXPERIMENT.points)} points were measured."
    return f"{count}\n\n{table(titles, rows)}"


def _targets(found: Found) -> Sequence[Target]:
    whole = {name: _ratios(one)[0] for name, one in found.items()}
    first = {name: _ratios(one)[1] for name, one in found.items()}
    return [
        Target.at_least(0.97, whole, "native over the first ten calls"),
        Target.at_least(0.97, first, "native over the first ten calls of processes"),
    ]


def _points() -> Iterator[tuple[str, Any]]:
    for point, (cluster, congestion, number) in tuned.POINTS.items():
        yield point, partial(_measure, cluster, congestion, number)


EXPERIMENT = Experiment(
    name="first_calls",
    what="the first ten calls of each pattern, recognition included, and native ones in turn",
    points=dict(_points()),
    report=_report,
    page=PAGE,
    targets=_targets,
    congestion=tuned.EXPERIMENT.congestion,
)
