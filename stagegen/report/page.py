"""``report.html``: one page without scripts or outside resources, to read and to keep."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from stagegen import __version__
from stagegen.catalogue import Catalogue, Collective
from stagegen.measure import statistics
from stagegen.measure.launch.base import Environment
from stagegen.measure.records import Measurement
from stagegen.measure.statistics import summarize
from stagegen.patterns import Pattern
from stagegen.report.curve_plot import curve_plot
from stagegen.report.curves import curves_of
from stagegen.report.html import page_template
from stagegen.report.plots import can_plot, time_plot
from stagegen.report.rows import report_rows
from stagegen.topology import Topology
from stagegen.tune.bounds import bound_or_none
from stagegen.tune.communicators import PATTERN, as_seen_by, find_communicators
from stagegen.tune.decision import CLUSTER, GENERIC, GROUP, HOSTS, ONE_HOST, OTHER, Table
from stagegen.tune.ranges import REACH
from stagegen.tune.search import Outcome
from stagegen.tune.shapes import Range
from stagegen.tune.tuner import Tuned


def render_report(
    topology: Topology,
    catalogue: Catalogue,
    tuned: Tuned,
    environments: Sequence[Environment],
    measurements: Iterable[Measurement] = (),
) -> str:
    """Return the page.

    Args:
        topology: the cluster.
        catalogue: describes the collectives.
        tuned: decision and samples.
        environments: of the sessions that measured.
        measurements: of the log, for the curves of parameters.
    """
    recorded = tuple(measurements)
    distinct = list(dict.fromkeys(environments))
    scale = distinct[0].scale if distinct and tuned.decision.representative else None
    return page_template("report.html.j2").render(
        version=__version__,
        topology=topology,
        decision=tuned.decision,
        environments=distinct,
        collectives=[
            _collective(topology, tuned, catalogue, name, scale, recorded)
            for name in dict.fromkeys(outcome.collective for outcome in tuned.outcomes)
        ],
        reach=REACH,
        can_plot=can_plot(),
        significance=statistics.SIGNIFICANCE,
        confidence=statistics.CONFIDENCE,
    )


def _collective(
    topology: Topology,
    tuned: Tuned,
    catalogue: Catalogue,
    name: str,
    scale: float | None,
    recorded: Sequence[Measurement],
) -> dict[str, Any]:
    collective = catalogue.collective(name)
    in_bytes = frozenset(p.name for p in catalogue.parameters if p.in_bytes)
    return {
        "name": collective.name,
        "bound": bound_or_none(topology, collective, 1),
        "measured": [
            {
                **_measured(topology, collective, outcome, scale, tuned.decision.patterns),
                **_curves(outcome, recorded, in_bytes),
            }
            for outcome in tuned.outcomes
            if outcome.collective == collective.name
        ],
        "tables": [
            {"title": title, "table": table}
            for title, table in _titled(
                [one for one in tuned.decision.tables if one.collective == collective.name]
            )
        ],
        "wrong": [check for check in tuned.wrong if check.collective == collective.name],
    }


_WHOSE = {ONE_HOST: "host, of the cluster or not", HOSTS: "hosts", OTHER: "other hosts"}


def _titled(tables: Sequence[Table]) -> Iterator[tuple[str, Table]]:
    """Yield the tables of a collective that the page shows, each with its title.

    The rules of a measured shape that also serve shapes nearby are told with these, once.
    """
    rules = {
        confirmed: {(t.communicator, t.shape): t.rules for t in tables if t.confirmed == confirmed}
        for confirmed in (False, True)
    }
    for table in tables:
        key = (table.communicator, table.shape)
        is_for_all = rules[False].get(key) == rules[True].get(key)
        if table.communicator not in GENERIC or not (table.confirmed and is_for_all):
            yield _title(table, is_for_all=is_for_all), table


def _title(table: Table, *, is_for_all: bool) -> str:
    """Return a title that says which ranks a table serves, and what of it was measured.

    Args:
        table: one of the decision.
        is_for_all: whether the measured shape and those nearby have the same rules.
    """
    if table.communicator == CLUSTER:
        return "All ranks of the cluster, in any order"
    if table.communicator.startswith(GROUP):
        return f"The ranks of the {table.communicator}, in any order"
    if table.communicator.startswith(PATTERN):
        return f"Calls of the {table.communicator}, by the mean bytes of a block"
    on = f"{_numbers(table.hosts)} {_WHOSE[table.communicator]}"
    if table.confirmed:
        known = "measured"
    elif table.communicator == OTHER:
        known = f"predicted from {table.shape} on the cluster, not confirmed"
    elif is_for_all:
        known = f"measured with {table.shape}, else predicted and not confirmed"
    else:
        known = f"predicted from {table.shape}, not confirmed"
    return f"{_numbers(table.ranks_per_host)} ranks on each of {on}: {known}"


def _numbers(range_: Range) -> str:
    if range_.last is None:
        return f"{range_.first} or more"
    return f"{range_.first} to {range_.last}" if range_.first < range_.last else str(range_.first)


def _curves(
    outcome: Outcome, recorded: Sequence[Measurement], in_bytes: Container[str]
) -> dict[str, Any]:
    """Return the values that the page shows of the parameters on one communicator."""
    curves = curves_of(recorded, outcome.collective, outcome.communicator, outcome.samples)
    plot = curve_plot(curves, in_bytes) if curves and can_plot() else None
    return {"curves": curves, "curve_plot": plot}


def _measured(
    topology: Topology,
    collective: Collective,
    outcome: Outcome,
    scale: float | None,
    patterns: Sequence[Pattern],
) -> dict[str, Any]:
    """Return the values that the page shows for one communicator."""
    (communicator,) = find_communicators(topology, [outcome.communicator], patterns)
    seen = as_seen_by(topology, communicator)
    rows = report_rows(seen, collective, outcome, scale, communicator.pattern)
    title = outcome.collective
    if communicator.pattern is not None:
        title += f" of the {communicator.name}, by the mean bytes of a block"
    elif communicator.group != 0:
        title += f" on {len(communicator.ranks)} ranks: {communicator.name}"
    return {
        "title": title,
        "width": outcome.width,
        "ranks": communicator.ranks,
        "is_whole": communicator.group == 0 and communicator.pattern is None,
        "rows": rows,
        "plot": time_plot(title, rows) if rows and can_plot() else None,
        "failures": outcome.failures,
        "samples": [
            {
                "size": size,
                "candidates": sorted(
                    (
                        (c, summarize(s.seconds), s.dropped, s.is_known(outcome.width))
                        for c, s in samples.items()
                    ),
                    key=lambda entry: entry[1].median,
                ),
            }
            for size, samples in outcome.samples.items()
        ],
    }
