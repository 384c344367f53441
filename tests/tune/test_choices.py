"""Who serves a size, given who serves the size before."""

from __future__ import annotations

import math

import pytest

from stagegen.measure.records import Candidate
from stagegen.tune.choose import choose
from stagegen.tune.race import Field, Sample, race
from tests.measure.fakes import Model, request

NATIVE = Candidate("native")
A, B = Candidate("a"), Candidate("b")


def sample(seconds: float, dropped: bool = False, count: int = 4) -> Sample:
    return Sample(tuple(seconds * (1 + i / 1000) for i in range(count)), dropped)


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        (sample(1.0), A),
        (sample(0.81), NATIVE),  # within the margin
        (sample(0.9, count=2), NATIVE),  # too few to say
        (sample(9.0, dropped=True), A),
    ],
)
@pytest.mark.parametrize("gone", [True, False])
def test_who_follows_an_incumbent_that_fell_behind_has_to_beat_the_native_routine(
    native, expected, gone
):
    samples = {A: sample(0.8, count=4), NATIVE: native}
    if not gone:
        samples[B] = sample(3.0, dropped=True, count=2)
    if native.seconds == sample(0.9, count=2).seconds:
        samples[A] = sample(0.8, count=2)
    assert choose(samples, B, NATIVE) == expected


def test_a_native_routine_that_fell_behind_is_not_returned_to():
    samples = {A: sample(1.0), NATIVE: sample(0.9, dropped=True, count=2)}
    assert choose(samples, A, NATIVE) == A


@pytest.mark.parametrize("budget", [0.0, math.inf])
def test_the_first_round_of_a_race_is_enough_to_replace_the_native_routine(budget):
    """Its times differ, but hardly: all is said after one round, and it must count."""
    model = Model(lambda candidate, size: 0.8 if candidate == A else 1.0, noise=0.001)
    racers = (A, NATIVE)
    field = Field(racers, (frozenset(racers),))
    samples = race(model, request(*racers), field, budget)
    looks = [one for one in model.asked if one.repetitions == 1]
    assert len(model.asked) == len(looks) + 1
    assert choose(samples, NATIVE, NATIVE) == A
