"""An alltoall as a space–time chart: ranks down, phases across, and the use of links below."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby
from math import ceil

from stagegen.report.pictures.canvas import Box, Canvas, counted, text_width
from stagegen.report.pictures.chart import GAP, GROUP_GAP, HEAD, LINK_ROW, Chart
from stagegen.report.pictures.colours import (
    ALARM,
    EMPTY,
    GROUPS,
    INK,
    LINE,
    SOFT,
    Colour,
    is_dark,
    scale,
    shade,
)
from stagegen.report.pictures.link_use import LinkUse
from stagegen.schedule import PhaseSchedule
from stagegen.topology import Topology


def phase_chart(topology: Topology, schedule: PhaseSchedule) -> Canvas:
    """Return the chart of an alltoall."""
    chart = Chart(topology, schedule)
    canvas = Canvas(chart.width, chart.height)
    _draw_ranks(canvas, chart)
    if schedule.phases:
        (_draw_messages if chart.window == 1 else _draw_busy)(canvas, chart)
        _draw_scale(canvas, chart)
        _draw_links(canvas, chart)
    gap = f"{schedule.gap:.1%}".replace(".0%", "%").replace("%", " %")
    canvas.title(
        f"Alltoall on {topology.name}: {counted(len(schedule.phases), 'phase')}, "
        f"lower bound {schedule.bound_phases}, gap {gap}",
        *_explanation(chart),
    )
    return canvas


def _explanation(chart: Chart) -> tuple[str, ...]:
    """Return two lines: what the chart shows, and a description of the schedule."""
    schedule = chart.schedule
    if not schedule.phases:
        return ("A single rank has nothing to send.",)
    if chart.window > 1:
        shown = (
            f"A column is {chart.window} phases: the darker, the more of them the rank sends in."
        )
    else:
        number = "number = receiver, " if chart.has_numbers else ""
        colour = "the receiver’s switch" if chart.by_group else "switches passed (more: lighter)"
        dummies = "; grey = dummy message" if any(schedule.dummies) else ""
        shown = f"A cell is a message: row = sender, {number}colour = {colour}{dummies}."
    limit = "a shared link" if _limit(chart) else "the ranks’ own links"
    sync = f"synchronisation: {schedule.sync.scheme}"
    return shown, f"Around root {schedule.root}; {sync}; the bottleneck: {limit}."


def _draw_ranks(canvas: Canvas, chart: Chart) -> None:
    """Write each rank's number and host, and its switch with the colour that receivers have."""
    x = chart.left - 0.08
    for number, (switch, ranks) in enumerate(chart.groups):
        top, bottom = chart.tops[ranks[0]], chart.tops[ranks[-1]] - chart.row
        colour = GROUPS[number] if chart.by_group else SOFT
        canvas.boxes(f"switch-{switch}", [(0.15, bottom, 0.07, top - bottom, colour)])
        middle = (top + bottom) / 2
        size = min(8.0, (top - bottom + GROUP_GAP) * 72 * 0.9)
        canvas.text(0.28, middle, switch, size, weight="bold", va="center_baseline")
        for rank in ranks:
            y = chart.tops[rank] - chart.row / 2
            canvas.text(x, y, str(rank), chart.letter, ha="right", va="center_baseline")
            host = chart.topology.ranks[rank]
            before = x - text_width("000", chart.letter) - 0.06
            canvas.text(before, y, host, chart.letter, ha="right", va="center_baseline", color=SOFT)
        canvas.boxes(f"row-{switch}", [(chart.left, bottom, chart.wide, top - bottom, EMPTY)])


def _message_colour(chart: Chart, source: int, destination: int) -> str | Colour:
    if chart.by_group:
        return GROUPS[chart.group_of[destination]]
    return scale(chart.topology.hops(source, destination), 0, chart.hops_most)


def _draw_messages(canvas: Canvas, chart: Chart) -> None:
    """Draw one cell for each message."""
    cells, numbers = [], chart.has_numbers
    edge = min(0.012, chart.column * 0.12)
    for phase, messages in enumerate(chart.schedule.phases):
        for source, destination in messages:
            x, y = chart.left + phase * chart.column, chart.tops[source] - chart.row
            colour = _message_colour(chart, source, destination)
            size = (chart.column - 2 * edge, chart.row - 2 * edge)
            cells.append((x + edge, y + edge, *size, colour))
            if numbers:
                ink = "white" if is_dark(colour) else INK
                canvas.text(
                    x + chart.column / 2,
                    y + chart.row / 2,
                    str(destination),
                    min(6.5, chart.letter),
                    color=ink,
                    ha="center",
                    va="center_baseline",
                )
    canvas.boxes("dummies", list(_dummies(chart)))
    canvas.boxes("messages", cells)


