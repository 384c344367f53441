"""The page of ``stagegen arrivals --html``: tables and plots of process arrival patterns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stagegen import __version__
from stagegen.recording.arrivals import CLASSES, Arrivals, SiteArrivals, class_shares
from stagegen.recording.messages import MessageTimes
from stagegen.recording.model import Array
from stagegen.report.html import page_template
from stagegen.report.plots import as_text, can_plot, drawn
from stagegen.report.units import format_bytes, format_seconds

#: Sites whose calls are plotted one by one, and sites in the plot of the distribution.
_SERIES, _BARS = 8, 12

#: Points of a series; of more calls, each point is the greatest of several.
_POINTS = 2000


def render_arrivals(arrivals: Arrivals, times: MessageTimes | None, name: str) -> str:
    """Return the page.

    Args:
        arrivals: the patterns.
        times: of messages, if they were measured.
        name: of the recording.
    """
    messages = () if times is None else tuple(zip(times.sizes, times.seconds, strict=True))
    has_factors = any(site.worst_factors is not None for site in arrivals.sites)
    return page_template("arrivals.html.j2").render(
        version=__version__,
        name=name,
        form=arrivals.to_json(),
        messages=messages,
        can_plot=can_plot(),
        distribution=_distribution(arrivals) if has_factors and can_plot() else None,
        series=list(_series(arrivals.sites)) if can_plot() else (),
    )


def _title(site: SiteArrivals) -> str:
    return f"{site.calls.collective} {site.calls.site} {format_bytes(site.calls.size)}"


def _series(sites: Sequence[SiteArrivals]) -> Iterator[dict[str, Any]]:
    """Yield the plots of sites with several calls (Faraj 2006, Fig. 4.15)."""
    several = [site for site in sites if len(site.calls.sequences) > 1]
    for site in several[:_SERIES]:
        spans = [f"{p.first}–{p.last}: {format_seconds(p.median)}" for p in site.phases]
        word = "One phase" if len(spans) == 1 else f"{len(spans)} phases"
        text = f"{word} (calls: median of the worst imbalance): {', '.join(spans)}"
        yield {"title": _title(site), "plot": _series_plot(site), "phases": text}


def _series_plot(site: SiteArrivals) -> str:
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency

    scale = 1.0 if site.message is None else site.message
    unit = "seconds" if site.message is None else "factor"

    def draw() -> Figure:
        figure = Figure(figsize=(8.0, 2.6), layout="constrained")
        axes = figure.subplots()
        for name, values, colour in (
            ("worst case", site.metrics.worst, "#c60"),
            ("average case", site.metrics.average, "#06c"),
        ):
            at, points = _thinned(values / scale)
            axes.plot(at, points, "-", color=colour, linewidth=0.8, label=name)
        for phase in site.phases[1:]:
            axes.axvline(phase.first, color="#000", linestyle=":", linewidth=0.8)
        axes.set(xlabel="call", ylabel=f"imbalance ({unit})", yscale="log")
        axes.legend(frameon=False)
        axes.grid(visible=True, alpha=0.3)
        return figure

    return drawn(draw)


def _thinned(values: Array) -> tuple[Array, Array]:
    step = max(1, -(-len(values) // _POINTS))
    at = np.arange(0, len(values), step)
    least = 1e-12  # a logarithmic axis has no 0
    return at, np.maximum(np.maximum.reduceat(values, at), least)


def _distribution(arrivals: Arrivals) -> str:
    """Return a bar for small and one for larger messages, then one for each site."""
    from matplotlib import colormaps  # noqa: PLC0415 - an optional dependency
    from matplotlib.figure import Figure  # noqa: PLC0415 - likewise

    bars: list[tuple[str, tuple[float, ...]]] = []
    for title, small in (("small messages", True), ("medium and large", False)):
        shares = arrivals.distribution(small)
        if shares is not None:
            bars.append((title, shares))
    for site in arrivals.sites[:_BARS]:
        if site.worst_factors is not None:
            bars.append((_title(site), class_shares(site.worst_factors)))

    def draw() -> Figure:
        figure = Figure(figsize=(8.0, 0.8 + 0.28 * len(bars)), layout="constrained")
        axes = figure.subplots()
        shades = colormaps["viridis"]
        names = [title for title, _ in bars][::-1]
        left = np.zeros(len(bars))
        before = 0.0
        for place, end in enumerate(CLASSES):
            widths = np.array([shares[place] for _, shares in bars])[::-1]
            label = f"≥ {before:g}" if math.isinf(end) else f"{before:g}–{end:g}"
            colour = shades(place / (len(CLASSES) - 1))
            axes.barh(range(len(bars)), widths, left=left, color=colour, label=label)
            left += widths
            before = end
        axes.set_yticks(range(len(bars)), map(as_text, names))
        axes.set(xlabel="share of the calls", xlim=(0, 1))
        figure.legend(loc="outside right upper", frameon=False, title="factor")
        return figure

    return drawn(draw)
