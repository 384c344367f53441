"""The benchmark behind the README's table: native, tuned and lower bound, with the goals beside.

Run by ``make bench``; needs a machine on which nothing else runs. It calls ``stagegen bench``,
which times native and tuned calls in turn in one job, and prints a Markdown table of the medians,
which is docs/benchmark.md as well; then ``make overhead`` of the generated folder. Exits with 1 if
a goal is missed.

Sizes are few and end where the slowest native call of the benchmark cluster takes a few seconds,
so that all of it takes a quarter of an hour there: up to 64 KiB for each rank, which is 1 MiB in
the collectives whose size is that of the whole message.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KIB, MIB = 1 << 10, 1 << 20

#: Which collectives are compared at which sizes, one job for each line.
PLAN = (
    (("allgather", "gather", "reduce_scatter_block", "scatter"), "1,64,1KiB,4KiB,16KiB,64KiB"),
    (("alltoall",), "1,64,1KiB,4KiB,16KiB,32KiB,64KiB"),
    (
        ("allgatherv", "allreduce", "bcast", "reduce", "reduce_scatter"),
        "1,64,1KiB,16KiB,64KiB,1MiB",
    ),
    (("alltoallv", "barrier"), "1KiB,64KiB"),
)

#: No size may be slower than native by more than this share.
SLOWER_AT_MOST = 0.05

#: What the library may add to a call that goes native, on one rank and without data.
OVERHEAD_NS = 100


@dataclass(frozen=True)
class Goal:
    """What the project promises for one point on its benchmark cluster.

    Attributes:
        collective: which one.
        size: bytes, as it counts them.
        speedup: native over tuned at the least; of 1, that no difference can be told to its
            disadvantage: the intervals of the two medians are not apart.
        over_bound: tuned over the lower bound at the most, None where nothing is promised.
    """

    collective: str
    size: int
    speedup: float = 1
    over_bound: float | None = None

    def is_met(self, row: Any) -> bool:
        """Whether a row of ``stagegen bench`` keeps the promise."""
        together = row["tuned_interval_s"][0] <= row["native_interval_s"][1]
        fast = row["speedup"] >= self.speedup or (self.speedup == 1 and together)
        over = row["tuned_s"] / row["bound_s"]
        return fast and (self.over_bound is None or over <= self.over_bound)


GOALS = (
    Goal("alltoall", 32 * KIB, 1.8, 1.20),
    Goal("allgather", 64 * KIB, 3.5, 1.15),
    Goal("bcast", MIB, 4.0, 1.15),
    Goal("allreduce", MIB, 2.5, 1.20),
    Goal("reduce", MIB, over_bound=1.20),
    Goal("reduce_scatter", MIB),
    Goal("reduce_scatter_block", 64 * KIB),
    Goal("gather", 64 * KIB),
    Goal("scatter", 64 * KIB),
)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--topology", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--plot", help="write the picture of the README to this SVG file")
    parser.add_argument("--page", type=Path, help="write the table to this Markdown file")
    arguments = parser.parse_args()
    rows = [row for names, sizes in PLAN for row in measure(arguments, names, sizes)]
    rows.sort(key=lambda row: (row["collective"], row["size"]))
    print(table(rows))
    overheads = measure_overhead(arguments.library)
    if arguments.page:
        text = f"{HEAD}\n{table(rows)}\n\n{intercepting(overheads)}"
        arguments.page.write_text(text, encoding="utf-8")
    if arguments.plot:
        plot(rows, arguments.plot)
    verdicts = [judge(rows), judge_overhead(overheads)]
    return 0 if all(verdicts) else 1


def measure(arguments: argparse.Namespace, names: tuple[str, ...], sizes: str) -> list[Any]:
    """Return the rows of one ``stagegen bench``."""
    command = [sys.executable, "-m", "stagegen", "bench", "--format", "json"]
    command += ["--topology", arguments.topology, "--library", arguments.library]
    command += ["--collectives", ",".join(names), "--sizes", sizes]
    command += ["--repetitions", str(arguments.repetitions)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    rows: list[Any] = json.loads(output)["rows"]
    return rows


def measure_overhead(library: str) -> dict[str, float]:
    """Return the nanoseconds that intercepting a call costs, by collective."""
    command = ["make", "--silent", "-C", library, "overhead"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    _, *lines = (line.split() for line in result.stdout.splitlines())
    return {name: float(overhead) for name, _, _, overhead in lines}


#: What the page begins with.
HEAD = """# Benchmark

