"""The README's picture: times over sizes on the fixed cluster, one panel a collective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from docs.tools.bench.plan import KIB, MIB
from docs.tools.bench.results import Result
from docs.tools.bench.rows import Row

#: Columns of panels.
COLUMNS = 4

#: Lines of the congestion controls, in their order.
STYLES = ("o-", "o--")

#: What a panel shows of each congestion control: seconds, colour and name.
LINES: tuple[tuple[Callable[[Row], float], str, str], ...] = (
    (lambda row: row.native.median, "#888888", "MPICH"),
    (lambda row: row.tuned.median, "#0060c0", "libcoll"),
)


def plot(results: Sequence[Result], path: str) -> None:
    """Draw the results of one cluster, one for each congestion control, into an SVG file.

    The last place is for the legend.
    """
    import matplotlib as mpl  # noqa: PLC0415 - only for the picture
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency

    mpl.rcParams.update({"svg.hashsalt": "stagegen", "svg.fonttype": "none", "font.size": 9})
    rows = [row for result in results for row in result.rows]
    names = sorted({row.collective for row in rows if row.size > 0})
    height = -(-(len(names) + 1) // COLUMNS)
    figure = Figure(figsize=(9.6, 2.3 * height), layout="constrained")
    panels = figure.subplots(height, COLUMNS, sharey=True, sharex=True, squeeze=False).flat
    for axes, name in zip(panels, names, strict=False):
        draw(axes, name, results)
    figure.axes[0].set_ylim(1e-4, 2 * max(row.native.median for row in rows))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    for place, axes in enumerate(figure.axes[len(names) :]):
        axes.set_axis_off()
        if place == 0:
            axes.legend(handles, labels, loc="center", frameon=False)
    for axes in figure.axes[::COLUMNS]:
        axes.set_ylabel("time / s")
    for axes in figure.axes[max(0, len(names) - COLUMNS) : len(names)]:
        axes.set_xlabel("message size / bytes")
        axes.tick_params(labelbottom=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def draw(axes: Any, name: str, results: Sequence[Result]) -> None:
    """Draw one panel; a collective without a bound has no line of it."""
    bounds: dict[int, float] = {}
    for result, style in zip(results, STYLES, strict=False):
        rows = [row for row in result.rows if row.collective == name]
        bounds.update({row.size: row.bound for row in rows if row.bound})
        for seconds, color, library in LINES:
            points = [(row.size, seconds(row)) for row in rows]
            label = f"{library}, {result.congestion}"
            if points:
                axes.plot(*zip(*points, strict=True), style, color=color, label=label, ms=3)
    if bounds:
        axes.plot(*zip(*sorted(bounds.items()), strict=True), "k:", label="lower bound", ms=3)
    axes.set(xscale="log", yscale="log", title=name)
    axes.set_xticks([1, 64, KIB, 16 * KIB, MIB], ["1", "64", "1 Ki", "16 Ki", "1 Mi"])
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.3)
