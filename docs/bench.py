"""The benchmark behind the README's table: native, tuned and lower bound, with the goals beside.

Run by ``make bench``; needs a machine on which nothing else runs. It calls ``stagegen bench``,
which times native and tuned calls in turn in one job, and prints a Markdown table of the medians.
Exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

GRID = "1:256KiB"
BCAST_ALSO = "1MiB"

#: No size may be slower than native by more than this share.
SLOWER_AT_MOST = 0.05


@dataclass(frozen=True)
class Goal:
    """What the project promises for one point on its benchmark cluster."""

    collective: str
    size: int
    speedup: float
    over_bound: float


GOALS = (
    Goal("alltoall", 32 << 10, 1.8, 1.20),
    Goal("allgather", 64 << 10, 3.5, 1.15),
    Goal("bcast", 1 << 20, 4.0, 1.15),
)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topology", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--repetitions", type=int, default=11)
    parser.add_argument("--plot", help="write the picture of the README to this SVG file")
    arguments = parser.parse_args()
    rows = measure(arguments, None, GRID) + measure(arguments, "bcast", BCAST_ALSO)
    print_rows(rows)
    if arguments.plot:
        plot(rows, arguments.plot)
    return 0 if judge(rows) else 1


def measure(arguments: argparse.Namespace, collective: str | None, sizes: str) -> list[Any]:
    """Return the rows of one ``stagegen bench``."""
    command = [sys.executable, "-m", "stagegen", "bench", "--format", "json"]
    command += ["--topology", arguments.topology, "--library", arguments.library]
    command += ["--sizes", sizes, "--repetitions", str(arguments.repetitions)]
    command += ["--collectives", collective] if collective else []
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    rows: list[Any] = json.loads(output)["rows"]
    return rows


def print_rows(rows: list[Any]) -> None:
    """Print a Markdown table, times in milliseconds."""
    print(
        "| collective | bytes | native ms | tuned ms | bound ms | speed-up | tuned / bound | by |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for row in rows:
        native, tuned, bound = row["native_s"], row["tuned_s"], row["bound_s"]
        least, over = (f"{1e3 * bound:.4g}", f"{tuned / bound:.2f}") if bound else ("–", "–")
        print(
            f"| {row['collective']} | {row['size']} | {1e3 * native:.4g} | {1e3 * tuned:.4g} "
            f"| {least} | {row['speedup']:.2f} | {over} | {row['routine']} |"
        )


def plot(rows: list[Any], path: str) -> None:
    """Draw times over sizes, one panel a collective."""
    import matplotlib as mpl  # noqa: PLC0415 - only for the picture
    from matplotlib.figure import Figure  # noqa: PLC0415

    mpl.rcParams.update({"svg.hashsalt": "stagegen", "svg.fonttype": "none", "font.size": 9})
    names = sorted({row["collective"] for row in rows if row["bound_s"]})
    figure = Figure(figsize=(9.6, 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), sharey=True), names, strict=True):
        own = [row for row in rows if row["collective"] == name]
        sizes = [row["size"] for row in own]
        for key, style, color, label in (
            ("native_s", "o-", "#888888", "MPICH"),
            ("tuned_s", "o-", "#0060c0", "libcoll"),
            ("bound_s", ":", "#000000", "lower bound"),
        ):
            axes.plot(sizes, [row[key] for row in own], style, color=color, label=label, ms=3)
        axes.set(xscale="log", yscale="log", title=name, xlabel="message size / bytes")
        axes.set_xticks([1, 64, 1024, 16384, 262144], ["1", "64", "1 Ki", "16 Ki", "256 Ki"])
        axes.minorticks_off()
        axes.set_ylim(1e-4, None)
        axes.grid(visible=True, alpha=0.3)
    figure.axes[0].set_ylabel("time / s")
    figure.axes[0].legend(frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def judge(rows: list[Any]) -> bool:
    """Print each goal beside what was measured; return whether all are met."""
    met = True
    by_point = {(row["collective"], row["size"]): row for row in rows}
    print()
    for goal in GOALS:
        row = by_point[goal.collective, goal.size]
        over = row["tuned_s"] / row["bound_s"]
        fine = row["speedup"] >= goal.speedup and over <= goal.over_bound
        met &= fine
        print(
            f"{'met   ' if fine else 'MISSED'} {goal.collective} {goal.size} B: speed-up "
            f"{row['speedup']:.2f} (goal {goal.speedup}), {over:.3f} × bound "
            f"(goal {goal.over_bound})"
        )
    worst = min(rows, key=lambda row: row["speedup"])
    fine = worst["speedup"] >= 1 / (1 + SLOWER_AT_MOST)
    print(
        f"{'met   ' if fine else 'MISSED'} never slower than native by more than 5 %: worst is "
        f"{worst['collective']} {worst['size']} B with {worst['speedup']:.3f}"
    )
    return met and fine


if __name__ == "__main__":
    sys.exit(main())
