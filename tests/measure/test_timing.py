"""How many calls make a repetition: by time, or as the user says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import MeasurementError
from stagegen.generate.timings import BUILT_IN
from stagegen.measure.arrivals import Imbalance, Lateness
from stagegen.measure.iterations import PRESETS, Iterations
from stagegen.measure.records import Candidate, Measurement
from stagegen.measure.source import LogSource
from stagegen.measure.timing import _HABITS, METRICS_PLAIN, Timing
from stagegen.topology import parse_size
from tests.library.schemas import validate
from tests.measure.fakes import late_timings, request

SIZES = st.integers(0, 1 << 30)
SECONDS = st.floats(1e-9, 100.0)
EVERY = ("mpptest", "barrier", "computation")


@given(SIZES, SECONDS)
def test_with_barriers_as_few_calls_as_make_a_repetition_long_enough(size, seconds):
    """As many as take 20 ms, at most 8: as docs/timing.md says."""
    calls = Timing("barrier").calls(size, seconds)
    assert 1 <= calls <= 8
    assert calls == 8 or calls * seconds >= 0.02 * 0.999
    assert calls == 1 or (calls - 1) * seconds < 0.02 * 1.001


@pytest.mark.parametrize("mechanism", ["mpptest", "computation"])
@given(SIZES, st.none() | SECONDS)
def test_without_barriers_a_repetition_is_several_calls_also_in_a_first_look(
    mechanism, size, seconds
):
    assert 5 <= Timing(mechanism).calls(size, seconds) <= 8


def test_each_mechanism_of_stagegen_says_what_it_does_between_calls():
    assert set(_HABITS) == set(BUILT_IN)


def test_a_first_look_with_barriers_is_one_call():
    assert Timing("barrier").calls(1) == 1


@pytest.mark.parametrize("mechanism", EVERY)
@given(SIZES, st.none() | SECONDS)
def test_given_iterations_hold_however_long_a_call_takes(mechanism, size, seconds):
    iterations = Iterations.parse("1:3,1KiB:2")
    calls = Timing(mechanism, iterations=iterations).calls(size, seconds)
    assert calls == (2 if size >= 1024 else 3)


#: Faraj 2006, §4.1.2.2: the first and the last size of each range, and ITER.
SOURCE = [
    ("1", "3KiB", 100), ("4KiB", "12KiB", 50), ("16KiB", "96KiB", 20), ("128KiB", "256KiB", 10),
    ("512KiB", "1GiB", 5),
]  # fmt: skip


@pytest.mark.parametrize(("first", "last", "calls"), SOURCE)
def test_the_preset_is_that_of_the_source(first, last, calls):
    source = Iterations.parse("source")
    assert source.at(parse_size(first)) == source.at(parse_size(last)) == calls


def test_beyond_256_kib_the_source_makes_five_calls():
    assert PRESETS["source"].at(256 * 1024 + 1) == 5


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("adaptive", ()),
        ("7", ((1, 7),)),
        ("1:100,8KiB:50,1MiB:5", ((1, 100), (8192, 50), (1 << 20, 5))),
        ("64:3", ((64, 3),)),
    ],
)
def test_the_option_of_iterations_has_the_steps_that_it_says(text, steps):
    assert Iterations.parse(text).steps == steps


def test_below_the_first_step_its_calls_hold_and_a_barrier_has_size_0():
    assert Iterations.parse("64:3,128:2").at(0) == 3


@pytest.mark.parametrize(
    "text", ["", "0", "1:0", "0:1", "fast", "1:2,1:3", "8:2,4:3", "1:2,", "1:2:3", "1:x", "-1:2"]
)
def test_what_is_no_list_of_iterations_is_refused(text):
    with pytest.raises(ValueError, match=r"\S"):
        Iterations.parse(text)


@given(st.dictionaries(st.integers(1, 1 << 20), st.integers(1, 100)))
def test_the_header_holds_iterations(steps):
    iterations = Iterations(tuple(sorted(steps.items())))
    assert Iterations.from_json(iterations.to_json()) == iterations


@pytest.mark.parametrize("form", ["source", [], {}, None, [1], [[1]], [[1, 2.0]], [[True, 1]]])
def test_damaged_iterations_are_refused(form):
    with pytest.raises((TypeError, ValueError)):
        Iterations.from_json(form)


TIMINGS = (
    st.builds(Timing, st.sampled_from(EVERY), st.floats(0, 60000), st.sampled_from(METRICS_PLAIN))
    | st.builds(Timing, st.just("arrival"), hash=st.just("1" * 64))
    | late_timings()
)


@given(TIMINGS)
def test_a_record_says_how_it_was_timed(timing):
    asked = replace(request(Candidate("ring")), timing=timing, first=7 if timing.arrivals else 0)
    late = Lateness(1e-3, 1e-4, 0.0, ((0.25,),), ((0.1,),), ((0.0,),))
    measured = Measurement(asked, ((0.25,),), late if timing.arrivals else None)
    record = json.loads(json.dumps(measured.to_json()))
    assert Measurement.from_json(record) == measured
    validate("measurements", record)


@pytest.mark.parametrize(
    "other",
    [
        Timing("imbalance", metric="mean", arrivals=Imbalance(16, True, seed=2)),
        Timing("imbalance", metric="mean", arrivals=Imbalance(17, True)),
        Timing("imbalance", metric="mean", arrivals=Imbalance(16, False)),
        Timing("imbalance", metric="last", arrivals=Imbalance(16, True)),
    ],
)
def test_measurements_under_other_arrivals_are_not_taken(other):
    timing = Timing("imbalance", metric="mean", arrivals=Imbalance(16, True))
    asked = replace(request(Candidate("ring")), timing=timing)
    source = LogSource([Measurement(asked, ((0.25,),)).to_json()])
    for wrong in (replace(asked, timing=other), replace(asked, first=1)):
        with pytest.raises(MeasurementError, match="log lacks"):
            source.measure(wrong)
    assert source.measure(asked).seconds == ((0.25,),)


@pytest.mark.parametrize(
    "damage",
    [
        {"arrivals": None}, {"arrivals": {}}, {"metric": "slowest"},
        {"arrivals": {"plan": "imbalance", "most": 0, "unit": "us", "seed": 1}},
        {"arrivals": {"plan": "imbalance", "most": 1, "unit": "s", "seed": 1}},
        {"arrivals": {"plan": "other"}},
    ],
)  # fmt: skip
def test_a_record_of_late_ranks_needs_their_plan_and_a_metric_of_theirs(damage):
    timing = Timing("imbalance", metric="mean", arrivals=Imbalance(16, True))
    with pytest.raises((KeyError, TypeError, ValueError)):
        Timing.from_record({**timing.to_record(), **damage})


@pytest.mark.parametrize("form", ["header", "record"])
def test_old_logs_took_the_slowest_rank_and_computed_by_operations(form):
    name, read = {
        "header": ("mechanism", Timing.from_json),
        "record": ("timing", Timing.from_record),
    }[form]
    old = read({name: "computation", "computation": 100})
    assert old == Timing("computation", 0.0, "slowest", operations=100)


def test_measurements_by_another_mechanism_metric_or_file_are_not_taken():
    asked = request(Candidate("ring"))
    source = LogSource([Measurement(asked, ((0.25,),)).to_json()])
    for other in (
        Timing("mpptest"), Timing(metric="mean"), Timing("computation", 25.0),
        Timing("arrival", hash="1" * 64), Timing("imbalance", arrivals=Imbalance(16, True)),
    ):  # fmt: skip
        with pytest.raises(MeasurementError, match="log lacks"):
            source.measure(replace(asked, timing=other))
    assert source.measure(asked).seconds == ((0.25,),)


def test_a_log_answers_whatever_decided_the_number_of_calls():
    asked = request(Candidate("ring"))
    record = Measurement(asked, ((0.25,),)).to_json()
    fixed = replace(asked, timing=Timing("barrier", iterations=Iterations.parse("1")))
    assert LogSource([record]).measure(fixed).seconds == ((0.25,),)
