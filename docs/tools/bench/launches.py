"""Further launches of the job: what one job shows of hundreds of rows is partly luck.

Times differ from call to call and from launch to launch. So among hundreds of rows and comparisons,
some miss their goal by chance. What one job makes suspect is timed again in further launches. All
of it is in each launch, in an order drawn by the launch's number, so what is compared has met the
same machine.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from docs.tools.bench.kept import short_hash
from docs.tools.bench.plan import CATALOGUE, Cluster
from docs.tools.bench.results import Result
from docs.tools.bench.rows import Launches
from docs.tools.bench.targets import SPEEDUP_LEAST
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.measure.comparison import Bench, Comparison
from stagegen.tune.bounds import patience

#: How many further launches there are, and how many repetitions of a call in each; short calls
#: get more (stagegen/measure/comparison.py).
LAUNCHES, REPETITIONS = 5, 3

#: A collective, and the size in bytes.
Point = tuple[str, int]


def suspects(result: Result) -> tuple[Point, ...]:
    """Return what one job makes suspect: slow rows, and both sides of broken guidelines."""
    slow = [row for row in result.rows if row.speedup < SPEEDUP_LEAST]
    sides = [row for one in result.guidelines().suspects for row in one.rows]
    return tuple(sorted({(row.collective, row.size) for row in (*slow, *sides)}))


def launch(cluster: Cluster, library: Path, points: Sequence[Point]) -> dict[Point, Launches]:
    """Time native and tuned calls in turn in further launches of the job.

    Args:
        cluster: where; the lab has the congestion control of this process's environment.
        library: the generated folder.
        points: what is timed in each launch.

    Raises:
        StagegenError: a job failed.
    """
    topology, file = cluster.topology(), cluster.file(library.parent)
    launcher, toolchain, _ = launcher_and_toolchain(topology, file, "lab", None)

    def compare(order: Sequence[Point]) -> dict[Point, Comparison]:
        with closing(Bench(launcher, topology, library, toolchain)) as bench:
            found = {}
            for collective, size in order:
                described = CATALOGUE.collective(collective)
                bound = patience(topology, described, size, root=0) / bench.environment.scale
                found[collective, size] = bench.compare(collective, size, REPETITIONS, bound)
            return found

    return launched(compare, points)


def launched(
    compare: Callable[[Sequence[Point]], Mapping[Point, Comparison]], points: Sequence[Point]
) -> dict[Point, Launches]:
    """Return the medians of each launch.

    Args:
        compare: times points in the given order in one launch.
        points: what is timed in each launch.
    """
    found = []
    for number in range(LAUNCHES):
        print(f"{len(points)} rows, launch {number + 1} of {LAUNCHES}", file=sys.stderr, flush=True)
        order = random.Random(number).sample(points, len(points))
        found.append(compare(order))
    times = {
        point: (
            tuple(statistics.median(one[point].native) for one in found),
            tuple(statistics.median(one[point].tuned) for one in found),
        )
        for point in points
    }
    # No two runs have the same times.
    run = short_hash(list(times.values()))
    return {point: Launches(run, *both) for point, both in times.items()}
