"""Plans of ranks that come late: what is drawn, what is replayed, and what is refused."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stagegen.measure.arrivals import (
    CALLS_MOST,
    FACTOR_MOST,
    LAUNCH,
    Imbalance,
    Replay,
    arrivals_from_json,
)

SEEDS = st.integers(0, 1 << 62)


@given(SEEDS, st.integers(1, FACTOR_MOST), st.integers(0, 1 << 30), st.integers(0, 10_000))
def test_a_draw_is_below_max_and_always_the_same(seed, most, experiment, rank):
    plan = Imbalance(most, True, seed)
    assert 0 <= plan.draw(experiment, rank) < most
    assert plan.draw(experiment, rank) == Imbalance(most, False, seed).draw(experiment, rank)


@pytest.mark.parametrize("seed", [0, 1, 2, 1 << 40])
@pytest.mark.parametrize("most", [2, 16, 257])
def test_draws_are_uniform_over_ranks_and_experiments(seed, most):
    plan = Imbalance(most, True, seed)
    for draws in (
        [plan.draw(0, rank) for rank in range(4000)],
        [plan.draw(experiment, 3) for experiment in range(4000)],
    ):
        counts = Counter(draws)
        observed = [counts[value] for value in range(most)]
        assert stats.chisquare(observed).pvalue > 1e-6


def test_ranks_experiments_and_seeds_have_draws_of_their_own():
    def drawn(seed: int, experiments: range, ranks: range) -> tuple[int, ...]:
        plan = Imbalance(FACTOR_MOST, True, seed)
        return tuple(plan.draw(e, r) for e in experiments for r in ranks)

    assert len(set(drawn(1, range(1), range(64)))) > 48
    assert len(set(drawn(1, range(64), range(1)))) > 48
    assert drawn(1, range(8), range(8)) != drawn(2, range(8), range(8))


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("16", Imbalance(16, True)), ("1", Imbalance(1, True)), ("20ms", Imbalance(20000, False)),
        ("1.5ms", Imbalance(1500, False)), ("7us", Imbalance(7, False)),
        ("2s", Imbalance(2_000_000, False)),
    ],
)  # fmt: skip
def test_max_is_a_factor_or_a_time(text, plan):
    assert Imbalance.parse(text) == plan


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "x", "16x", "0ms", "61s", "5000", "ms"])
def test_another_max_is_refused_and_what_to_give_is_said(text):
    with pytest.raises(ValueError, match=r"imbalance:16|must be from"):
        Imbalance.parse(text)


def test_the_longest_delay_is_one_unit_below_max():
    assert Imbalance(16, True).longest(2.0) == 30.0
    assert Imbalance(1001, False).longest(None) == pytest.approx(1e-3)
    assert Replay.of("x", [[1.0, 1.5], [2.0, 2.25]]).longest() == 0.5


@given(st.integers(1, 5), st.data())
def test_a_recording_keeps_the_differences_within_each_call(ranks, data):
    times = st.floats(0, 1000, allow_subnormal=False)
    calls = st.lists(st.lists(times, min_size=ranks, max_size=ranks), min_size=1, max_size=20)
    offsets = data.draw(calls)
    replay = Replay.of("site", offsets)
    assert (replay.ranks, replay.calls) == (ranks, len(offsets))
    for call, delays in zip(offsets, replay.delays, strict=True):
        assert min(delays) == 0
        assert delays == tuple(round(1e6 * (time - min(call))) for time in call)
    assert arrivals_from_json(replay.to_json()) == replay


def test_a_long_recording_gives_evenly_spaced_calls():
    offsets = [[0.0, call * 1e-6] for call in range(10 * CALLS_MOST)]
    replay = Replay.of("site", offsets)
    assert [late for _, late in replay.delays] == list(range(0, 10 * CALLS_MOST, 10))


def replayed(replay: Replay, experiment: int, repetitions: int, calls: int) -> list[int]:
    """The recorded calls that the driver replays (drivers/arrivals.c), by the delays of rank 1."""
    first = int(replay.word(experiment, None, calls).rpartition("=")[2])
    order = [late for _, late in replay.in_turn]
    numbers = range(first * calls, (first + repetitions) * calls)
    return [order[number % len(order)] for number in numbers]


def recorded(count: int) -> Replay:
    """Rank 1 is as many microseconds late as the number of the call."""
    return Replay.of("site", [[0.0, 1e-6 * call] for call in range(count)])


@pytest.mark.parametrize("calls", [1, 5, 8])
@pytest.mark.parametrize("count", [64, 100, 250, 500, 512])
def test_launches_replay_other_calls_also_where_their_number_divides_that_of_experiments(
    count, calls
):
    replay = recorded(count)
    each = max(1, count // (4 * calls * 3))
    seen = [set(replayed(replay, LAUNCH * launch, each, calls)) for launch in range(4)]
    assert len(set().union(*seen)) == sum(map(len, seen))


@pytest.mark.parametrize("experiment", [0, LAUNCH, 2 * LAUNCH + 7])
@pytest.mark.parametrize("count", [64, 100, 512])
def test_a_few_experiments_are_of_all_of_the_recording(count, experiment):
    calls = sorted(replayed(recorded(count), experiment, 32, 1))
    gaps = [after - before for before, after in itertools.pairwise([0, *calls, count])]
    assert max(gaps) <= 4 * count / 32


@given(st.integers(1, CALLS_MOST), st.integers(1, 8), st.integers(0, 5))
def test_all_recorded_calls_are_replayed_before_any_again(count, calls, launch):
    replay = recorded(count)
    repetitions = -(-count // calls)
    numbers = replayed(replay, LAUNCH * launch, repetitions, calls)[:count]
    assert sorted(numbers) == list(range(count))


def test_a_log_keeps_the_longest_delay_and_the_error_of_the_recordings_clocks():
    replay = Replay.of("site", [[0.0, 1.5]], 12e-6)
    again = arrivals_from_json(json.loads(json.dumps(replay.to_json())))
    assert again == replay
    assert again.longest() == 1.5
    assert again.text == replay.text
    assert "12 µs" in again.text
    older = {k: v for k, v in replay.to_json().items() if k not in ("most", "recorded_within_s")}
    assert arrivals_from_json(older) == replay


def test_other_delays_are_another_plan():
    assert Replay.of("site", [[0.0, 1.0]]) != Replay.of("site", [[0.0, 1.1]])


@pytest.mark.parametrize("offsets", [[], [[]], [[0.0, 1.0], [0.0]]])
def test_a_recording_without_calls_or_of_uneven_calls_is_refused(offsets):
    with pytest.raises(ValueError, match="recording"):
        Replay.of("site", offsets)
