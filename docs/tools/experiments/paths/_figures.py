"""The paper's figures, from what was kept of our traces (Figs. 10, 12 to 14, 16 to 19)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from docs.tools.experiments.experiment import Found
from stagegen.report.inspection_page import Lines, RankLine, ends_map, extent_of, timemap
from stagegen.report.units import format_seconds

_US = 1e-6

#: Between two pictures, and above them for a line.
_GAP, _ABOVE = 20.0, 24.0


@dataclass(frozen=True)
class Figure:
    """A picture.

    Attributes:
        name: of its file in ``docs/figures``.
        caption: which of the paper's it is, and what it shows.
        svg: the picture.
    """

    name: str
    caption: str
    svg: str


def figures_of(found: Found) -> list[Figure]:
    """Return the figures for which all that they show was measured."""
    made = (
        _maps(found, "paths-12", "Fig. 12", ("4 × 8 nary", "4 × 8 binary")),
        _maps(found, "paths-19", "Fig. 19", ("8 × 4 nary", "8 × 4 split-2")),
        _maps(found, "paths-20", "Fig. 20", ("8 × 4 binary", "8 × 4 split")),
        _ends(found),
        _departures(
            found,
            "paths-10",
            "Fig. 10: when the ranks of the root's host depart from its host subtree",
            "host",
            [f"4 × 8 {name}" for name in ("nary", "quad", "binaryquad", "binary")],
        ),
        _departures(
            found,
            "paths-16",
            "Fig. 16: when the hosts depart from the cluster-root subtree, without messages",
            "root",
            [f"8 × 4 {name}" for name in ("nary", "binary", "split", "split-2")],
        ),
        _departures(
            found,
            "paths-21",
            "Fig. 21: when ranks depart from the cluster-root subtree of 10 × 1, without messages",
            "root",
            [f"10 × 1 {name}" for name in ("nary", "quad", "binary", "splitBlade")],
        ),
        _sizes(found),
    )
    return [one for figures in made for one in figures]


def _lines(one: Any) -> list[RankLine]:
    return [
        RankLine(rank, time * _US, [(x * _US, y) for x, y in points])
        for rank, time, points in one["lines"]
    ]


def _maps(found: Found, name: str, of_paper: str, points: Sequence[str]) -> Iterator[Figure]:
    """Yield the time maps of two configurations, at the same scale."""
    if not _has(found, points):
        return
    every = {point: _lines(found[point]) for point in points}
    extent = extent_of(line.points for lines in every.values() for line in lines)
    maps = [
        (point, timemap(lines, found[point]["hosts"], extent, f"time map of {point}"))
        for point, lines in every.items()
    ]
    caption = f"{of_paper}: time maps of all ranks, {points[0]} and {points[1]}"
    yield Figure(f"{name}.svg", caption, _side_by_side(caption, maps))


def _ends(found: Found) -> Iterator[Figure]:
    """Yield the slowest and the fastest rank of the configurations of 4 × 8."""
    points = [f"4 × 8 {name}" for name in ("nary", "quad", "binaryquad", "binary")]
    if not _has(found, points):
        return
    shown = []
    for point in points:
        fast, *_, slow = _lines(found[point])
        label = f"{point}: {_of('slowest', slow)}; {_of('fastest (dashed)', fast)}"
        shown.append(Lines(label, slow.points, fast.points))
    caption = "Figs. 13 and 14: time maps of the fastest (13, dashed) and the slowest (14) rank"
    yield _figure("paths-13-14", caption, shown)


def _sizes(found: Found) -> Iterator[Figure]:
    """Yield the slowest ranks with 4 and with 256 bytes."""
    points = [
        f"8 × 4 {name}{size}" for name in ("binary", "split-2") for size in ("", ", 256 bytes")
    ]
    if not _has(found, points):
        return
    shown = []
    for point in points:
        lines = {line.rank: line for line in _lines(found[point])}
        parts = found[point]["parts"]
        slow = lines[found[point]["ends"]["slowest"]["rank"]]
        one = lines[parts["1 message, slowest"]["rank"]]
        label = f"{point}: {_of('slowest', slow)}; {_of('with one message (dashed)', one)}"
        shown.append(Lines(label, slow.points, one.points))
    caption = (
        "Figs. 17 and 18: time maps of the slowest rank of all (17), and of those with one message "
        "between hosts on their way to the root (18, dashed)"
    )
    yield _figure("paths-17-18", caption, shown)


def _departures(
    found: Found, name: str, caption: str, part: str, points: Sequence[str]
) -> Iterator[Figure]:
    """Yield when those that wait for the result of a subtree depart, of several configurations."""
    if not (_has(found, points) and all(found[point]["departures"][part] for point in points)):
        return
    shown = []
    for point in points:
        times = [time * _US for time in found[point]["departures"][part]]
        label = f"{point}: first {format_seconds(times[0])}, last {format_seconds(times[-1])}"
        most = max(len(times) - 1, 1)
        shown.append(Lines(label, [(time, place / most) for place, time in enumerate(times)]))
    latest = max(x for one in shown for x, _ in one.solid)
    yield Figure(
        f"{name}.svg",
        caption,
        _on_white(ends_map(shown, (0.0, latest), caption, ("first departure", "last departure"))),
    )


def _of(word: str, line: RankLine) -> str:
    return f"{word} rank {line.rank}, {format_seconds(line.seconds)}"


def _figure(name: str, caption: str, shown: Sequence[Lines]) -> Figure:
    extent = extent_of(points for one in shown for points in (one.solid, one.dashed))
    return Figure(f"{name}.svg", caption, _on_white(ends_map(shown, extent, caption)))


def _has(found: Found, points: Sequence[str]) -> bool:
    return all(point in found for point in points)


def _size(svg: str) -> tuple[float, float]:
    """Return width and height of a picture."""
    seen = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', svg)
    if seen is None:
        raise ValueError("a picture without a size")
    return float(seen[1]), float(seen[2])


def _on_white(svg: str) -> str:
    """Return a picture for pages of any background."""
    head, rest = svg.split("</title>", 1)
    return f'{head}</title>\n<rect width="100%" height="100%" fill="#ffffff"/>{rest}\n'


def _side_by_side(title: str, pictures: Sequence[tuple[str, str]]) -> str:
    """Return one picture of several, each below its name."""
    x, parts = 0.0, []
    for name, svg in pictures:
        width, height = _size(svg)
        place = f'<svg x="{x:.0f}" y="{_ABOVE:.0f}" height="{height:.0f}" '
        label = f'<text x="{x + width / 2:.0f}" y="16" text-anchor="middle">{name}</text>'
        parts += [label, svg.replace("<svg ", place, 1)]
        x += width + _GAP
    tallest = max(_size(svg)[1] for _, svg in pictures)
    width, height = x - _GAP, tallest + _ABOVE
    head = (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        'xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" font-size="12">'
    )
    body = "\n".join(parts)
    return _on_white(f"{head}<title>{title}</title>\n{body}\n</svg>")
