"""Clocks that are set wrong and run wrong: what remains is within the error that is stated."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from stagegen.recording.calls import align
from tests.recording import made

DELAYS = (0.0, 0.020, 0.010, 0.005)


def aligned(dials, calls, **options):
    """The stated errors, and the greatest error of any arrival beside that of rank 0."""
    found = align(made.recording(calls, dials, **options))
    true = np.array([call.arrivals for call in calls])
    got = np.concatenate([one.arrivals for one in found.calls])
    got = got[np.argsort(got[:, 0])]
    errors = (got - got[:, :1]) - (true - true[:, :1])
    return found.clocks, float(np.abs(errors).max())


def test_ranks_with_one_clock_have_no_error():
    clocks, error = aligned(None, made.steps(20, DELAYS))
    assert clocks.error == clocks.proven == 0
    assert error == pytest.approx(0, abs=2e-9)


@pytest.mark.parametrize("offset", [-3600.0, 0.001, 86400.0])
@pytest.mark.parametrize("drift", [0.0, 50e-6, -200e-6])
def test_offset_and_even_drift_are_taken_out(offset, drift):
    dials = [made.Dial(), made.Dial(), made.Dial(offset, drift), made.Dial(-offset, -drift / 2)]
    clocks, error = aligned(dials, made.steps(90, DELAYS))
    assert error <= clocks.error + 1e-8
    assert clocks.error == pytest.approx(40e-6)


@pytest.mark.parametrize("off", [(1, 1), (-1, -1), (1, -1), (-1, 1)])
def test_comparisons_that_are_wrong_by_their_error_leave_no_more_than_is_stated(off):
    dials = [made.Dial(), made.Dial(0.5, 10e-6), made.Dial(), made.Dial()]
    by = [50e-6 * sign for sign in off]
    clocks, error = aligned(dials, made.steps(90, DELAYS), error=50e-6, wrong_by=by)
    assert 30e-6 < error <= clocks.error + 1e-8


def test_a_bent_clock_is_found_by_the_calls_on_the_way():
    """It jumps by 30 ms in the middle and back: samples at the ends cannot see it."""
    calls = made.steps(90, (0, 0, 0, 0), "allreduce")
    recording = made.recording(calls, [made.Dial(), made.Dial(1.0), made.Dial(), made.Dial()])
    events = recording.by_rank[1].events
    bent = (events["sequence"] > 30) & (events["sequence"] < 60)
    for name in ("arrival", "exit"):
        events[name][bent] += 30_000_000
    found = align(recording)
    arrivals = found.calls[0].arrivals
    errors = np.abs(arrivals[:, 1] - arrivals[:, 0])
    assert errors.max() <= found.clocks.error
    assert errors.max() < 15e-3 < found.clocks.error


def test_without_a_comparison_at_the_end_the_calls_bound_the_drift():
    dials = [made.Dial(), made.Dial(2.0, 80e-6), made.Dial(), made.Dial()]
    clocks, error = aligned(dials, made.steps(90, DELAYS, "allreduce"), compared=(0.0,))
    assert error <= clocks.error
    assert clocks.error < 90 * 100e-6 + 1e-4


@pytest.mark.parametrize("count", [1, 2, 60])
@pytest.mark.parametrize("long", [(0.0, 0.0, 0.5, 0.0), (0.5, 0.5, 0.0, 0.5)])
@pytest.mark.parametrize("drift", [-90e-6, 0.0, 90e-6])
def test_long_calls_of_some_ranks_do_not_bend_a_clock_beyond_the_stated_error(count, long, drift):
    """The calls bound it on one side only: the middle of that is far from the truth."""
    calls = [
        replace(call, exits=[end + more for end, more in zip(call.exits, long, strict=True)])
        for call in made.steps(count, (0, 0, 0, 0), "allreduce")
    ]
    dials = [made.Dial(), made.Dial(), made.Dial(2.0, drift), made.Dial()]
    clocks, error = aligned(dials, calls, compared=(0.0,))
    assert error <= clocks.error
    assert clocks.error < (count + 1.5) * 100e-6 + 1e-4


@pytest.mark.parametrize("drift", [-90e-6, 90e-6])
def test_a_long_wait_does_not_bend_a_clock_that_drifts_evenly(drift):
    """Rank 0 comes 30 s late to one barrier, as one that writes a file does."""
    calls = made.steps(90, DELAYS, "barrier")
    late = made.Call("barrier", (95.0, 65.0, 65.0, 65.0), (95.001,) * 4)
    dials = [made.Dial(), made.Dial(1.0, drift), made.Dial(), made.Dial()]
    early = [call for call in calls if max(call.exits) < 65.0]
    clocks, error = aligned(dials, [*early, late])
    assert error <= clocks.error + 1e-8
    assert clocks.error == pytest.approx(20e-6, rel=1.1)


def test_a_clock_that_drifts_more_than_is_taken_for_possible_is_bounded_by_the_calls():
    dials = [made.Dial(), made.Dial(2.0, 1e-3), made.Dial(), made.Dial()]
    clocks, error = aligned(dials, made.steps(90, (0, 0, 0, 0), "allreduce"), compared=(0.0,))
    assert error <= clocks.error


def test_without_calls_that_synchronise_nothing_is_proven():
    dials = [made.Dial(), made.Dial(2.0), made.Dial(), made.Dial()]
    clocks, error = aligned(dials, made.steps(3, DELAYS, "alltoallv"), compared=(0.0,))
    assert math.isinf(clocks.proven)
    assert error <= clocks.error


@pytest.mark.parametrize(("function", "bounds"), [("barrier", True), ("alltoall", False)])
def test_calls_without_bytes_bound_a_clock_only_if_they_never_have_any(function, bounds):
    dials = [made.Dial(), made.Dial(2.0), made.Dial(), made.Dial()]
    calls = [replace(call, size=0) for call in made.steps(3, DELAYS, function)]
    clocks, _ = aligned(dials, calls, compared=(0.0,))
    assert math.isfinite(clocks.proven) == bounds
