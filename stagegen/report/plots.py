"""Plots of a report as SVG text: the same bytes for the same data."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Sequence
from typing import Any

from stagegen.report.rows import ReportRow
from stagegen.report.units import format_bytes, format_seconds

#: Matplotlib salts the identifiers in an SVG file, at random by default.
SALT = "stagegen"
#: The sizes at an axis are powers of this, 1 B, 16 B, 256 B, 4 KiB, …, if it is long enough.
SIZE_STEP = 16
#: Otherwise the axis shows this many of the measured sizes.
LABELS = 6
#: An axis of times without two powers of ten has other round numbers, too.
FINER = (1, 2, 5)
#: Left, bottom, width and height of the axes in the figure; a layout that matplotlib finds takes
#: twice the time.
PLACE = (0.115, 0.13, 0.87, 0.79)
#: Titles stand on top of the axes. If matplotlib looks for a place, it takes a third of the time of
#: drawing.
TITLE = 1.0


def can_plot() -> bool:
    """Whether matplotlib (the extra ``report``) is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def time_plot(collective: str, rows: Sequence[ReportRow]) -> str:
    """Return a plot of time over size: native, tuned with its interval, lower bound."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.6))
        axes = figure.add_axes(PLACE)
        sizes = [row.size for row in rows]
        axes.plot(sizes, [row.native.median for row in rows], "o-", color="#888", label="native")
        axes.plot(sizes, [row.tuned.median for row in rows], "o-", color="#06c", label="tuned")
        axes.fill_between(
            sizes, [row.tuned.low for row in rows], [row.tuned.high for row in rows],
            color="#06c", alpha=0.2, linewidth=0,
        )  # fmt: skip
        bounds = [row.bound for row in rows if row.bound]
        if len(bounds) == len(rows):
            axes.plot(sizes, bounds, ":", color="#000", label="lower bound")
        scale = "log" if sizes[-1] > 0 else "linear"  # a barrier has no size
        axes.set(xscale=scale, yscale="log", xlabel="message size", ylabel="time")
        axes.set_title(as_text(collective), y=TITLE)
        _label(axes, sizes)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(frameon=False)
        return figure

    return drawn(draw)


def as_text(name: str) -> str:
    """Return a name as matplotlib draws it: it takes what is between dollars for a formula."""
    return name.replace("$", r"\$")


def drawn(draw: Callable[[], Any]) -> str:
    """Return the figure that a function draws, as the text of an SVG element."""
    import matplotlib as mpl  # noqa: PLC0415 - an optional dependency

    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": SALT, "svg.fonttype": "none", "font.size": 9}):
        figure = draw()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _label(axes: Any, sizes: Sequence[int]) -> None:
    """Give sizes and times with their units, which matplotlib draws faster than powers of ten."""
    if sizes[-1] >= SIZE_STEP**2 * sizes[0] > 0:
        axes.set_xscale("log", base=SIZE_STEP)
    else:
        axes.set_xticks(sizes[:: -(-len(sizes) // LABELS)])
    shortest, longest = axes.get_ylim()
    if longest < 100 * shortest:
        axes.yaxis.get_major_locator().set_params(subs=FINER)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda size, _: format_bytes(round(size)))
    axes.yaxis.set_major_formatter(lambda seconds, _: format_seconds(seconds))
