"""Tables that were tuned under imbalance against tables that were tuned between barriers."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.stagegen import answer, stagegen
from docs.tools.target import Target
from stagegen.data import TOPOLOGIES
from stagegen.measure.statistics import paired_ratio

#: Four switches with four hosts each, ranks dealt to the switches in turn.
TOPOLOGY = TOPOLOGIES / "chain-4x4-cyclic.yaml"

KIB = 1 << 10
SIZES = (64 * KIB, 256 * KIB, 1024 * KIB)

#: MAX of the delays, in message times. With 64, ranks are late by up to 27 s at 1 MiB.
FACTORS = (4, 16, 64)

EXPERIMENTS = 32

#: The time that decides: after the last arrival. The waiting is the same for all routines, and a
#: growing part of ē.
METRIC = "last"

#: Seconds of measured time for a size: the tunings have no limit of time.
BUDGET = 20

#: Further options of ``stagegen tune``, for shorter runs: --budget 2 --launches 2, for instance.
MORE = os.environ.get("BENCH_ARRIVAL_TUNE", "").split()

#: What was promised where the tables choose differently.
GAIN = 1.1

BARRIER = "barrier"


def _folder(top: Path, timing: str, size: int) -> Path:
    return top / f"library-{timing}-{size}"


def _tune(timing: str, size: int, folder: Path) -> Any:
    """Tune allreduce at a size; a tuning that was stopped goes on."""
    library = _folder(folder.parent, timing, size)
    how = ("barrier",) if timing == BARRIER else (f"imbalance:{timing}", "--metric", METRIC)
    resume = ("--resume",) if (library / "measurements.jsonl").exists() else ()
    stagegen(
        *("tune", "--topology", TOPOLOGY, "--collectives", "allreduce", "--sizes", size),
        *("--communicators", "whole", "--output", library, "--timing", *how),
        *("--budget", BUDGET, *MORE, *resume),
    )
    return {"library": library.name}


def _compare(factor: int, size: int, folder: Path) -> Any:
    timings = (BARRIER, str(factor))
    for timing in timings:
        if not (_folder(folder.parent, timing, size) / "decision.json").exists():
            _tune(timing, size, folder)  # it was done on another machine
    libraries = (_folder(folder.parent, timing, size) for timing in timings)
    return answer(
        *("bench", "--topology", TOPOLOGY, "--collectives", "allreduce", "--sizes", size),
        *(word for library in libraries for word in ("--library", library)),
        *("--arrivals", f"imbalance:{factor}", "--metric", METRIC, "--seed", 2),
        *("--repetitions", EXPERIMENTS),
    )


def _points() -> Iterator[tuple[str, Callable[[Path], Any]]]:
    for size in SIZES:
        kib = size // KIB
        yield f"{kib} KiB tune {BARRIER}", partial(_tune, BARRIER, size)
        for factor in FACTORS:
            yield f"{kib} KiB tune {factor}", partial(_tune, str(factor), size)
            yield f"{kib} KiB compare {factor}", partial(_compare, factor, size)


def _summary(result: Any) -> Any:
    """Return what each table of a comparison chose, its last exit, and ratios by pairs."""
    if "rows" not in result:
        return result
    (row,) = result["rows"]
    return {
        "native_s": row["late"]["last_s"],
        "tables": [
            {"routine": one["routine"], "last_s": one["late"]["last_s"]} for one in row["tables"]
        ],
        **{metric: _ratio(row, metric) for metric in ("last", "mean")},
        "repetitions": row["repetitions"],
    }


def _rows(found: Found) -> Iterator[tuple[int, int, Any]]:
    """Yield size, factor and row of each comparison."""
    for size in SIZES:
        for factor in FACTORS:
            if result := found.get(f"{size // KIB} KiB compare {factor}"):
                yield size, factor, result


def _ratio(row: Any, metric: str) -> list[float]:
    """Return the time of the table tuned under imbalance over that of the other, by pairs.

    The median, and the ends of its interval.
    """
    barrier, imbalance = (one["late"]["rounds"][metric] for one in row["tables"])
    ratio = paired_ratio(imbalance, barrier)
    return [ratio.median, ratio.low, ratio.high]


def _report(found: Found) -> str:
    rows = []
    for size, factor, row in _rows(found):
        barrier, imbalance = row["tables"]
        rows.append(
            [
                f"{size // KIB} KiB",
                str(factor),
                milliseconds(row["native_s"]),
                f"{milliseconds(barrier['last_s'])} (`{barrier['routine']}`)",
                f"{milliseconds(imbalance['last_s'])} (`{imbalance['routine']}`)",
                *(_gain(*row[metric]) for metric in ("last", "mean")),
                str(row["repetitions"]),
            ]
        )
    titles = ["size", "factor", "native ms", "between barriers ms", "under imbalance ms",
              "gain by the last exit", "gain by ē", "experiments"]  # fmt: skip
    return table(titles, rows) if rows else "Not compared yet."


def _gain(ratio: float, low: float, high: float) -> str:
    return f"{1 / ratio:.3f} [{1 / high:.3f}, {1 / low:.3f}]"


def _targets(found: Found) -> Sequence[Target]:
    rows = list(_rows(found))
    if not rows:
        return [Target(None, "tables tuned under imbalance are not compared yet")]
    targets = []
    for size, factor, row in rows:
        ratio, low, _ = row[METRIC]
        text = f"{size // KIB} KiB, factor {factor}: never worse; {ratio:.3f} of the time"
        targets.append(Target(low <= 1, text))
    differ = [row for *_, row in rows if len({one["routine"] for one in row["tables"]}) > 1]
    gains = [1 / row[METRIC][0] for row in differ]
    mean = math.exp(statistics.fmean(map(math.log, gains))) if gains else None
    seen = f"{mean:.3f}" if mean else "they differ nowhere"
    met = None if mean is None else mean >= GAIN
    text = f"at least {GAIN} × in the geometric mean of {len(gains)} where they differ; {seen}"
    return [*targets, Target(met, text)]


EXPERIMENT = Experiment(
    "tuned_4x4",
    "allreduce on 4 × 4 cyclic: tables tuned under imbalance against those tuned between barriers",
    dict(_points()),
    _report,
    Path("docs/arrival.md"),
    _targets,
    _summary,
)
