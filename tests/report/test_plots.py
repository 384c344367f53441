"""Plots of times: axes with units, whatever was measured."""

from __future__ import annotations

import re

import pytest

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import Summary
from stagegen.report.plots import time_plot
from stagegen.report.rows import ReportRow

pytest.importorskip("matplotlib", reason="plots need the extra `report`")

KIB, MIB = 1 << 10, 1 << 20

#: Sizes in bytes with times in seconds, and what stands at the two axes.
LABELS = {
    "wide": ({1: 5e-6, KIB: 1e-3, MIB: 2.0}, "1 B, 16 B, 256 B, 4 KiB, 64 KiB, 1 MiB", "100 ms"),
    "narrow": ({KIB: 3e-3, 2 * KIB: 3.1e-3}, "1 KiB, 2 KiB", "3 ms"),
    "one size": ({1000: 1e-3}, "1000 B", "1 ms"),
    "a barrier": ({0: 1e-3}, "0 B", "1 ms"),
    "many near": ({2**k: 1e-3 * 2**k for k in range(8)}, "1 B, 4 B, 16 B, 64 B", "10 ms"),
}


def plot(times: dict[int, float], title: str = "allgather") -> str:
    def summary(median: float) -> Summary:
        return Summary(median, 0.95 * median, 1.05 * median, count=9)

    tuned = Candidate("ring")
    rows = [ReportRow(n, summary(t), summary(t / 2), tuned, None) for n, t in times.items()]
    return time_plot(title, rows)


@pytest.mark.parametrize(("times", "sizes", "time"), LABELS.values(), ids=LABELS)
def test_the_labels_of_axes_have_units(times, sizes, time):
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", plot(times))
    at = texts.index("message size")
    assert ", ".join(texts[:at]) == sizes
    assert time in texts[at + 1 : texts.index("time")]


def test_a_name_is_no_mathematics():
    assert "halo $x_$ y" in plot({1: 1e-3}, "halo $x_$ y")


def test_a_plot_has_the_same_bytes_again():
    times = {1: 5e-6, MIB: 2.0}
    assert plot(times) == plot(times)
