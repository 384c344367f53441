"""``report.html``: one page with no scripts and nothing from outside, to read and to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jinja2

from stagegen import __version__
from stagegen.data import TEMPLATES
from stagegen.measure import statistics
from stagegen.measure.launch.base import Environment
from stagegen.measure.statistics import summarize
from stagegen.report.bounds import bound_or_none
from stagegen.report.plots import can_plot, time_plot
from stagegen.report.rows import report_rows
from stagegen.report.units import format_bytes, format_seconds
from stagegen.topology import Topology
from stagegen.tune.search import Outcome
from stagegen.tune.tuner import Tuned


def render_report(topology: Topology, tuned: Tuned, environments: Sequence[Environment]) -> str:
    """Return the page.

    Args:
        topology: the cluster.
        tuned: decision and samples.
        environments: of the sessions that measured.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES / "report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(seconds=format_seconds, bytes=format_bytes)
    distinct = list(dict.fromkeys(environments))
    scale = distinct[0].scale if distinct and tuned.decision.representative else None
    return environment.get_template("report.html.j2").render(
        version=__version__,
        topology=topology,
        decision=tuned.decision,
        environments=distinct,
        collectives=[_collective(topology, outcome, scale) for outcome in tuned.outcomes],
        can_plot=can_plot(),
        margin=statistics.MARGIN,
        significance=statistics.SIGNIFICANCE,
        confidence=statistics.CONFIDENCE,
    )


def _collective(topology: Topology, outcome: Outcome, scale: float | None) -> dict[str, Any]:
    rows = report_rows(topology, outcome, scale)
    return {
        "name": outcome.collective,
        "rows": rows,
        "bound": bound_or_none(topology, outcome.collective, 1),
        "plot": time_plot(outcome.collective, rows) if can_plot() else None,
        "tables": outcome.tables,
        "wrong": outcome.wrong,
        "failures": outcome.failures,
        "samples": [
            {
                "size": size,
                "candidates": sorted(
                    ((c, summarize(s.seconds), s.dropped) for c, s in samples.items()),
                    key=lambda entry: entry[1].median,
                ),
            }
            for size, samples in outcome.samples.items()
        ],
    }
