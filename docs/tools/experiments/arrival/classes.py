"""Faraj 2006, §4.2.5: which classes of algorithms stand imbalance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import interval, milliseconds, table
from docs.tools.experiments.stagegen import answer
from stagegen.data import TOPOLOGIES
from stagegen.measure.statistics import paired_ratio, summarize

TOPOLOGY = TOPOLOGIES / "quickstart.yaml"

#: The classes of §4.2.5.1.
COORDINATED, FORWARDING, DIRECT = "globally coordinated", "store-and-forward", "direct"

#: Algorithms and their classes, by collective; the first is native, which may be any.
CLASSES: Mapping[str, Mapping[str, str]] = {
    "alltoall": {"native": "–", "pair": COORDINATED, "ring": COORDINATED, "bruck": COORDINATED,
                 "spreading_simple": DIRECT},
    "allgather": {"native": "–", "recursive_doubling": COORDINATED, "bruck": COORDINATED,
                  "ring": FORWARDING, "spreading_simple": DIRECT},
    "allreduce": {"native": "–", "recursive_doubling": COORDINATED, "rabenseifner": COORDINATED,
                  "ring": FORWARDING, "reduce_bcast": FORWARDING},
    "bcast": {"native": "–", "flat": DIRECT, "binomial": FORWARDING,
              "pipelined_linear:segment_size=4096": FORWARDING},
}  # fmt: skip

SIZE = 16 << 10
FACTORS = (1, 4, 16, 64)
EXPERIMENTS = 32


def _measure(collective: str, factor: int, folder: Path) -> Any:
    return answer(
        *("compare", "--topology", TOPOLOGY, "--collective", collective, "--sizes", SIZE),
        *("--algorithms", ",".join(CLASSES[collective]), "--timing", f"imbalance:{factor}"),
        *("--repetitions", EXPERIMENTS, "--iterations", 1),
        *("--output", folder.parent / f"build-{collective}"),
    )


def _points() -> Iterator[tuple[str, Any]]:
    for collective in CLASSES:
        for factor in FACTORS:
            yield f"{collective} factor {factor}", partial(_measure, collective, factor)


def _summary(result: Any) -> Any:
    """Return for each algorithm the last exit, and ē over native's in the same experiments."""
    native = result["rows"][0]["late"]["rounds"]["mean"]
    return [_of_row(row, native) for row in result["rows"]]


def _of_row(row: Any, native: Sequence[float]) -> Any:
    rounds = row["late"]["rounds"]
    last, ratio = summarize(rounds["last"]), paired_ratio(rounds["mean"], native)
    return {
        "routine": row["routine"],
        "last_s": row["late"]["last_s"],
        "last_ends": [last.low, last.high],
        "over_native": ratio.median,
        "over_native_ends": [ratio.low, ratio.high],
    }


def _report(found: Found) -> str:
    sections = (_section(collective, found) for collective in CLASSES)
    return "\n\n".join(section for section in sections if section)


def _section(collective: str, found: Found) -> str:
    """Return a row for each algorithm: the last exit after the last arrival, at each factor."""
    known = {
        factor: found[point]
        for factor in FACTORS
        if (point := f"{collective} factor {factor}") in found
    }
    if not known:
        return ""
    routines = [one["routine"] for one in next(iter(known.values()))]
    rows = []
    for place, (routine, of_class) in enumerate(
        zip(routines, CLASSES[collective].values(), strict=True)
    ):
        cells = [_cell(result[place]) for result in known.values()]
        rows.append([f"`{routine}`", of_class, *cells])
    titles = ["algorithm", "class", *(f"factor {factor}" for factor in known)]
    what = (
        f"{collective} of {SIZE >> 10} KiB: last exit after the last arrival, ms; ē over native's"
    )
    return f"{what}\n\n{table(titles, rows)}"


def _cell(one: Mapping[str, Any]) -> str:
    """Return both numbers, with their intervals unless an earlier run kept none."""
    if "last_ends" not in one:
        return f"{milliseconds(one['last_s'])}; {one['over_native']:.2f}"
    last = "–".join(milliseconds(end) for end in one["last_ends"])
    ratio = interval(one["over_native"], *one["over_native_ends"])
    return f"{milliseconds(one['last_s'])} [{last}]; {ratio}"


EXPERIMENT = Experiment(
    "classes",
    "how classes of algorithms stand imbalance (Faraj 2006, §4.2.5)",
    dict(_points()),
    _report,
    Path("docs/arrival.md"),
    summary=_summary,
)
