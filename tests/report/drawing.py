"""What a plot shows: its marks in the units of the axes, by the labels that a reader sees."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from xml.etree import ElementTree

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_POWER = re.compile(r"10(−?\d+)")

Point = tuple[float, float]


class Drawing:
    """An SVG of matplotlib with one pair of axes and a legend.

    Attributes:
        xlabel, ylabel: of the axes.
        xlim, ylim: the ranges of the axes that have numbers.
        lines: the points of each line between the axes, by its name in the legend.
        marks: at which x a line that the legend does not name goes from the bottom to the top.
        bars: begin and end of each bar by the label of its row, then by its name in the legend.
    """

    def __init__(self, text: str):
        root = ElementTree.fromstring(text)
        self._groups = {one.get("id"): one for one in root.iter(f"{_NAMESPACE}g") if one.get("id")}
        axes = self._groups["axes_1"]
        left, right, top, bottom = _box(_points(axes[0][0]))  # y grows downwards
        numbers = {axis: list(self._numbers(axis)) for axis in "xy"}
        self.xlim = (_value(numbers["x"], left), _value(numbers["x"], right))
        self.ylim = (_value(numbers["y"], bottom), _value(numbers["y"], top))
        self.xlabel, self.ylabel = (self._label(axis) for axis in (1, 2))
        legend = self._legend()
        self.lines: dict[str, list[Point]] = {}
        self.marks: list[float] = []
        self.bars: dict[str, dict[str, Point]] = defaultdict(dict)
        for shape in (path for group in axes for path in group.findall(f"{_NAMESPACE}path")):
            if "clip-path" not in shape.attrib:  # the frame
                continue
            points = _points(shape)
            colour = _colour(shape)
            if shape.get("d", "").strip().endswith("z"):
                begin, end, low, high = _box(points)
                (row,) = (name for at, name in self._ticks("y") if low < at < high)
                name = legend[colour]
                assert name not in self.bars[row]
                self.bars[row][name] = (_value(numbers["x"], begin), _value(numbers["x"], end))
            elif colour in legend:
                assert legend[colour] not in self.lines
                self.lines[legend[colour]] = [
                    (_value(numbers["x"], x), _value(numbers["y"], y)) for x, y in points
                ]
            else:
                assert sorted(y for _, y in points) == sorted((bottom, top))
                self.marks.append(_value(numbers["x"], points[0][0]))

    def _ticks(self, axis: str) -> Iterator[tuple[float, str]]:
        """Yield the places and the labels of an axis."""
        for name, group in self._groups.items():
            if re.fullmatch(rf"{axis}tick_\d+", name):
                label = "".join(text for one in group.iter(f"{_NAMESPACE}text")
                                for text in one.itertext()).strip()  # fmt: skip
                if label:
                    yield float(next(group.iter(f"{_NAMESPACE}use")).attrib[axis]), label

    def _numbers(self, axis: str) -> Iterator[tuple[float, float, bool]]:
        """Yield place, number, and whether the axis is one of powers of ten, of each tick."""
        for at, words in self._ticks(axis):
            label = "".join(words.split())
            if power := _POWER.fullmatch(label):
                yield at, float(power[1].replace("−", "-")), True
            elif re.fullmatch(r"−?\d+(\.\d+)?", label):
                yield at, float(label.replace("−", "-")), False

    def _label(self, axis: int) -> str:
        """Return the title of an axis: the last text in its group."""
        texts = list(self._groups[f"matplotlib.axis_{axis}"].iter(f"{_NAMESPACE}text"))
        return "".join(texts[-1].itertext()).strip()

    def _legend(self) -> dict[str, str]:
        """Return the names in the legend by their colours: each stands behind its mark."""
        found, colour = {}, ""
        for one in self._groups["legend_1"].iter():
            if one.tag == f"{_NAMESPACE}path" and _colour(one):
                colour = _colour(one)
            elif one.tag == f"{_NAMESPACE}text" and colour:
                found[colour] = "".join(one.itertext()).strip()
                colour = ""
        return found


def drawings(page: str) -> list[Drawing]:
    """Return the plots of a page, in their order."""
    return [Drawing(text) for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def _points(path: ElementTree.Element) -> list[Point]:
    numbers = [float(one) for one in re.findall(r"-?[\d.]+(?:e-?\d+)?", path.attrib["d"])]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _box(points: list[Point]) -> tuple[float, float, float, float]:
    """Return the least and greatest x, then the least and greatest y."""
    xs, ys = zip(*points, strict=True)
    return min(xs), max(xs), min(ys), max(ys)


def _colour(path: ElementTree.Element) -> str:
    """Return the colour that fills a shape or draws a line; nothing if it is unseen."""
    style = dict(re.findall(r"([\w-]+): ([^;]+)", path.get("style", "")))
    fill = style.get("fill", "none")
    return fill if fill != "none" else style.get("stroke", "")


def _value(numbers: list[tuple[float, float, bool]], at: float) -> float:
    """Return the number of a place on an axis, by the first and the last of its ticks."""
    if len(numbers) < 2:
        return math.nan  # the axis has names
    (first, low, is_power), (last, high, _) = numbers[0], numbers[-1]
    found = low + (high - low) * (at - first) / (last - first)
    return 10**found if is_power else found
