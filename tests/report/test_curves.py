"""Curves of parameters: what the records of a log say, and where the report shows it."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Candidate, Measurement
from stagegen.report import render_report
from stagegen.report.curve_plot import curve_plot
from stagegen.report.curves import Curve, Curves, curves_of
from stagegen.tune.scope import Options
from stagegen.tune.tuner import tune
from tests.measure.fakes import ENVIRONMENT, TIMING, Model, request
from tests.strategies import make_topology
from tests.tune.recorder import Recorder

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="plots need the extra `report`"
)


SIZES = (64, 1024)


def linear(segment: int, width: int = 1) -> Candidate:
    return Candidate("linear", (("segment", segment), ("width", width)))


def timed(times: dict[Candidate, list[float]], size: int = 64, **other) -> Measurement:
    asked = replace(
        request(*times, size=size, repetitions=len(next(iter(times.values())))), **other
    )
    return Measurement(asked, tuple(map(tuple, times.values())))


def test_a_point_is_the_median_of_all_times_of_its_value():
    looks = [
        timed({linear(8): [5.0], linear(2): [3.0], Candidate("native"): [1.0]}),
        timed({linear(8): [1.0, 9.0, 2.0], linear(2): [4.0, 4.0, 5.0]}),
        timed({linear(8): [7.0], linear(4): [8.0]}, size=1024),
        timed({linear(4): [0.1]}, collective="bcast"),
        timed({linear(4): [0.1]}, communicator="left"),
        timed({linear(4): [0.1], linear(8): [0.2]}, size=500),
    ]
    (curves,) = curves_of(looks, "alltoall", "whole", SIZES)
    assert (curves.algorithm, curves.parameter) == ("linear", "segment")
    assert curves.by_size == (
        Curve(64, ((2, 4.0), (8, 3.5))),
        Curve(1024, ((4, 8.0), (8, 7.0))),
    )
    assert [curve.best for curve in curves.by_size] == [(8, 3.5), (8, 7.0)]
    assert curves.by_size[0].relative == (4.0 / 3.5, 1.0)


def test_a_curve_keeps_the_other_parameters():
    """First segments are tried with the default width, then widths with the best segment."""
    looks = [
        timed({linear(2, 1): [3.0], linear(4, 1): [2.0], linear(8, 1): [5.0]}),
        timed({linear(4, 2): [1.0], linear(4, 3): [4.0]}),
    ]
    segment, width = curves_of(looks, "alltoall", "whole", SIZES)
    assert segment == Curves("linear", "segment", (Curve(64, ((2, 3.0), (4, 2.0), (8, 5.0))),))
    assert width == Curves("linear", "width", (Curve(64, ((1, 2.0), (2, 1.0), (3, 4.0))),))


def test_one_value_makes_no_curve():
    assert curves_of([timed({linear(2): [1.0]})], "alltoall", "whole", SIZES) == ()


@needs_matplotlib
def test_a_panel_has_the_values_and_a_line_for_each_size():
    curves = (
        Curves("linear", "segment", tuple(
            Curve(size, ((512, 2.0), (1024, 1.0), (4096, 3.0))) for size in (64, 65536)
        )),
        Curves("linear", "tail", (Curve(64, ((0, 2.0), (4096, 1.0))),)),
    )  # fmt: skip
    plot = curve_plot(curves, {"segment", "tail"})
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", plot)
    wanted = {"linear: segment", "linear: tail", "512 B", "1 KiB", "4 KiB", "0 B", "64 B", "64 KiB"}
    assert wanted <= set(texts)
    assert plot == curve_plot(curves, {"segment", "tail"})


@pytest.fixture(scope="module")
def tuned():
    """A broadcast is tuned on a model in which segments of 4 KiB are the best."""
    whole = load_catalogue()
    chosen = tuple(
        a for a in whole.algorithms
        if a.name == "native" or a.full_name in ("bcast/pipelined_linear", "bcast/binomial")
    )  # fmt: skip

    def cost(candidate: Candidate, size: int) -> float:
        segment = dict(candidate.parameters).get("segment_size")
        return 1e-2 if segment is None else 1e-3 * (1 + abs(segment - 4096) / 4096)

    records: list = []
    topology, catalogue = make_topology([2, 2], [0]), replace(whole, algorithms=chosen)
    options = Options(("bcast",), (1024, 65536), TIMING, 20.0)
    source = Recorder(Model(cost, noise=1e-3), records)
    found = tune(topology, catalogue, options, source, lambda: True)
    looks = [Measurement.from_json(r) for r in records if r["kind"] == "measurement"]
    return topology, catalogue, found, looks


def test_the_report_has_the_times_of_all_values(tuned):
    topology, catalogue, found, looks = tuned
    page = render_report(topology, catalogue, found, [ENVIRONMENT], looks)
    rows = re.findall(
        r'<td class="l">(\w+)</td><td class="l">segment_size</td><td>(\w+ \w+)</td><td>(\d+)</td>'
        r'\s*<td class="l">([^<]*)</td>', page
    )  # fmt: skip
    by_size = {size: (best, re.findall(r"(\d+): ", values)) for _, size, best, values in rows}
    asked = {
        str(value)
        for look in looks if look.request.size == 65536
        for candidate in look.request.candidates for _, value in candidate.parameters
    }  # fmt: skip
    assert set(by_size) == {"1 KiB", "64 KiB", "256 KiB"}, "of the whole on four ranks, too"
    assert by_size["1 KiB"] == ("1024", ["512", "1024"])
    assert by_size["64 KiB"] == ("4096", sorted(asked, key=int))
    assert len(asked) > 4


@needs_matplotlib
def test_the_report_has_the_curve_and_is_the_same_twice(tuned):
    topology, catalogue, found, looks = tuned
    page = render_report(topology, catalogue, found, [ENVIRONMENT], looks)
    assert ">pipelined_linear: segment_size</text>" in page
    assert page == render_report(topology, catalogue, found, [ENVIRONMENT], looks)
    assert "segment_size</text>" not in render_report(topology, catalogue, found, [ENVIRONMENT])


def test_a_collective_that_the_budget_left_unmeasured_has_no_plot(tuned):
    topology, catalogue, found, _ = tuned
    outcomes = tuple(replace(one, samples={}) for one in found.outcomes)
    page = render_report(topology, catalogue, replace(found, outcomes=outcomes), [ENVIRONMENT])
    assert "message size</text>" not in page
