"""Medians, their intervals, and when a difference counts."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stagegen.measure.statistics import (
    CONFIDENCE,
    MARGIN,
    SIGNIFICANCE,
    is_faster,
    summarize,
)

times = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=40)

# n and the ranks (from 1) of the 95 % interval of the median, as tables of order statistics
# have them (Hollander and Wolfe; for n < 6 there is none, and the whole range is given).
TABLE = [(1, 1, 1), (5, 1, 5), (6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (12, 3, 10),
         (15, 4, 12), (20, 6, 15), (25, 8, 18), (30, 10, 21)]  # fmt: skip


@pytest.mark.parametrize(("count", "low", "high"), TABLE)
def test_intervals_are_those_of_the_tables(count, low, high):
    values = [float(i) for i in range(1, count + 1)]
    random.Random(1).shuffle(values)
    summary = summarize(values)
    assert (summary.low, summary.high) == (low, high)
    assert (summary.median, summary.count) == ((count + 1) / 2, count)


@pytest.mark.parametrize("count", range(6, 60))
def test_intervals_cover_and_are_not_too_wide(count):
    """The chance that the true median is outside is at most 5 %; one rank less and it is not."""
    summary = summarize([float(i) for i in range(count)])
    rank = int(summary.low)
    outside = 2 * stats.binom.cdf(rank, count, 0.5)
    assert outside <= 1 - CONFIDENCE + 1e-12
    assert 2 * stats.binom.cdf(rank + 1, count, 0.5) > 1 - CONFIDENCE


@given(times)
def test_a_summary_is_in_order(values):
    summary = summarize(values)
    assert min(values) <= summary.low <= summary.median <= summary.high <= max(values)
    assert summary.median == statistics.median(values)


def test_nothing_has_no_summary():
    with pytest.raises(ValueError, match="at least one"):
        summarize([])


@given(times, times)
def test_two_candidates_are_never_both_faster(one, other):
    assert not (is_faster(one, other) and is_faster(other, one))


@given(times)
def test_no_candidate_is_faster_than_itself(values):
    assert not is_faster(values, values)


def test_three_of_each_never_count_and_four_do():
    """All of one below all of the other: by chance that is 1 in 20, or 1 in 70."""
    assert not is_faster([1.0, 1.1, 1.2], [5.0, 6.0, 7.0])
    assert is_faster([1.0, 1.1, 1.2, 1.3], [5.0, 6.0, 7.0, 8.0])
    assert not is_faster([1.0, 1.1, 1.2, 7.5], [5.0, 6.0, 7.0, 8.0])


@given(st.lists(st.floats(1e-6, 1e-3), max_size=2), st.lists(st.floats(1.0, 9.0), max_size=40))
def test_too_few_repetitions_are_never_significant(few, many):
    """Two of each are never significant, and neither is none of one."""
    assert not is_faster(few[:0], many)
    assert not is_faster(few, many[:0])
    assert not is_faster(few, many[:2])


@given(times, times, st.sampled_from([2.0**-10, 0.5, 2.0, 1024.0]))
def test_the_unit_does_not_matter(one, other, factor):
    scaled = is_faster([factor * t for t in one], [factor * t for t in other])
    assert scaled == is_faster(one, other)


@given(times, times, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(one, other, chance):
    before = is_faster(one, other)
    chance.shuffle(one)
    chance.shuffle(other)
    assert is_faster(one, other) == before


@given(st.floats(1e-6, 1.0), st.integers(4, 30))
def test_a_gain_within_the_margin_is_not_worth_a_rule(time, count):
    assert not is_faster([time * (1 - MARGIN / 2)] * count, [time] * count)
    assert is_faster([time * (1 - 2 * MARGIN)] * count, [time] * count)


def test_noise_alone_is_seldom_taken_for_a_gain():
    chance = random.Random(3)
    wins = 0
    for _ in range(1000):
        one, other = ([1 + chance.expovariate(4) for _ in range(8)] for _ in range(2))
        wins += is_faster(one, other)
    assert wins <= 1000 * SIGNIFICANCE * 1.4


def test_one_outlier_changes_nothing():
    fast, slow = [1.0, 1.01, 0.99, 1.02, 1.0, 30.0], [1.5, 1.52, 1.49, 1.51, 1.5, 1.5]
    assert is_faster(fast, slow)
    assert not is_faster(slow, fast)
