"""Predictions from smaller sizes: near the truth on lines, and never sure of what noise may be."""

from __future__ import annotations

import random

import pytest

from stagegen.tune.prediction import ERROR_SECONDS, Prediction

SIZES = (1, 64, 512, *(1024 << k for k in range(9)), 4 << 20)

#: Seconds of a call without bytes, and per byte.
LINES = ((2e-3, 1e-9), (2e-3, 4e-7), (3e-2, 4e-7), (5e-3, 2.6e-5))


def seen(times, bound=lambda size: 0.0) -> Prediction:
    prediction = Prediction(bound)
    for size, seconds in times.items():
        prediction.observe(size, {"a": seconds})
    return prediction


@pytest.mark.parametrize(("start", "slope"), LINES)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_what_is_certain_is_below_the_truth_and_near_it_where_bytes_dominate(
    start, slope, seed, noise
):
    chance = random.Random(seed)
    times = {n: (start + slope * n) * (1 + chance.uniform(-noise, noise)) for n in SIZES}
    for place in range(1, len(SIZES)):
        size = SIZES[place]
        prediction = seen({n: times[n] for n in SIZES[:place]})
        true = start + slope * size
        assert prediction.least("a", size) <= 1.02 * true
        if place > 8 and slope * SIZES[place - 1] > 4 * start and size == 2 * SIZES[place - 1]:
            assert prediction.least("a", size) > 0.5 * true
            assert prediction.expected("a", size) == pytest.approx(true, rel=0.2)


def test_two_near_sizes_that_noise_sets_apart_rule_nothing_out():
    """2.2 ms at 1 B and 2.6 ms at 64 B were 5 ms at 512 B by a line; 2.7 ms is the truth."""
    prediction = seen({1: 2.2e-3, 64: 2.6e-3})
    assert prediction.least("a", 512) < 2.7e-3


def test_times_of_less_than_the_error_of_clocks_rule_nothing_out():
    prediction = seen({1: ERROR_SECONDS / 4, 64: ERROR_SECONDS / 2})
    assert prediction.least("a", 512) == 0


def test_an_algorithm_whose_bytes_were_never_seen_is_expected_to_be_like_the_others():
    """It may still be as fast as the bound allows."""
    prediction = Prediction(lambda size: 1e-6 * size)
    prediction.observe(1, {"a": 1e-2, "b": 1e-2})
    for size in (1 << 16, 1 << 17):
        prediction.observe(size, {"a": 1e-2 + 3e-6 * size})
    expected = prediction.expected("b", 1 << 18)
    assert expected == pytest.approx(3e-6 * (1 << 18), rel=0.2)
    assert prediction.least("b", 1 << 18) <= 1e-2 + 1e-6 * (1 << 18)


def test_an_unknown_algorithm_has_no_prediction():
    assert Prediction(lambda size: 0.0).expected("a", 8) is None
    assert Prediction(lambda size: 0.0).least("a", 8) == 0


@pytest.mark.parametrize("unlucky", [None, *SIZES[3:-1]])
def test_hope_for_a_far_size_is_near_the_line_whichever_call_lost_a_packet(unlucky):
    """A call that took 0.3 s more rules out no winner; a time of 15 times the bound does."""
    times = {n: 2e-3 + 6e-6 * n + 0.3 * (n == unlucky) for n in SIZES[:-1]}
    prediction = seen(times, lambda size: 4e-7 * size)
    true = 2e-3 + 6e-6 * SIZES[-1]
    hope = prediction.hope("a", SIZES[-1])
    assert hope <= true
    if unlucky is None or unlucky < SIZES[-5]:
        assert hope > 0.4 * true > 2 * prediction.least("a", SIZES[-1])


def test_no_long_call_is_hoped_to_take_less_than_the_bound():
    """Predictions were off by 40 %, so what is certain of a time of 1.5 s is below the bound."""
    prediction = Prediction(lambda size: 1e-6 * size)
    for size, seconds in ((1 << 16, 0.1), (1 << 18, 0.6), (1 << 20, 1.5)):
        prediction.observe(size, {"a": seconds})
    assert prediction.least("a", 1 << 20) < 1.0
    assert prediction.hope("a", 1 << 20) >= 1e-6 * (1 << 20)


@pytest.mark.parametrize(("over", "expected"), [(0.9, 0.9), (1.08, 1.08), (1.2, 1.0)])
def test_no_long_call_is_hoped_to_come_nearer_to_the_bound_than_the_best_did(over, expected):
    """Within a tenth of the bound, headers are taken for the rest; above that, latency may be."""

    def bound(size: int) -> float:
        return 1e-5 * size

    prediction = Prediction(bound)
    for size in (1 << 12, 1 << 13, 1 << 14):
        prediction.observe(size, {"best": over * bound(size), "a": 1.5 * over * bound(size)})
    prediction.observe(1 << 15, {"best": over * bound(1 << 15), "new": over * bound(1 << 15)})
    assert prediction.hope("new", 1 << 16) == pytest.approx(expected * bound(1 << 16))


def test_short_messages_that_buffers_took_do_not_lower_the_bound_of_long_ones():
    def bound(size: int) -> float:
        return 1e-5 * size

    prediction = Prediction(bound)
    prediction.observe(64, {"a": 0.5 * bound(64)})
    for size in (1 << 13, 1 << 14, 1 << 15):
        prediction.observe(size, {"a": 1.05 * bound(size)})
    assert prediction.hope("a", 1 << 16) >= bound(1 << 16)
    assert prediction.least("a", 1 << 16) - prediction.least("a", 1 << 15) >= 0.99 * bound(1 << 15)


def test_with_two_times_or_none_the_hope_is_the_certain_least():
    assert seen({}).hope("a", 4096) == 0
    prediction = seen({1: 1e-3, 512: 2e-3})
    assert prediction.hope("a", 1 << 20) == prediction.least("a", 1 << 20)