Every row that `make bench` compares on its cluster (`topologies/chain-4x4-cyclic.yaml`: 16 hosts on
a chain of four switches, ranks dealt to the switches in turn, 20 Mbit/s) in the lab; this page and
the picture of the README are made by it (`docs/bench.py`). The README says how it was measured, and
on what. Times are medians; bytes are counted as in [interfaces.md](interfaces.md); the bound is the
payload's time on the most loaded link.
"""


def table(rows: list[Any]) -> str:
    """Return a Markdown table, times in milliseconds."""
    lines = [
        "| collective | bytes | MPICH ms | libcoll ms | bound ms | speed-up | × bound | by |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        native, tuned, bound = row["native_s"], row["tuned_s"], row["bound_s"]
        least, over = (f"{1e3 * bound:.4g}", f"{tuned / bound:.2f}") if bound else ("–", "–")
        lines.append(
            f"| {row['collective']} | {row['size']} | {1e3 * native:.4g} | {1e3 * tuned:.4g} "
            f"| {least} | {row['speedup']:.2f} | {over} | {row['routine']} |"
        )
    return "\n".join(lines)


def intercepting(overheads: dict[str, float]) -> str:
    """Return the page's sentence on what intercepting a call costs."""
    worst = max(overheads, key=lambda name: overheads[name])
    return (
        "A call that goes native, on one rank and without data, takes at most "
        f"{overheads[worst]:.1f} ns more ({worst})\n"
        "than the direct call: `make overhead` in a generated folder.\n"
    )


#: Columns of the picture's panels.
COLUMNS = 4

LINES = (
    ("native_s", "o-", "#888888", "MPICH"),
    ("tuned_s", "o-", "#0060c0", "libcoll"),
    ("bound_s", ":", "#000000", "lower bound"),
)


def plot(rows: list[Any], path: str) -> None:
    """Draw times over sizes, one panel a collective; the last place is for the legend."""
    import matplotlib as mpl  # noqa: PLC0415 - only for the picture
    from matplotlib.figure import Figure  # noqa: PLC0415

    mpl.rcParams.update({"svg.hashsalt": "stagegen", "svg.fonttype": "none", "font.size": 9})
    names = sorted({row["collective"] for row in rows if row["size"] > 0})
    height = -(-(len(names) + 1) // COLUMNS)
    figure = Figure(figsize=(9.6, 2.3 * height), layout="constrained")
    panels = figure.subplots(height, COLUMNS, sharey=True, sharex=True, squeeze=False).flat
    for axes, name in zip(panels, names, strict=False):
        draw(axes, name, [row for row in rows if row["collective"] == name])
    figure.axes[0].set_ylim(1e-4, 2 * max(row["native_s"] for row in rows))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    for place, axes in enumerate(figure.axes[len(names) :]):
        axes.set_axis_off()
        if place == 0:
            axes.legend(handles, labels, loc="center", frameon=False)
    for axes in figure.axes[::COLUMNS]:
        axes.set_ylabel("time / s")
    for axes in figure.axes[len(names) - COLUMNS : len(names)]:
        axes.set_xlabel("message size / bytes")
        axes.tick_params(labelbottom=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def draw(axes: Any, name: str, rows: list[Any]) -> None:
    """Draw one panel; a collective without a bound has two lines."""
    for key, style, color, label in LINES:
        points = [(row["size"], row[key]) for row in rows if row[key]]
        if points:
            axes.plot(*zip(*points, strict=True), style, color=color, label=label, ms=3)
    axes.set(xscale="log", yscale="log", title=name)
    axes.set_xticks([1, 64, KIB, 16 * KIB, MIB], ["1", "64", "1 Ki", "16 Ki", "1 Mi"])
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.3)


def judge(rows: list[Any]) -> bool:
    """Print each goal beside what was measured; return whether all are met."""
    by_point = {(row["collective"], row["size"]): row for row in rows}
    print()
    verdicts = [_judge_goal(goal, by_point[goal.collective, goal.size]) for goal in GOALS]
    worst = min(rows, key=lambda row: row["speedup"])
    verdicts.append(worst["speedup"] >= 1 / (1 + SLOWER_AT_MOST))
    _say(
        verdicts[-1],
        f"never slower than native by more than {SLOWER_AT_MOST:.0%}: worst is "
        f"{worst['collective']} {worst['size']} B with {worst['speedup']:.3f}",
    )
    return all(verdicts)


def _judge_goal(goal: Goal, row: Any) -> bool:
    met = goal.is_met(row)
    text = f"{goal.collective} {goal.size} B: speed-up {row['speedup']:.2f} (goal {goal.speedup})"
    if goal.over_bound is not None:
        text += f", {row['tuned_s'] / row['bound_s']:.3f} × bound (goal {goal.over_bound})"
    _say(met, text)
    return met


def judge_overhead(overheads: dict[str, float]) -> bool:
    """Print the most that intercepting costs; return whether it is little enough."""
    worst = max(overheads, key=lambda name: overheads[name])
    met = overheads[worst] <= OVERHEAD_NS
    _say(
        met,
        f"an intercepted call that goes native, 1 rank, 0 B: {overheads[worst]:.1f} ns more "
        f"(goal {OVERHEAD_NS}), most in {worst}",
    )
    return met


def _say(met: bool, text: str) -> None:
    print(f"{'met   ' if met else 'MISSED'} {text}")


if __name__ == "__main__":
    sys.exit(main())
