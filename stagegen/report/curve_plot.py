"""The plot of all curves of a collective: a panel for each parameter, a line for each size."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import ceil
from typing import Any

from stagegen.report.curves import Curves
from stagegen.report.plots import TITLE, drawn
from stagegen.report.units import format_bytes

COLUMNS = 3
#: Inches of a panel with its labels, of these, and of the legend beside all panels. With fixed
#: margins, matplotlib draws twice as fast as with a layout that it finds.
WIDTH, HEIGHT = 2.9, 2.0
LEFT, RIGHT, BOTTOM, TOP = 0.55, 0.1, 0.3, 0.3
LEGEND, LEGEND_LINE = 1.1, 0.19
#: Above this many times the least time, a curve leaves its panel: what is far off is not compared.
MOST = 4.0
_LABELS = 6


def curve_plot(panels: Sequence[Curves], in_bytes: Container[str]) -> str:
    """Return a plot of the times over the values, each relative to the least at its size.

    Args:
        panels: what to plot, at least one.
        in_bytes: names of the parameters that are numbers of bytes.
    """
    from matplotlib import colormaps  # noqa: PLC0415 - an optional dependency
    from matplotlib.figure import Figure  # noqa: PLC0415 - likewise
    from matplotlib.lines import Line2D  # noqa: PLC0415 - likewise

    sizes = sorted({curve.size for panel in panels for curve in panel.by_size})
    shades = colormaps["viridis"]
    colours = {size: shades(0.9 * i / max(1, len(sizes) - 1)) for i, size in enumerate(sizes)}
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)

    def draw() -> Figure:
        across, down = WIDTH * columns + LEGEND, HEIGHT * max(rows, _rows_of_legend(len(sizes)))
        figure = Figure(figsize=(across, down))
        for place, curves in enumerate(panels):
            row, column = divmod(place, columns)
            corner = WIDTH * column + LEFT, down - HEIGHT * (row + 1) + BOTTOM
            extent = WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM - TOP
            inches = zip((*corner, *extent), (across, down, across, down), strict=True)
            left, bottom, width, height = (own / whole for own, whole in inches)
            axes = figure.add_axes((left, bottom, width, height))
            _panel(axes, curves, colours, curves.parameter in in_bytes)
        handles = [Line2D([], [], color=colours[n], label=format_bytes(n)) for n in sizes]
        figure.legend(handles=handles, loc="upper right", frameon=False)
        return figure

    return drawn(draw)


def _rows_of_legend(entries: int) -> int:
    """Return how many rows of panels are as high as a legend."""
    return ceil(entries * LEGEND_LINE / HEIGHT)


def _panel(axes: Any, curves: Curves, colours: Mapping[int, Any], in_bytes: bool) -> None:
    for curve in curves.by_size:
        values = [value for value, _ in curve.points]
        axes.plot(values, curve.relative, "-", color=colours[curve.size], linewidth=1)
        axes.plot([curve.best[0]], [1.0], "o", color=colours[curve.size], markersize=4)
    every = sorted({value for curve in curves.by_size for value, _ in curve.points})
    axes.set_title(curves.title, fontsize=8, y=TITLE)
    axes.set_xscale("log" if every[0] > 0 else "symlog", base=2)
    axes.set_xticks(every[:: -(-len(every) // _LABELS)])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda v, _: _value(round(v), in_bytes))
    axes.tick_params(labelsize=7)
    highest = max(max(curve.relative) for curve in curves.by_size)
    axes.set_ylim(0.97, min(MOST, max(1.1, 1.03 * highest)))
    axes.set_ylabel("× the best", fontsize=7)
    axes.grid(visible=True, alpha=0.3)


def _value(value: int, in_bytes: bool) -> str:
    return format_bytes(value) if in_bytes else str(value)
