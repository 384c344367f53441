"""The page of arrivals: its plots show the arrivals that a recording has."""

from __future__ import annotations

import json
import re

import pytest

from stagegen.cli import group
from stagegen.recording.container import write_recording
from stagegen.recording.messages import MessageTimes
from tests.recording import made
from tests.report.drawing import Drawing, drawings

pytest.importorskip("matplotlib", reason="plots need the extra `report`")

#: A message takes 1 ms up to 1000 bytes, and 4 ms at 2000.
TIMES = MessageTimes((1000, 2000), (1e-3, 4e-3), 2)
#: Collective, bytes, site, and the worst-case factor of each call. The first series changes once.
SITES = (
    ("alltoall", 8, 0, (0.5, 1.5, 0.25, 1.5, 3, 3, 3, 0.5, 1.5, 3, 6, 6, 12, 24, 100, 6, 12, 24, 50,
                        200)),
    ("allreduce", 2000, 1, (0.5, 6, 0.5, 40)),
    ("alltoall", 500, 0, (100,)),
)  # fmt: skip
TITLES = ("alltoall program+0x10 8 B", "allreduce program+0x20 2000 B",
          "alltoall program+0x10 500 B")  # fmt: skip
#: How many of these factors are in each class, by hand.
COUNTS = {
    TITLES[0]: (3, 3, 4, 3, 2, 2, 3),
    TITLES[1]: (2, 0, 0, 1, 0, 0, 1),
    TITLES[2]: (0, 0, 0, 0, 0, 0, 1),
    "small messages": (3, 3, 4, 3, 2, 2, 4),
    "medium and large": (2, 0, 0, 1, 0, 0, 1),
}
NAMES = ("0–1", "1–2", "2–4", "4–8", "8–16", "16–32", "≥ 32")
#: If one of four ranks is late by w, the mean distance from the mean arrival is 3/8 of w.
AVERAGE = 3 / 8


def page_of(folder, calls, with_times: bool = True) -> str:
    """The page that the command writes of calls."""
    recording, times, page = folder / "a.recording", folder / "times.json", folder / "page.html"
    write_recording(recording, made.recording(calls))
    times.write_text(json.dumps(TIMES.to_json()), encoding="utf-8")
    words = ("--messages", str(times)) if with_times else ()
    group(["arrivals", *words, "--html", str(page), str(recording)], standalone_mode=False)
    return page.read_text(encoding="utf-8")


def late_calls(sites=SITES) -> list[made.Call]:
    """Calls in which the last of four ranks is late by so many messages."""
    calls = []
    for collective, size, site, factors in sites:
        for factor in factors:
            at, late = 1.0 + len(calls), factor * TIMES.of(size)
            calls.append(made.Call(collective, (at, at, at, at + late), (at + late + 1e-3,) * 4,
                                   size, site))  # fmt: skip
    return calls


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    return page_of(tmp_path_factory.mktemp("page"), late_calls())


def is_shown(plot: Drawing, name: str, values) -> None:
    """A line has a point for each call, at its place, within the ranges of the axes."""
    points = plot.lines[name]
    assert [x for x, _ in points] == pytest.approx(range(len(values)), abs=0.01)
    assert [y for _, y in points] == pytest.approx(values, rel=1e-3)
    assert all(plot.xlim[0] < x < plot.xlim[1] for x, _ in points)
    assert all(plot.ylim[0] < y < plot.ylim[1] for _, y in points)


def test_a_series_shows_the_imbalance_of_each_call_and_where_it_changes(page):
    _, *plots = drawings(page)
    assert re.findall(r"<h3>(.*)</h3>", page) == list(TITLES[:2]), "one call is no series"
    for plot, (*_, factors), marks in zip(plots, SITES, ([10], []), strict=False):
        assert (plot.xlabel, plot.ylabel) == ("call", "imbalance (factor)")
        assert set(plot.lines) == {"worst case", "average case"}
        is_shown(plot, "worst case", factors)
        is_shown(plot, "average case", [AVERAGE * one for one in factors])
        assert plot.marks == pytest.approx(marks, abs=0.01)


def test_bars_of_the_distribution_are_the_calls_of_each_class(page):
    plot, *_ = drawings(page)
    assert (plot.xlabel, plot.xlim) == ("share of the calls", pytest.approx((0, 1), abs=1e-3))
    assert set(plot.bars) == set(COUNTS)
    for row, counts in COUNTS.items():
        calls = sum(counts)
        widths = {name: calls * (end - begin) for name, (begin, end) in plot.bars[row].items()}
        assert widths == pytest.approx(dict(zip(NAMES, counts, strict=True)), abs=0.01)
        ends = [edge for name in NAMES for edge in plot.bars[row][name]]
        assert ends[1:-1:2] == pytest.approx(ends[2::2], abs=1e-3), "each begins where one ends"
        assert (ends[0], ends[-1]) == pytest.approx((0, 1), abs=1e-3), "all calls are in classes"


def test_without_times_of_messages_imbalances_are_seconds(tmp_path):
    page = page_of(tmp_path, late_calls(), with_times=False)
    plot, _ = drawings(page)
    assert plot.ylabel == "imbalance (seconds)"
    is_shown(plot, "worst case", [1e-3 * one for one in SITES[0][-1]])


def test_a_long_series_shows_the_greatest_of_several_calls(tmp_path):
    """A single late call must not be lost. Where a line hardly bends, matplotlib has no point."""
    count, step = 4100, 3  # so there are at most 2000 points
    factors = [4.0 + 7 * call % 11 for call in range(count)]
    factors[3001] = 500.0
    plot = drawings(page_of(tmp_path, late_calls([("alltoall", 8, 0, factors)])))[-1]
    points = [(round(x / step) * step, x, y) for x, y in plot.lines["worst case"]]
    assert [x for _, x, _ in points] == pytest.approx([first for first, _, _ in points], abs=0.01)
    greatest = [max(factors[first : first + step]) for first, _, _ in points]
    assert [y for *_, y in points] == pytest.approx(greatest, rel=1e-3)
    assert 500.0 in greatest
    assert (points[0][0], points[-1][0]) == (0, count - count % step)