def _dummies(chart: Chart) -> Iterator[Box]:
    for phase, messages in enumerate(chart.schedule.dummies):
        for source, _ in messages:
            x, y = chart.left + phase * chart.column, chart.tops[source] - chart.row
            yield x, y + 0.3 * chart.row, chart.column, 0.4 * chart.row, LINE


def _draw_busy(canvas: Canvas, chart: Chart) -> None:
    """Draw for each rank and column in how many of the phases it sends."""
    busy = {rank: [0] * chart.columns for rank in range(chart.topology.rank_count)}
    for phase, messages in enumerate(chart.schedule.phases):
        for source, _ in messages:
            busy[source][phase // chart.window] += 1
    for _, ranks in chart.groups:
        rows = [[shade(count / chart.window) for count in busy[rank]] for rank in ranks]
        bottom = chart.tops[ranks[-1]] - chart.row
        canvas.raster(chart.left, bottom, chart.wide, chart.row * len(ranks), rows)


def _draw_scale(canvas: Canvas, chart: Chart) -> None:
    """Number the phases."""
    y = chart.height - HEAD - chart.upper
    count = len(chart.schedule.phases)
    per_phase = chart.column / chart.window
    step = next(s for s in _nice_steps() if s * per_phase >= 0.3)
    for phase in range(0, count, step):
        x = chart.left + (phase + 0.5) * per_phase
        canvas.text(x, y - 0.15, str(phase), 7, ha="center", color=SOFT)
    canvas.text(chart.left + chart.wide + 0.1, y - 0.15, "phase", 7.5, color=SOFT)


def _nice_steps() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50 and so on."""
    unit = 1
    while True:
        yield from (unit, 2 * unit, 5 * unit)
        unit *= 10


def _draw_links(canvas: Canvas, chart: Chart) -> None:
    """Draw how much of its capacity each link that ranks share uses in each phase."""
    if not chart.links:
        return
    y = chart.height - HEAD - chart.upper - GAP
    shown, count = len(chart.links), len(chart.shared_links)
    more = f" (the {shown} most loaded of {count})" if shown < count else ""
    heading = f"Use of each direction of the links that ranks share{more}"
    canvas.text(0.15, y, heading, 8, weight="bold")
    canvas.text(chart.left + chart.wide + 0.1, y, "load / capacity", 7.5, color=SOFT)
    limit = _limit(chart)
    for number, use in enumerate(chart.links):
        bottom = y - 0.1 - LINK_ROW * (number + 1)
        _label_link(canvas, chart, use, bottom + LINK_ROW / 2, use.fraction == limit)
        canvas.boxes(f"link-{use.label}", list(_shades(chart, use, bottom)))


def _limit(chart: Chart) -> Fraction | None:
    """Return load / capacity of the bottleneck; None where ranks' own links limit more."""
    worst = max((use.fraction for use in chart.links), default=Fraction(0))
    return worst if ceil(worst) == chart.schedule.bound_phases else None


def _label_link(canvas: Canvas, chart: Chart, use: LinkUse, y: float, limits: bool) -> None:
    colour, weight = (ALARM, "bold") if limits else (INK, "normal")
    load = f"{use.load} / {float(use.capacity):g}" + ("  bottleneck" if limits else "")
    for x, text, side in (
        (chart.left - 0.08, use.label, "right"),
        (chart.left + chart.wide + 0.1, load, "left"),
    ):
        canvas.text(x, y, text, 7.5, ha=side, va="center_baseline", color=colour, weight=weight)


def _shades(chart: Chart, use: LinkUse, bottom: float) -> Iterator[Box]:
    """Yield one rectangle for each run of columns in which the link is used equally."""
    column = 0
    for share, alike in groupby(use.shares(chart.window)):
        count = len(list(alike))
        x = chart.left + column * chart.column
        yield x, bottom + 0.012, count * chart.column, LINK_ROW - 0.024, shade(share)
        column += count
