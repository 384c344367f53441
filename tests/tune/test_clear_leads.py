"""Which differences count after fewer launches than a test needs."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from stagegen.measure.records import Candidate
from stagegen.tune.choose import choose, choose_all, without_doubtful
from stagegen.tune.field import DEAR_SECONDS, Sample
from stagegen.tune.one_rule import choose_one

NATIVE, AWARE, PLAIN = map(Candidate, ("native", "aware", "plain"))


def timed(seconds: float, launches: int) -> Sample:
    seconds *= 2 * DEAR_SECONDS
    times = (seconds,) * launches
    return Sample(times, False, (seconds,), dict.fromkeys(range(1, launches + 1), (seconds,)))


@pytest.mark.parametrize(
    ("factor", "launches", "expected"),
    [(1.35, 1, "plain"), (1.25, 1, "native"), (1.15, 2, "plain"), (1.1, 2, "native")],
)
def test_few_launches_tell_a_large_difference_of_long_calls(factor, launches, expected):
    samples = {NATIVE: timed(factor, launches), PLAIN: timed(1.0, launches)}
    assert choose(samples, NATIVE).algorithm == expected


@pytest.mark.parametrize(
    ("seconds", "factor", "expected"),
    [(1.0, 1.08, "plain"), (1.0, 1.05, "native"), (1e-3, 1.18, "plain"), (1e-3, 1.12, "native")],
)
def test_looks_alone_replace_native_only_by_more_than_they_may_err(seconds, factor, expected):
    looks = {NATIVE: Sample((factor * seconds,)), PLAIN: Sample((seconds, 1.3 * seconds))}
    assert choose(without_doubtful(looks), NATIVE).algorithm == expected


@pytest.mark.parametrize(("other_look", "expected"), [(1.1, "plain"), (1.3, "native")])
def test_what_is_clear_must_be_above_the_noise_of_other_sizes(other_look, expected):
    """Plain leads by 1.4 in one launch. At the other size, looks and launches differ."""
    other = replace(timed(1.0, 1), scouted=(2 * other_look * DEAR_SECONDS,))
    samples = {
        1 << 20: {NATIVE: timed(1.4, 1), PLAIN: timed(1.0, 1)},
        1 << 21: {NATIVE: other, PLAIN: other, AWARE: other},
    }
    assert choose_all(samples)[1 << 20].algorithm == expected


@pytest.mark.parametrize(
    ("unit", "behind", "expected"),
    [(0.2, 1.01, "plain"), (1e-3, 1.01, "native"), (0.2, 0.99, "native")],
    ids=["long calls", "short calls", "behind in a launch"],
)
def test_long_calls_may_gain_in_the_mean(unit, behind, expected):
    """Native takes 1 % longer in most launches, and 30 % in two."""

    def launched(*seconds: float) -> Sample:
        launches = {n: (one * unit,) for n, one in enumerate(seconds, start=1)}
        times = tuple(one for (one,) in launches.values())
        return Sample(times, False, times[:1], launches, min(times))

    native = launched(1.01, 1.3, behind, 1.3, 1.01)
    assert choose({NATIVE: native, PLAIN: launched(*[1.0] * 5)}, NATIVE).algorithm == expected


@pytest.mark.parametrize(
    ("unit", "launches", "native", "expected"),
    [
        pytest.param(0.2, 5, (0.96, 2.0, 0.96), "plain", id="long calls"),
        pytest.param(1e-3, 5, (0.96, 2.0, 0.96), "native", id="short calls"),
        pytest.param(0.2, 3, (0.96, 0.9, 1.5, 2.0), "native", id="too few launches"),
    ],
)
def test_long_calls_that_are_slow_now_and_then_are_compared_by_their_means(
    unit, launches, native, expected
):
    """Most calls of native take less time, or half of them, and the others far more."""

    def launched(*seconds: float) -> Sample:
        times = {n: tuple(unit * one for one in seconds) for n in range(1, 1 + launches)}
        return Sample(launches * times[1], False, times[1][:1], times, unit)

    samples = {NATIVE: launched(*native), PLAIN: launched(*[1.0] * len(native))}
    assert choose(samples, NATIVE).algorithm == expected


def test_launches_decide_what_looks_do_not_tell():
    samples = {NATIVE: of_calls(1.1, 5, 3), PLAIN: of_calls(1.0, 5, 3)}
    assert without_doubtful(samples) == samples


def test_a_routine_that_is_faster_by_far_serves_whatever_the_look_ranked_first():
    """After the first launch, native was not timed beside the two any more."""
    native, plain, aware = timed(1.6, 1), timed(1.35, 2), timed(1.0, 2)
    samples = {NATIVE: native, PLAIN: replace(plain, rank=1.0), AWARE: replace(aware, rank=1.1)}
    assert choose(samples, NATIVE) == AWARE
    assert choose({NATIVE: native, PLAIN: samples[PLAIN]}, NATIVE) == NATIVE


def of_calls(seconds: float, launches: int, rounds: int) -> Sample:
    """Return the times of equal calls: one look, and some in each launch."""
    times = dict.fromkeys(range(1, launches + 1), (seconds,) * rounds)
    return Sample((seconds,) * launches * rounds, False, (seconds,), times)


@pytest.mark.parametrize(
    ("fast", "slow", "launches", "rounds", "expected"),
    [
        pytest.param(0.9, 4.3, 1, 1, "plain", id="more than a hiccup"),
        pytest.param(0.2, 0.4, 2, 1, "native", id="three times may all have met a hiccup"),
        pytest.param(0.2, 0.4, 1, 3, "plain", id="four have not"),
        pytest.param(0.2, 0.25, 1, 3, "native", id="not by far in one launch"),
        pytest.param(0.2, 0.25, 2, 2, "plain", id="by far in two"),
        pytest.param(0.01, 0.014, 1, 3, "native", id="short calls, not by far"),
        pytest.param(0.01, 0.016, 1, 3, "plain", id="short calls, by far"),
        pytest.param(0.99, 1.4, 1, 3, "native", id="just below a second, not by far"),
        pytest.param(1.01, 1.4, 1, 3, "plain", id="just above it, by far"),
    ],
)
def test_few_launches_tell_of_calls_that_are_not_dear_what_no_hiccup_explains(
    fast, slow, launches, rounds, expected
):
    """Within a budget there may be no more launches than these."""
    samples = {NATIVE: of_calls(slow, launches, rounds), PLAIN: of_calls(fast, launches, rounds)}
    assert choose(samples, NATIVE).algorithm == expected


@pytest.mark.parametrize(("slow", "launches"), [(0.016, 1), (2.8, 1), (2.24, 2)])
def test_what_is_faster_by_far_must_have_the_least_gain(slow, launches):
    fast = 0.01 if slow < 1 else 2.0
    samples = {NATIVE: of_calls(slow, launches, 3), PLAIN: of_calls(fast, launches, 3)}
    assert choose(samples, NATIVE, gain=0.9 - fast / slow) == PLAIN
    assert choose(samples, NATIVE, gain=1.01 - fast / slow) == NATIVE


@pytest.mark.parametrize("launches", [1, 2, 3])
def test_luck_in_few_launches_seldom_replaces_native(launches):
    """Both take the same time, give or take a tenth; one call in a hundred meets a hiccup."""
    chance = random.Random(launches)

    def call() -> float:
        return 0.5 * math.exp(chance.gauss(0, 0.1)) + 0.25 * (chance.random() < 0.01)

    def drawn() -> Sample:
        times = {n: (call(),) for n in range(1, launches + 1)}
        return Sample(tuple(t for one in times.values() for t in one), False, (call(),), times)

    changed = sum(choose({NATIVE: drawn(), PLAIN: drawn()}, NATIVE) == PLAIN for _ in range(4000))
    assert changed / 4000 < 1 / 32


def test_one_lucky_time_of_the_native_routine_keeps_it():
    lucky = Sample((2.0, 3.0), False, (3.0,), {1: (2.0,), 2: (3.0,)})
    assert choose({NATIVE: lucky, PLAIN: timed(1.0, 2)}, NATIVE) == NATIVE


def test_what_lost_by_far_does_not_serve_because_a_later_launch_was_slow_for_the_others():
    """The median of the winner is above the only time of the loser."""
    slow = Sample((2.0, 3.6), False, (2.0,), {1: (2.0,), 2: (3.6,)}, 2.0)
    lost = Sample((2.7,), False, (2.7,), {1: (2.7,)}, 2.7)
    gone = Sample((9.0,), True, (9.0,))
    assert choose({AWARE: slow, PLAIN: lost, NATIVE: gone}, NATIVE) == AWARE


def test_one_rule_may_be_what_beats_native_by_far():
    """Native is not timed again after it lost the first launch by far."""
    long = {NATIVE: timed(1.35, 1), PLAIN: timed(1.0, 2)}
    short = {NATIVE: timed(1.0, 5), PLAIN: timed(1.0, 5)}
    assert choose_one({1: short, 1 << 20: long}, 0.03) == PLAIN
