"""The page of ``stagegen inspect --html``: tables, time maps and time lines as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from stagegen import __version__
from stagegen.inspection.findings import RankStages
from stagegen.inspection.look import Look
from stagegen.inspection.parts import typical_parts
from stagegen.inspection.timeline import OUTSIDE, messages_of
from stagegen.report.html import page_template
from stagegen.report.pictures.colours import ALARM, EMPTY, GROUPS, INK, LINE, SOFT
from stagegen.report.units import format_bytes, format_seconds

_WIDTH, _LEFT, _RIGHT = 960.0, 118.0, 20.0
#: Rows of links and of ranks in a time line; rows of tables of nodes and phases.
_LINKS, _RANKS, _NODES = 40, 128, 24


#: Times and heights, 0 to 1; of a time map, times are from entering the core on.
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class RankLine:
    """The line of a rank in a time map.

    Attributes:
        rank: the rank.
        seconds: of a call, without arrival waits.
        points: of :meth:`RankStages.timemap`.
    """

    rank: int
    seconds: float
    points: Points

    @classmethod
    def of(cls, one: RankStages) -> RankLine:
        """Return the line of a rank's stages."""
        return cls(one.rank, one.total(waits=False), one.timemap())


@dataclass(frozen=True)
class Lines:
    """One or two lines of the same colour, with a label; the second one is dashed."""

    label: str
    solid: Points
    dashed: Points = ()


def render_inspection(looks: Sequence[Look]) -> str:
    """Return the page; the time maps of all series come first, side by side."""
    with_tree = [look for look in looks if look.tree is not None]
    lines = [
        [] if look.tree is None else [*map(RankLine.of, look.tree.by_total)] for look in with_tree
    ]
    common = extent_of(one.points for own in lines for one in own)
    return page_template("inspection.html.j2").render(
        version=__version__,
        looks=looks,
        titles=[_title(look) for look in looks],
        maps=[
            (_title(look), timemap(own, look.series.hosts, common))
            for look, own in zip(with_tree, lines, strict=True)
        ],
        ends=(
            ends_map([_ends(look, own) for look, own in zip(with_tree, lines, strict=True)], common)
            if len(with_tree) > 1
            else None
        ),
        lines=[timeline(look) for look in looks],
        typical=typical_parts,
        rows=_NODES,
        mean=_mean,
    )


def _title(look: Look) -> str:
    series = look.series
    return f"{look.name}: {series.routine}, {format_bytes(series.size)}"


def _mean(values: Iterable[float]) -> str:
    found = list(values)
    return format_seconds(sum(found) / len(found)) if found else "–"


def _ends(look: Look, lines: Sequence[RankLine]) -> Lines:
    """Return the slowest and the fastest rank of a series."""
    fast, slow = lines[0], lines[-1]
    label = (
        f"{_title(look)}: slowest rank {slow.rank}, {format_seconds(slow.seconds)}; "
        f"fastest (dashed) rank {fast.rank}, {format_seconds(fast.seconds)}"
    )
    return Lines(label, slow.points, fast.points)


