"""Alltoall algorithms while the imbalance factor grows (Faraj 2006, Figs. 4.21 and 4.22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.stagegen import answer

#: The algorithms of §4.2.4. Its *simple* is the spreading one of §4.1.1.1.
ALGORITHMS = ("native", "spreading_simple", "bruck", "pair", "ring")

#: MAX_IMBALANCE_FACTOR of the figures; with 1, no rank is late.
FACTORS = (1, 2, 3, 5, 9, 17, 33, 65, 129, 257)

SIZES = {"1 B": 1, "64 KiB": 64 << 10}

#: Experiments, and calls of each, by size; the source has 32 of 100.
Experiments = Mapping[str, tuple[int, int]]


def alltoalls(
    name: str,
    what: str,
    topology: str,
    experiments: Experiments,
    factors: Sequence[int] = FACTORS,
) -> Experiment:
    """Return the experiment of a figure: a point for each size and factor.

    Args:
        name: the name of its file.
        what: a line about it.
        topology: the text of the topology file.
        experiments: how many, and calls of each.
        factors: some of :data:`FACTORS`.
    """
    points = {
        f"{size} factor {factor}": partial(_measure, topology, size, factor, experiments[size])
        for size in SIZES
        for factor in factors
    }
    return Experiment(name, what, points, _report, Path("docs/arrival.md"), summary=_summary)


def _measure(
    topology: str, size: str, factor: int, experiments: tuple[int, int], folder: Path
) -> Any:
    path = folder / "topology.yaml"
    path.write_text(topology, encoding="utf-8")
    many, calls = experiments
    return answer(
        "compare",
        *("--topology", path, "--collective", "alltoall", "--sizes", SIZES[size]),
        *("--algorithms", ",".join(ALGORITHMS), "--timing", f"imbalance:{factor}"),
        *("--repetitions", many, "--iterations", calls, "--output", folder.parent / "build"),
    )


def _summary(result: Any) -> Any:
    """Return for each algorithm ē, half of its interval and the last exit; ω / T; experiments."""
    of = {row["routine"].partition(":")[0]: row["late"] for row in result["rows"]}
    first = of[ALGORITHMS[0]]
    return {
        "algorithms": {name: _times(of[name]) for name in ALGORITHMS},
        "omega": first["spread_s"] / first["message_s"],
        "experiments": len(first["rounds"]["mean"]),
    }


def _times(late: Mapping[str, Any]) -> dict[str, float]:
    low, high = late["mean_interval_s"]
    return {"mean_s": late["mean_s"], "half_s": (high - low) / 2, "last_s": late["last_s"]}


def _report(found: Found) -> str:
    sections = [_section(size, found) for size in SIZES]
    return "\n\n".join(section for section in sections if section)


def _section(size: str, found: Found) -> str:
    """Return the table of a size."""
    rows = []
    for factor in FACTORS:
        result = found.get(f"{size} factor {factor}")
        if result is None:
            continue
        of = result["algorithms"]
        best = min(of[name]["mean_s"] for name in ALGORITHMS)
        cells = [_cell(of[name], of[name]["mean_s"] == best) for name in ALGORITHMS]
        rows.append([str(factor), *cells, f"{result['omega']:.1f}", str(result["experiments"])])
    if not rows:
        return ""
    titles = ["MAX", *ALGORITHMS, "ω / T", "experiments"]
    return f"{size}: ē ± half of its 95 % interval | last exit, ms\n\n{table(titles, rows)}"


def _cell(times: Mapping[str, float], is_best: bool) -> str:
    mean, half, last = (milliseconds(times[name]) for name in ("mean_s", "half_s", "last_s"))
    text = f"{mean} ± {half}, {last}"
    return f"**{text}**" if is_best else text
