"""Arrival-aware bcast, reduce and allgather against the best of those that watch no arrivals."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import interval, milliseconds, table
from docs.tools.experiments.stagegen import answer
from stagegen.measure.statistics import paired_ratio
from stagegen.report.units import format_bytes

TOPOLOGY = """\
name: one-switch
defaults: {bandwidth: 20Mbit, latency: 50us}
launcher: lab
switches:
  s0: {hosts: "n[0-15]"}
"""

#: By collective: the algorithm that watches arrivals, and its rivals, which do not.
WATCHING = {
    "reduce": "pre_reduced_tree",
    "bcast": "late_leaves",
    "allgather": "pre_gathered_ring",
}
NATIVE = "native"
OTHERS = {
    "reduce": ("binomial", "pipelined_linear", "pipelined_binary", "rabenseifner"),
    "bcast": ("binomial", "pipelined_linear", "pipelined_binary", "scatter_ring_allgather"),
    "allgather": ("ring", "bruck", "spreading_simple"),
}

#: By collective: bytes as it counts them, and by how many ms a rank is late. That is more than six
#: times what a call takes: ranks that are late by less count as late after more calls, or never.
SIZES = {
    "reduce": ((1 << 10, 40), (64 << 10, 500)),
    "bcast": ((1 << 10, 40), (64 << 10, 500)),
    "allgather": ((64, 40), (8 << 10, 500)),
}

#: Which rank is late: none, one that is inside every rival tree from rank 0 on, or one that is a
#: leaf of each.
LATE = (None, 4, 15)

#: An experiment has few calls: ranks exchange levels in some calls only, and these take longer.
#: Such calls become ever rarer, so if there are many experiments, few of them have such a call.
EXPERIMENTS, CALLS = 16, 3
MANY = {"reduce": 48, "bcast": 48}


@dataclass(frozen=True)
class _Setting:
    """A collective, its size, which rank is late, and by how many ms."""

    collective: str
    size: int
    late: int | None
    delay: int

    @property
    def name(self) -> str:
        return f"{self.collective} {format_bytes(self.size)} {self.lateness}"

    @property
    def lateness(self) -> str:
        return "nobody late" if self.late is None else f"rank {self.late} late by {self.delay} ms"

    @property
    def plan(self) -> str:
        if self.late is None:
            return "imbalance:1us"  # by less than 1 µs no rank is late, but all is measured alike
        return f"replay:{self.late}={self.delay}ms"

    @property
    def experiments(self) -> int:
        return EXPERIMENTS if self.late is None else MANY.get(self.collective, EXPERIMENTS)

    @property
    def algorithms(self) -> Sequence[str]:
        return (NATIVE, *OTHERS[self.collective], WATCHING[self.collective])


SETTINGS = [
    _Setting(collective, size, late, delay)
    for collective in WATCHING
    for size, delay in SIZES[collective]
    for late in LATE
]

#: What is compared: ē, and the time from the last arrival to the last exit.
METRICS = {"mean": "ē", "last": "last exit"}


def _measure(setting: _Setting, folder: Path) -> Any:
    path = folder / "topology.yaml"
    path.write_text(TOPOLOGY, encoding="utf-8")
    return answer(
        *("compare", "--topology", path, "--collective", setting.collective),
        *("--sizes", setting.size, "--algorithms", ",".join(setting.algorithms)),
        *("--timing", setting.plan, "--metric", "last", "--repetitions", setting.experiments),
        *("--iterations", CALLS, "--output", folder.parent / f"build-{setting.collective}"),
    )


def _summary(result: Any) -> Any:
    """Return by metric each algorithm's seconds, and what the one that watches arrivals gains."""
    late = {row["routine"].partition(":")[0]: row["late"]["rounds"] for row in result["rows"]}
    return {
        metric: _of_metric({name: of[metric] for name, of in late.items()}) for metric in METRICS
    }


def _of_metric(rounds: Mapping[str, Sequence[float]]) -> Any:
    seconds = {name: statistics.median(times) for name, times in rounds.items()}
    watching = next(name for name in WATCHING.values() if name in rounds)
    best = min(seconds.keys() - {NATIVE, watching}, key=lambda name: (seconds[name], name))
    return {
        "seconds": seconds,
        "best": best,
        "gains": {
            of: _interval(rounds[name], rounds[watching])
            for of, name in (("native", NATIVE), ("best", best))
        },
    }


def _interval(seconds: Sequence[float], reference: Sequence[float]) -> list[float]:
    ratio = paired_ratio(seconds, reference)
    return [ratio.median, ratio.low, ratio.high]


def _report(found: Found) -> str:
    sections = (_section(collective, found) for collective in WATCHING)
    return "\n\n".join(section for section in sections if section)


def _section(collective: str, found: Found) -> str:
    """Return two tables: the times of all algorithms, and what the last one gains."""
    known = [one for one in SETTINGS if one.collective == collective and one.name in found]
    if not known:
        return ""
    names, watching = known[0].algorithms, WATCHING[collective]
    times = [[*_head(one), *_times(found[one.name], names)] for one in known]
    gains = [[*_head(one), *_gains(found[one.name])] for one in known]
    head = ["size", "late"]
    ratios = [
        f"{rival} / this, {what}" for what in METRICS.values() for rival in ("native", "best other")
    ]
    return (
        f"{collective}: ē, and the time from the last arrival to the last exit, ms (medians)\n\n"
        f"{table([*head, *(f'`{name}`' for name in names)], times)}\n\n"
        f"{collective}: what `{watching}` gains (medians of pairs, with 95 % intervals)\n\n"
        f"{table([*head, *ratios], gains)}"
    )


def _head(setting: _Setting) -> list[str]:
    return [format_bytes(setting.size), setting.lateness.replace(" late", "", 1)]


def _times(kept: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield ", ".join(milliseconds(kept[metric]["seconds"][name]) for metric in METRICS)


def _gains(kept: Mapping[str, Any]) -> Iterator[str]:
    for metric in METRICS:
        gains, best = kept[metric]["gains"], kept[metric]["best"]
        yield interval(*gains["native"])
        yield f"{interval(*gains['best'])} (`{best}`)"


EXPERIMENT = Experiment(
    "one_late",
    "bcast, reduce and allgather that watch arrivals, and those that do not, with one late rank",
    {setting.name: partial(_measure, setting) for setting in SETTINGS},
    _report,
    Path("docs/arrival-algorithms.md"),
    summary=_summary,
)
