"""The picture of a pattern: a cell for each block, the darker the longer."""

from __future__ import annotations

from typing import Any

import numpy as np

from stagegen.patterns import Pattern
from stagegen.report.plots import as_text, drawn
from stagegen.report.units import format_bytes


def pattern_plot(pattern: Pattern) -> str:
    """Return the picture as the text of an SVG element; empty blocks are white.

    Needs matplotlib (:func:`stagegen.report.plots.can_plot`).
    """
    from matplotlib.colors import LogNorm  # noqa: PLC0415 - an optional dependency
    from matplotlib.figure import Figure  # noqa: PLC0415 - likewise

    sizes = np.ma.masked_equal(pattern.array, 0)

    def draw() -> Any:
        figure = Figure(figsize=(4.4, 3.6 if pattern.is_matrix else 1.4), layout="constrained")
        axes = figure.subplots()
        least, most = (int(sizes.min()), int(sizes.max())) if sizes.count() else (1, 1)
        norm = LogNorm(least, max(most, least + 1))
        image = axes.imshow(sizes, norm=norm, cmap="viridis_r", interpolation="nearest")
        axes.set(title=as_text(pattern.name), xlabel="to" if pattern.is_matrix else "rank")
        if pattern.is_matrix:
            axes.set_ylabel("from")
        else:
            axes.set_yticks([])
        bar = figure.colorbar(image, ax=axes)
        bar.ax.yaxis.set_major_formatter(lambda size, _: format_bytes(round(size)))
        bar.ax.minorticks_off()
        return figure

    return drawn(draw)