def extent_of(lines: Iterable[Points]) -> tuple[float, float]:
    """Return the first and the last time of lines."""
    times = [x for points in lines for x, _ in points]
    return min(times, default=0.0), max(times, default=0.0)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers in a range: 1, 2 or 5 times a power of ten apart, four to nine."""
    span = high - low
    if span <= 0:
        return [low]
    step = 10.0**-9
    factors = (2.0, 2.5, 2.0)
    at = 0
    while span / step > 9:
        step *= factors[at % 3]
        at += 1
    first = -(-low // step)
    return [(first + i) * step for i in range(int((high - first * step) / step) + 1)]


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = INK) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(text)}</text>"


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" font-size="11">'
        f"<title>{escape(title)}</title>\n{body}\n</svg>"
    )


class _Axis:
    """Times from left to right."""

    def __init__(self, low: float, high: float, width: float):
        self.low, self.high = low, high if high > low else low + 1e-9
        self.width = width

    def x(self, at: float) -> float:
        """Return where a time is."""
        share = (at - self.low) / (self.high - self.low)
        return _LEFT + share * (self.width - _LEFT - _RIGHT)

    def drawn(self, top: float, bottom: float) -> list[str]:
        """Return lines and numbers of the times."""
        parts = []
        for at in _ticks(self.low, self.high):
            x = self.x(at)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" '
                f'stroke="{LINE}"/>'
            )
            label = "0" if abs(at) < 1e-12 else format_seconds(at)
            parts.append(_text(x, bottom + 14, label, "middle", SOFT))
        return parts


def timemap(
    lines: Sequence[RankLine],
    hosts: Sequence[str],
    extent: tuple[float, float],
    title: str = "time map",
) -> str:
    """Return the mean time of each rank at each stage, without arrival waits (Figs. 12, 19, 20).

    Args:
        lines: the ranks, the fastest first.
        hosts: of all ranks, for the colours.
        extent: first and last time of the picture, seconds from entering the core on.
        title: of the picture.
    """
    width, height, top, bottom = _WIDTH / 2 + 40, 300.0, 22.0, 256.0
    axis = _Axis(*extent, width)
    names = list(dict.fromkeys(hosts))
    parts = axis.drawn(top, bottom)
    parts.append(_text(_LEFT - 8, top + 4, "core", "end", SOFT))
    parts.append(_text(_LEFT - 8, bottom, "rank", "end", SOFT))
    parts.append(_text(axis.x(0) - 4, top - 8, "down", "end", SOFT))
    parts.append(_text(axis.x(0) + 4, top - 8, "up", "start", SOFT))
    for one in lines:
        colour = GROUPS[names.index(hosts[one.rank]) % len(GROUPS)]
        told = f"rank {one.rank} on {hosts[one.rank]}: {format_seconds(one.seconds)}"
        parts.append(
            f'<polyline points="{_places(axis, one.points, top, bottom)}" fill="none" '
            f'stroke="{colour}" stroke-width="1.2" stroke-opacity="0.8">'
            f"<title>{escape(told)}</title></polyline>"
        )
    x = _LEFT
    for number, name in enumerate(names[:8]):
        parts.append(
            f'<rect x="{x:.1f}" y="{height - 18:.1f}" width="10" height="10" '
            f'fill="{GROUPS[number % len(GROUPS)]}"/>'
        )
        parts.append(_text(x + 14, height - 9, name, "start", SOFT))
        x += 26 + 7 * len(name)
    return _svg(width, height, title, parts)


def _places(axis: _Axis, points: Points, top: float, bottom: float) -> str:
    """Return where points are; height 0 is at the bottom."""
    return " ".join(f"{axis.x(x):.1f},{bottom - y * (bottom - top):.1f}" for x, y in points)


def ends_map(
    shown: Sequence[Lines],
    extent: tuple[float, float],
    title: str = "the slowest and the fastest rank",
    heights: tuple[str, str] = ("rank", "core"),
) -> str:
    """Return lines of several series in one picture, with a legend (Figs. 13, 14).

    Args:
        shown: the lines.
        extent: first and last time of the picture, in seconds.
        title: of the picture.
        heights: what is at heights 0 and 1.
    """
    height, top, bottom = 320.0 + 16 * len(shown), 12.0, 270.0
    axis = _Axis(*extent, _WIDTH)
    parts = axis.drawn(top, bottom)
    parts.append(_text(_LEFT - 8, bottom, heights[0], "end", SOFT))
    parts.append(_text(_LEFT - 8, top + 4, heights[1], "end", SOFT))
    for number, one in enumerate(shown):
        colour = GROUPS[number % len(GROUPS)]
        for points, dash in ((one.dashed, "5 4"), (one.solid, "none")):
            if points:
                parts.append(
                    f'<polyline points="{_places(axis, points, top, bottom)}" fill="none" '
                    f'stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"/>'
                )
        y = bottom + 34 + 16 * number
        parts.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + 24}" y1="{y - 4:.1f}" y2="{y - 4:.1f}" '
            f'stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(_text(_LEFT + 32, y, one.label))
    return _svg(_WIDTH, height, title, parts)


def timeline(look: Look) -> str:
    """Return the call of median length: a row for each rank and link; idle time is marked."""
    steps = look.steps
    if steps is None:
        return ""
    call = look.series.call(steps.shown)
    messages = messages_of(call)
    ranks = range(min(len(call.begun), _RANKS))
    row = 16.0 if len(ranks) <= 40 else 9.0
    zero = max(call.begun)
    axis = _Axis(min(call.begun) - zero, max(call.ended) - zero, _WIDTH)
    links = look.links[:_LINKS]
    lower = 26.0 + 12 * len(links) if links else 0.0
    top = 8.0
    bottom = top + row * len(ranks)
    height = bottom + lower + 30
    parts = axis.drawn(top, bottom + lower)
    for rank in ranks:
        y = top + row * rank
        x, end = axis.x(call.begun[rank] - zero), axis.x(call.ended[rank] - zero)
        name = f"{rank} {look.series.hosts[rank]}"
        parts.append(_text(_LEFT - 8, y + row - 4, name, "end", SOFT))
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 1:.1f}" width="{max(end - x, 0.5):.1f}" '
            f'height="{row - 2:.1f}" fill="{ALARM}" fill-opacity="0.25">'
            f"<title>rank {rank}: idle where nothing covers this</title></rect>"
        )
    for one in messages:
        start, end = axis.x(one.start - zero), axis.x(one.end - zero)
        for rank, share in ((one.sender, 0.0), (one.receiver, 0.5)):
            if rank not in ranks:
                continue
            y = top + row * rank + 1 + share * (row - 2)
            outside = one.step == OUTSIDE
            step = "outside of phases" if outside else f"step {one.step}"
            title = (
                f"{step}: rank {one.sender} to {one.receiver}, "
                f"{format_seconds(max(one.end - one.start, 0.0))}"
            )
            colour = SOFT if outside else GROUPS[one.step % len(GROUPS)]
            parts.append(
                f'<rect x="{start:.1f}" y="{y:.1f}" width="{max(end - start, 0.7):.1f}" '
                f'height="{(row - 2) / 2:.1f}" fill="{colour}">'
                f"<title>{escape(title)}</title></rect>"
            )
    for number, use in enumerate(links):
        y = bottom + 22 + 12 * number
        parts.append(_text(_LEFT - 8, y + 9, use.name, "end", SOFT))
        first, last = axis.x(axis.low), axis.x(axis.high)
        parts.append(
            f'<rect x="{first:.1f}" y="{y:.1f}" width="{last - first:.1f}" height="10" '
            f'fill="{EMPTY}"/>'
        )
        for start, end in use.spans:
            x, right = axis.x(start - zero), axis.x(end - zero)
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(right - x, 0.5):.1f}" height="10" '
                f'fill="{INK}" fill-opacity="0.7"><title>{escape(use.name)}: idle '
                f"{use.idle:.0%} of the time from the first message to the last</title></rect>"
            )
    return _svg(_WIDTH, height, "time line", parts)
