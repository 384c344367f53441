"""``report.html``: one page without scripts or outside resources, to read and to keep."""

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
from stagegen.tune.communicators import as_seen_by, find_communicators
from stagegen.tune.decision import CLUSTER, GROUP, HOSTS, ONE_HOST, OTHER, Table
from stagegen.tune.ranges import REACH
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
        collectives=[
            _collective(topology, tuned, name, scale)
            for name in dict.fromkeys(outcome.collective for outcome in tuned.outcomes)
        ],
        reach=REACH,
        can_plot=can_plot(),
        margin=statistics.MARGIN,
        significance=statistics.SIGNIFICANCE,
        confidence=statistics.CONFIDENCE,
    )


def _collective(
    topology: Topology, tuned: Tuned, collective: str, scale: float | None
) -> dict[str, Any]:
    return {
        "name": collective,
        "bound": bound_or_none(topology, collective, 1),
        "measured": [
            _measured(topology, outcome, scale)
            for outcome in tuned.outcomes
            if outcome.collective == collective
        ],
        "tables": [
            {"title": _title(table), "table": table}
            for table in tuned.decision.tables
            if table.collective == collective and table.ranks is not None
        ],
        "wrong": [check for check in tuned.wrong if check.collective == collective],
    }


_WHOSE = {ONE_HOST: "on one host", HOSTS: "on hosts of the cluster", OTHER: "on other hosts"}


def _title(table: Table) -> str:
    """Return a title that says which ranks a table serves."""
    if table.communicator == CLUSTER:
        return "All ranks of the cluster, in any order"
    if table.communicator.startswith(GROUP):
        return f"The ranks of the {table.communicator}, in any order"
    whose = _WHOSE[table.communicator]
    most = "or more" if table.ranks_to is None else f"to {table.ranks_to}"
    return f"{table.ranks_from} {most} ranks {whose}, from what was measured with {table.ranks}"


def _measured(topology: Topology, outcome: Outcome, scale: float | None) -> dict[str, Any]:
    """Return the values that the page shows for one communicator."""
    (communicator,) = find_communicators(topology, [outcome.communicator])
    rows = report_rows(as_seen_by(topology, communicator), outcome, scale)
    title = outcome.collective
    if communicator.group != 0:
        title += f" on {len(communicator.ranks)} ranks: {communicator.name}"
    return {
        "title": title,
        "ranks": communicator.ranks,
        "is_whole": communicator.group == 0,
        "rows": rows,
        "plot": time_plot(title, rows) if can_plot() else None,
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
