"""The page of ``stagegen adapt report --html``: what was tried and chosen, with plots."""

from __future__ import annotations

from typing import Any

from stagegen import __version__
from stagegen.adaptive.learned import Learned, Situation
from stagegen.report.html import page_template
from stagegen.report.plots import can_plot, drawn

#: Situations that are plotted: those with the most calls.
_PLOTS = 12


def render_learned(learned: Learned) -> str:
    """Return the page of a learned file."""
    busiest = sorted(learned.situations, key=lambda one: -one.calls)[:_PLOTS]
    plots = {id(one): _plot(one) for one in busiest if can_plot() and one.medians}
    return page_template("adaptive.html.j2").render(
        version=__version__,
        form=learned.to_json(),
        can_plot=can_plot(),
        plots=[plots.get(id(one)) for one in learned.situations],
        titles=[one.title for one in learned.situations],
    )


def _plot(one: Situation) -> str:
    """Return the times of the kept calls in their order, a colour for each candidate."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency

    def draw() -> Any:
        figure = Figure(figsize=(8, 3))
        axes = figure.add_axes((0.09, 0.17, 0.89, 0.75))
        points: dict[int, tuple[list[int], list[float]]] = {}
        call = 0
        for stage in one.stages:
            xs, ys = points.setdefault(stage.candidate, ([], []))
            xs += range(call, call + len(stage.mean_s))
            ys += [1000 * time for time in stage.mean_s]
            call += stage.calls
        for candidate, (xs, ys) in points.items():
            axes.plot(xs, ys, ".", markersize=3, label=one.candidates[candidate].spec)
        axes.set_xlabel("call, stages that were left out not counted")
        axes.set_ylabel("ms")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7, loc="upper right")
        return figure

    return drawn(draw)
