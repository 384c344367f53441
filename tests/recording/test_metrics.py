"""Metrics of arrivals, by hand; phases of series; times of messages."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from stagegen.errors import InputError
from stagegen.recording.arrival_phases import phases_of
from stagegen.recording.arrivals import CLASSES, arrivals_of
from stagegen.recording.calls import align
from stagegen.recording.messages import MessageTimes, message_times, read_message_times
from stagegen.recording.metrics import metrics_of
from stagegen.recording.profile import profile_of
from tests.recording import made

TIMES = MessageTimes((0, 1000), (0.001, 0.002), 2)
ONE = made.Call("alltoall", (1.0, 2.0, 3.0, 6.0), (7.0, 6.5, 7.0, 8.0))


def test_the_metrics_of_a_call_as_they_are_defined():
    (calls,) = align(made.recording([ONE])).calls
    metrics = metrics_of(calls)
    assert metrics.average[0] == pytest.approx((2 + 1 + 0 + 3) / 4)
    assert metrics.worst[0] == pytest.approx(5)
    assert metrics.elapsed[0] == pytest.approx((6 + 4.5 + 4 + 2) / 4)
    assert metrics.waiting[0] == pytest.approx((5 + 4 + 3 + 0) / 4)
    assert metrics.operation[0] == pytest.approx((1 + 0.5 + 1 + 2) / 4)
    assert metrics.delay[0] == pytest.approx(2)


def test_a_rank_that_leaves_before_the_last_one_comes_waits_no_longer_than_it_is_there():
    early = made.Call("ibcast", (0.5, 1.0, 1.0, 9.0), (1.0, 1.5, 2.0, 9.5))
    (calls,) = align(made.recording([made.Call("alltoall", early.arrivals, early.exits)])).calls
    metrics = metrics_of(calls)
    assert metrics.waiting[0] == pytest.approx((0.5 + 0.5 + 1.0 + 0) / 4)
    assert metrics.operation[0] == pytest.approx(0.5 / 4)


def test_nothing_is_said_of_the_end_of_a_call_that_does_not_end_in_it():
    (calls,) = align(made.recording([made.Call("ibcast", (1, 2, 3, 4), (1, 2, 3, 4))])).calls
    metrics = metrics_of(calls)
    assert metrics.worst[0] == pytest.approx(3)
    assert np.isnan([metrics.elapsed, metrics.waiting, metrics.operation, metrics.delay]).all()


def test_factors_are_imbalances_in_times_of_a_message_of_that_size():
    arrivals = arrivals_of(made.recording([made.Call(**{**vars(ONE), "size": 500})]), TIMES)
    (site,) = arrivals.sites
    assert site.message == pytest.approx(0.0015)
    assert site.worst_factors[0] == pytest.approx(5 / 0.0015)
    assert arrivals.factors(worst=True) == pytest.approx(5 / 0.0015)
    assert arrivals.distribution(small=True) == (0, 0, 0, 0, 0, 0, 1)
    assert arrivals.distribution(small=False) is None


@pytest.mark.parametrize("place", range(len(CLASSES)))
def test_each_factor_is_in_one_class(place):
    lower = 0 if place == 0 else CLASSES[place - 1]
    spread = lower * TIMES.of(8) * 1.0001
    call = made.Call("barrier", (1.0, 1.0, 1.0, 1.0 + spread), (9.0,) * 4)
    shares = arrivals_of(made.recording([call]), TIMES).distribution(small=True)
    assert shares.index(1.0) == place


def test_a_call_that_a_rank_lacks_is_counted_and_left_out():
    recording = made.recording(made.steps(3, (0, 1e-3, 0, 0)))
    recording.by_rank[2].events["function"][1] = made.FUNCTIONS.index("barrier")
    aligned = align(recording)
    assert aligned.unmatched == 1
    assert [list(calls.sequences) for calls in aligned.calls] == [[0, 2]]


def test_forms_for_programs_are_json():
    recording = made.recording([ONE, made.Call("ibcast", (1, 2, 3, 4), (math.nan,) * 4)])
    for form in (arrivals_of(recording).to_json(), arrivals_of(recording, TIMES).to_json(),
                 profile_of(recording).to_json()):  # fmt: skip
        assert json.loads(json.dumps(form, allow_nan=False)) == json.loads(json.dumps(form))


def test_a_profile_divides_the_time_into_waiting_and_operation():
    profile = profile_of(made.recording([ONE] * 3))
    (row,) = profile.rows
    assert (row.calls, row.ranks, row.hosts) == (3, 4, 4)
    assert row.elapsed == pytest.approx(row.waiting + row.operation)
    assert profile.total("waiting") == pytest.approx(3 * 3)


@pytest.mark.parametrize("cut", [20, 100, 150])
def test_a_change_in_a_series_is_found(cut):
    random = np.random.default_rng(1)
    values = random.lognormal(0, 0.3, 200)
    values[cut:] *= 10
    phases = phases_of(values)
    assert len(phases) == 2
    assert abs(phases[1].first - cut) <= 4
    assert phases[1].median > 5 * phases[0].median


@pytest.mark.parametrize(("count", "cut"), [(1500, 777), (3000, 1500), (3998, 2000), (5000, 2500)])
def test_a_long_series_with_one_change_has_two_phases(count, cut):
    """The probabilities of these tests are too small for numbers."""
    values = np.random.default_rng(2).lognormal(0, 0.2, count)
    values[cut:] *= 10
    first, second = phases_of(values)
    assert abs(second.first - cut) <= 4
    assert second.median > 5 * first.median


@pytest.mark.parametrize("seed", range(5))
def test_a_series_of_one_kind_is_one_phase_despite_spikes(seed):
    random = np.random.default_rng(seed)
    values = random.lognormal(0, 0.5, 300)
    values[::50] *= 100
    (phase,) = phases_of(values)
    assert (phase.first, phase.last) == (0, 299)


@pytest.mark.parametrize("count", [1, 2, 15])
def test_a_short_series_is_one_phase(count):
    assert len(phases_of(np.arange(1.0, count + 1))) == 1


def test_phases_cover_the_series():
    values = np.repeat([1.0, 5.0, 1.0, 9.0], 30) * np.tile([1.0, 1.1, 0.9], 40)
    phases = phases_of(values)
    assert [one.first for one in phases] == [0, *(one.last + 1 for one in phases[:-1])]
    assert phases[-1].last == len(values) - 1
    assert len(phases) == 4


def test_messages_between_and_beyond_the_measured_sizes_are_on_lines():
    assert TIMES.of(500) == pytest.approx(0.0015)
    assert TIMES.of(3000) == pytest.approx(0.006)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 2}',
        '{"version": 1, "hosts": 2, "messages": []}',
        '{"version": 1, "hosts": 2, "messages": [[4, 0]]}',
        '{"version": 1, "hosts": Infinity, "messages": [[4, 1]]}',
        '{"version": 1, "hosts": 2, "messages": [[1e999, 1]]}',
        pytest.param(10**6 * "[", id="nested too deeply"),
    ],
)
def test_other_files_are_no_times(tmp_path, text):
    path = tmp_path / "times.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        read_message_times(path)


def test_times_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "times.json"
    path.write_text(json.dumps(TIMES.to_json()), encoding="utf-8")
    assert read_message_times(path) == TIMES == message_times([[1000, 0.002], [0, 0.001]], 2)
