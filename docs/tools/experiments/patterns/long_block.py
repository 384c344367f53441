"""An allgatherv with one long block: what serves it, and how long the ring in segments takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.patterns._tuning import PAGE, measured
from stagegen.data import TOPOLOGIES
from stagegen.patterns import Pattern
from stagegen.topology import load_topology

CLUSTER = "chain-4x4-cyclic"
KIB = 1 << 10
#: The block of rank 5, and those of the others, in bytes.
BLOCKS = ((16 * KIB, 16 * KIB), (128 * KIB, 8 * KIB), (256 * KIB, 1 * KIB))


def _measure(longest: int, other: int, congestion: str, folder: Path) -> Any:
    topology = TOPOLOGIES / f"{CLUSTER}.yaml"
    count = load_topology(topology).rank_count
    blocks = tuple(longest if rank == 5 else other for rank in range(count))
    return measured(topology, congestion, Pattern("blocks", "allgatherv", (blocks,)), folder)


def _ring(one: Any) -> float | None:
    """Return the seconds of the fastest ring in segments that was timed."""
    names = ("logical_ring", "pipelined_ring")
    return min((s for spec, s in one["others"].items() if spec.startswith(names)), default=None)


def _summary(result: Any) -> Any:
    """Return what the report needs: of all other candidates, the ring."""
    own = {name: value for name, value in result.items() if name != "others"}
    return {**own, "ring": _ring(result)}


def _report(found: Found) -> str:
    rows = []
    for name, one in found.items():
        ring = one["ring"]
        rows.append(
            [
                name,
                f"{1e3 * one['bound']:.4g}",
                milliseconds(one["native"]),
                "" if ring is None else milliseconds(ring),
                one["chosen"],
                milliseconds(one["seconds"]),
            ]
        )
    titles = ["the long block, the others", "bound, ms", "native, ms", "ring, ms", "what serves",
              "ms"]  # fmt: skip
    return f"On {CLUSTER}:\n\n{table(titles, rows)}"


#: What each point is of, by its name: the congestion control, the longest block, the others.
POINTS: Mapping[str, tuple[str, int, int]] = {
    f"{congestion}, {longest // KIB} and {other // KIB} KiB": (congestion, longest, other)
    for congestion in ("cubic", "bbr")
    for longest, other in BLOCKS
}

EXPERIMENT = Experiment(
    name="long_block",
    what="allgatherv with one long block: what serves it, and the ring in segments",
    points={
        name: partial(_measure, longest, other, congestion)
        for name, (congestion, longest, other) in POINTS.items()
    },
    report=_report,
    page=PAGE,
    summary=_summary,
    congestion={name: congestion for name, (congestion, _, _) in POINTS.items()},
)
