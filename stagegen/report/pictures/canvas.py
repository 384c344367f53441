"""A sheet of paper measured in inches, on Matplotlib: the same bytes for the same drawing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stagegen.errors import StagegenError
from stagegen.report.pictures.colours import INK, SOFT
from stagegen.report.plots import SALT, can_plot

PNG_DPI = 150
Box = tuple[float, float, float, float, Any]
"""x, y, width, height and colour of a rectangle."""
LETTER = 0.62
"""The mean width of a letter as a part of the font size, rounded up."""


def text_width(text: str, points: float) -> float:
    """Return the approximate width of a text, in inches."""
    return len(text) * points * LETTER / 72


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 rank` or `3 ranks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _matplotlib() -> Any:
    """Return the module.

    Raises:
        StagegenError: it is not installed.
    """
    if not can_plot():
        raise StagegenError("pictures need Matplotlib: pip install 'stagegen[report]'")
    import matplotlib as mpl  # noqa: PLC0415 - an optional dependency

    return mpl


@dataclass
class Canvas:
    """A drawing; all lengths are in inches, from the lower left corner.

    Attributes:
        width: of the sheet.
        height: of the sheet.
    """

    width: float
    height: float
    _figure: Any = field(init=False, repr=False)
    _axes: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _matplotlib()
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency

        self._figure = Figure(figsize=(self.width, self.height), facecolor="white")
        self._axes = self._figure.add_axes((0, 0, 1, 1))
        self._axes.set(xlim=(0, self.width), ylim=(0, self.height))
        self._axes.axis("off")

    def text(self, x: float, y: float, text: str, size: float = 8, **style: Any) -> None:
        """Write a text; left and on the baseline unless `ha` and `va` say otherwise."""
        style = {"color": INK, "ha": "left", "va": "baseline", **style}
        # "$" would begin mathematics.
        self._axes.text(x, y, text.replace("$", r"\$"), fontsize=size, **style)

    def title(self, title: str, *lines: str) -> None:
        """Write title and further lines at the top."""
        self.text(0.15, self.height - 0.3, title, 11, weight="bold")
        for number, line in enumerate(lines):
            self.text(0.15, self.height - 0.5 - 0.16 * number, line, 8, color=SOFT)

    def line(self, xs: Sequence[float], ys: Sequence[float], **style: Any) -> None:
        """Draw a line through points."""
        style = {"color": INK, "linewidth": 1.0, "solid_capstyle": "round", **style}
        self._axes.plot(xs, ys, **style)

    def boxes(self, gid: str, boxes: Sequence[Box]) -> None:
        """Fill rectangles, as one group of the drawing."""
        if not boxes:
            return
        from matplotlib.collections import PolyCollection  # noqa: PLC0415 - an optional dependency

        corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h, _ in boxes]
        colours = [colour for *_, colour in boxes]
        self._axes.add_collection(
            PolyCollection(corners, facecolors=colours, linewidths=0, gid=gid)
        )

    def raster(self, x: float, y: float, width: float, height: float, rows: Any) -> None:
        """Fill a rectangle with equal cells; `rows` are rows of RGB colours, the top one first."""
        extent = (x, x + width, y, y + height)
        self._axes.imshow(rows, extent=extent, aspect="auto", interpolation="nearest", zorder=1)

    def circle(self, x: float, y: float, radius: float, colour: Any, **style: Any) -> None:
        """Draw a filled circle."""
        from matplotlib.patches import Circle  # noqa: PLC0415 - an optional dependency

        self._axes.add_patch(Circle((x, y), radius, facecolor=colour, zorder=4, **style))

    def arc(
        self, start: tuple[float, float], end: tuple[float, float], depth: float, **style: Any
    ) -> None:
        """Draw an arrow that hangs down by `depth` below both of its ends."""
        from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415 - an optional dependency
        from matplotlib.path import Path  # noqa: PLC0415 - an optional dependency

        low = min(start[1], end[1]) - depth * 4 / 3  # a cubic curve reaches 3/4 of it
        points = [start, (start[0], low), (end[0], low), end]
        codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
        style = {"arrowstyle": "-|>", "mutation_scale": 7, "linewidth": 1.2, **style}
        self._axes.add_patch(FancyArrowPatch(path=Path(points, codes), zorder=3, **style))

    def save(self, output_format: str) -> bytes:
        """Return the file: `svg` or `png`."""
        style = {"svg.hashsalt": SALT, "svg.fonttype": "none", "font.family": "DejaVu Sans"}
        stream = io.BytesIO()
        with _matplotlib().rc_context(style):
            metadata = {"Date": None, "Creator": None} if output_format == "svg" else {}
            self._figure.savefig(stream, format=output_format, dpi=PNG_DPI, metadata=metadata)
        return stream.getvalue()
