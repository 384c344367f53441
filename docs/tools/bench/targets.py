"""What the project promises, and whether a result keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.tools.bench.families import FROM
from docs.tools.bench.guidelines import TOLERANCE
from docs.tools.bench.plan import CLUSTERS, FIXED, KIB, LONGEST, MIB
from docs.tools.bench.results import Result
from docs.tools.bench.rows import Row
from docs.tools.target import Target

#: No size may have a speed-up below this.
SPEEDUP_LEAST = 0.97

#: What the library may add to a call that goes native, on one rank and without data.
OVERHEAD_NS = 100

#: Medians of the fixed cluster before AAPC was ordered by arrival, by congestion control. No row
#: may be slower than these by more than this share and the noise.
BEFORE = Path(__file__).parent / "before.json"
SLOWER_AT_MOST = 0.05

#: How many of these rows a target names.
WORST_NAMED = 5


@dataclass(frozen=True)
class Goal:
    """A promise about one point.

    Attributes:
        collective: which one.
        size: bytes, as it counts them.
        speedup: the least native over tuned. 1 asks only that tuned is not measurably slower: its
            interval does not lie above native's or, where intervals are unknown or there were
            further launches, the speed-up is at least :data:`SPEEDUP_LEAST`.
        over_bound: tuned over the lower bound at the most, None where nothing is promised.
        everywhere: whether it holds on all clusters; else on the fixed one.
        congestion: the only congestion control that it is for; None for any. How slow native
            is without a schedule depends on it.
    """

    collective: str
    size: int
    speedup: float = 1
    over_bound: float | None = None
    everywhere: bool = False
    congestion: str | None = None

    def is_for(self, result: Result) -> bool:
        """Whether it is a promise about this cluster and congestion control."""
        here = self.everywhere or result.cluster == FIXED.name
        return here and self.congestion in (None, result.congestion)

    def is_met(self, row: Row) -> bool:
        """Whether a row keeps it."""
        if row.has_intervals and row.launches is None:
            together = row.tuned.low <= row.native.high
        else:
            together = row.judged_speedup >= SPEEDUP_LEAST
        fast = row.judged_speedup >= self.speedup or (self.speedup == 1 and together)
        over = row.over_bound
        return fast and (self.over_bound is None or (over is not None and over <= self.over_bound))


GOALS = (
    Goal("alltoall", 32 * KIB, over_bound=1.12, everywhere=True),
    Goal("alltoall", 64 * KIB, over_bound=1.12, everywhere=True),
    Goal("alltoall", LONGEST, over_bound=1.12, everywhere=True),
    Goal("alltoall", 32 * KIB, 1.8, congestion="bbr"),
    Goal("allgather", 64 * KIB, 3.5, 1.15),
    Goal("bcast", MIB, 4.0, 1.15),
    Goal("allreduce", MIB, 2.5, 1.20),
    Goal("reduce", MIB, over_bound=1.20),
    Goal("reduce_scatter", MIB),
    Goal("reduce_scatter_block", 64 * KIB),
    Goal("gather", 64 * KIB),
    Goal("scatter", 64 * KIB),
)


def targets(result: Result) -> Iterator[Target]:
    """Yield all promises about a result."""
    points = {(row.collective, row.size): row for row in result.rows}
    for goal in GOALS:
        if goal.is_for(result):
            yield _of_goal(goal, points.get((goal.collective, goal.size)))
    yield _of_worst(result)
    yield from _of_families(result)
    yield _of_guidelines(result)
    if result.cluster == FIXED.name:
        yield _of_before(result)
        yield _of_overhead(result)


def _of_goal(goal: Goal, row: Row | None) -> Target:
    what = f"{goal.collective} {goal.size} B"
    if row is None:
        return Target(None, what)
    text = f"{what}: speed-up {row.judged_speedup:.2f} (goal {goal.speedup})"
    if goal.over_bound is not None and row.over_bound is not None:
        text += f", {row.over_bound:.3f} × bound (goal {goal.over_bound})"
    return Target(goal.is_met(row), text)


def _of_worst(result: Result) -> Target:
    worst = min(result.rows, key=lambda row: row.judged_speedup)
    text = f"no speed-up below {SPEEDUP_LEAST}: worst is {worst.collective} {worst.size} B with "
    text += f"{worst.judged_speedup:.3f}"
    if again := sum(row.launches is not None for row in result.rows):
        text += f"; {again} rows were launched again"
    return Target(worst.judged_speedup >= SPEEDUP_LEAST, text)


def _of_families(result: Result) -> Iterator[Target]:
    met = {meeting.size: meeting for meeting in result.meetings}
    for size in CLUSTERS[result.cluster].compared("alltoall"):
        if size < FROM:
            continue
        what = f"AAPC at least level with what knows no topology, alltoall {size} B"
        if size not in met:
            yield Target(None, what)
        else:
            one, ratio = met[size], met[size].ratio
            yield Target(
                one.is_level,
                f"{what}: {ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}], "
                f"{one.aapc.routine} over {one.unaware.routine}",
            )


def _of_guidelines(result: Result) -> Target:
    verdict = result.guidelines()
    text = f"no guideline broken by more than {TOLERANCE:.0%} and the noise: "
    text += f"{len(verdict.broken)} of {verdict.compared}"
    if verdict.broken:
        worst = max(verdict.broken, key=lambda one: one.judged_ratio)
        text += f", worst {worst.guideline} at {worst.size} B by {worst.judged_ratio - 1:.1%}"
        below = sum(one.is_below_bound for one in verdict.broken)
        text += f"; {below} by calls that take less than the bound together" if below else ""
    if cleared := len(verdict.suspects) - len(verdict.broken):
        text += f"; further launches cleared {cleared}"
    return Target(not verdict.broken if verdict.compared else None, text)


def _of_before(result: Result) -> Target:
    """Return the promise that no row is slower than before."""
    known = json.loads(BEFORE.read_text(encoding="utf-8")).get(result.congestion, [])
    before = {(collective, size): seconds for collective, size, seconds in known}
    pairs = [
        (row, before[row.collective, row.size])
        for row in result.rows
        if (row.collective, row.size) in before
    ]
    what = f"no row slower than before by more than {SLOWER_AT_MOST:.0%} and the noise"
    if not pairs:
        return Target(None, f"{what}: no earlier run to compare with")
    slower = sorted(
        ((row.tuned.median / then, f"{row.collective} {row.size} B")
         for row, then in pairs if row.tuned.low > (1 + SLOWER_AT_MOST) * then),
        reverse=True,
    )  # fmt: skip
    worst = ", ".join(f"{name} {factor:.2f} ×" for factor, name in slower[:WORST_NAMED])
    text = f"{what}: {len(slower)} of {len(pairs)}{f', worst {worst}' if worst else ''}"
    return Target(not slower, text)


def _of_overhead(result: Result) -> Target:
    what = f"an intercepted call that goes native, 1 rank, 0 B: at most {OVERHEAD_NS} ns more"
    if not result.overheads:
        return Target(None, what)
    worst = max(result.overheads, key=lambda name: result.overheads[name])
    most = result.overheads[worst]
    return Target(most <= OVERHEAD_NS, f"{what}: {most:.1f}, most in {worst}")
