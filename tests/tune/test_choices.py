"""What serves a size, from the times of several launches and what serves the sizes beside it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import is_faster_in_launches, may_be_faster, signed_rank
from stagegen.tune.choose import choose, choose_all
from stagegen.tune.field import Sample

NATIVE = Candidate("native")
A, B = Candidate("a"), Candidate("b")
LAUNCHES = range(1, 6)


def sample(seconds: float, dropped: bool = False, scouted: float | None = None) -> Sample:
    launches = dict.fromkeys(LAUNCHES, (seconds, seconds * 1.001, seconds * 1.002))
    pooled = tuple(time for times in launches.values() for time in times)
    return Sample(pooled, dropped, (scouted or seconds,), launches)


@pytest.mark.parametrize("incumbent", [NATIVE, A, B])
@pytest.mark.parametrize(
    ("native", "expected"),
    [(sample(1.0), A), (sample(0.81), NATIVE), (sample(9.0, dropped=True), A)],
)
def test_what_replaces_the_native_routine_must_gain_more_than_the_margin(
    native, expected, incumbent
):
    samples = {A: sample(0.8), B: sample(3.0, dropped=True), NATIVE: native}
    assert choose(samples, incumbent) == expected


def test_a_routine_that_lost_in_one_launch_of_five_does_not_replace_the_native_one():
    unlucky = {**sample(0.8).launches, 3: (1.1, 1.1, 1.1)}
    samples = {A: Sample(sample(0.8).seconds, False, (), unlucky), NATIVE: sample(1.0)}
    assert choose(samples, A) == NATIVE


def test_what_serves_the_size_before_stays_if_the_leader_cannot_be_told_from_it():
    samples = {A: sample(0.80), B: sample(0.79), NATIVE: sample(1.0)}
    assert choose(samples, A) == A
    assert choose(samples, NATIVE) == B
    assert choose({**samples, B: sample(0.7)}, A) == B


def test_what_serves_the_size_after_has_a_say_too():
    """At 1 byte the two are alike; at 64 bytes one is faster."""
    alike = {A: sample(0.79), B: sample(0.80), NATIVE: sample(1.0)}
    apart = {A: sample(0.9), B: sample(0.5), NATIVE: sample(1.0)}
    assert choose_all({1: alike, 64: apart}) == {1: B, 64: B}


def test_native_serves_where_nothing_is_faster_even_between_sizes_that_others_serve():
    alike = {A: sample(1.0), NATIVE: sample(1.0)}
    better = {A: sample(0.5), NATIVE: sample(1.0)}
    assert choose_all({1: better, 2: alike, 4: better}) == {1: A, 2: NATIVE, 4: A}


def unsteady(seconds: float, losing: Sequence[int] = (1, 3, 5)) -> Sample:
    """A sample in which a frame was lost in one call of some launches."""
    lost = (seconds, seconds * 1.001, seconds + 2.0)
    launches = {**sample(seconds).launches, **dict.fromkeys(losing, lost)}
    pooled = tuple(time for times in launches.values() for time in times)
    return Sample(pooled, False, (seconds,), launches)


@pytest.mark.parametrize("incumbent", [A, B, NATIVE])
def test_the_steadier_of_two_equals_serves(incumbent):
    samples = {A: unsteady(1.0), B: sample(1.001), NATIVE: sample(2.0)}
    assert choose(samples, incumbent) == B


@pytest.mark.parametrize("incumbent", [A, NATIVE])
def test_a_frame_that_was_lost_in_few_launches_does_not_count_against_steadiness(incumbent):
    samples = {A: unsteady(1.0, (2, 4)), B: sample(1.001), NATIVE: sample(2.0)}
    assert choose(samples, incumbent) == A


def test_a_steadier_one_that_is_slower_does_not_serve():
    samples = {A: unsteady(1.0), B: sample(1.2), NATIVE: sample(2.0)}
    assert choose(samples, A) == A


@pytest.mark.parametrize("incumbent", [A, NATIVE])
def test_a_frame_that_was_lost_while_scouting_does_not_count_against_steadiness(incumbent):
    """There are one or two looks at each: one lost frame would be most of their mean."""
    samples = {A: sample(1.0, scouted=9.0), B: sample(1.001), NATIVE: sample(2.0)}
    assert choose(samples, incumbent) == A


def test_before_any_launch_looks_decide_which_of_equals_is_steadier():
    samples = {A: Sample((1.0, 9.0)), B: Sample((1.001, 1.001)), NATIVE: Sample((2.0,))}
    assert choose(samples, NATIVE) == B


def test_fewer_launches_need_all_of_their_rounds():
    fast, slow = {1: (1.0,) * 5}, {1: (2.0,) * 5}
    assert is_faster_in_launches(fast, slow)
    assert not is_faster_in_launches({1: fast[1][:4]}, {1: slow[1][:4]})
    assert not is_faster_in_launches({1: fast[1], 2: (3.0,) * 5}, {1: slow[1], 2: slow[1]})


def test_a_signed_rank_is_what_all_signs_give():
    """By counting: of three ratios, the signs of the ranks 1, 2, 3 make sums of 0, 1, 2, 3 …"""
    assert signed_rank([0.9, 0.8, 0.7]) == 1 / 8
    assert signed_rank([1.05, 0.8, 0.7]) == 2 / 8
    assert signed_rank([0.9, 1.3, 0.7]) == 3 / 8
    assert signed_rank([1.2, 1.3, 1.4]) == 1
    assert signed_rank([1.0, 1.0, 1.0]) == 1


@pytest.mark.parametrize("launches", [3, 5, 6, 7])
def test_a_challenger_is_given_up_only_if_it_cannot_win(launches):
    chance = random.Random(launches)
    given_up = 0
    for _ in range(300):
        ratios = [chance.uniform(0.85, 1.05) for _ in range(launches)]
        by_launch = {n: (ratio,) * 3 for n, ratio in enumerate(ratios)}
        won = is_faster_in_launches(by_launch, dict.fromkeys(by_launch, (1.0,) * 3))
        for seen in range(1, launches):
            possible = may_be_faster(ratios[:seen], launches)
            given_up += not possible
            assert possible or not won
    assert given_up


def test_equals_replace_each_other_no_more_often_than_stated():
    """Whatever differs between launches: at most once in 32, and less with the least gain."""
    chance = random.Random(1)
    won = 0
    for _ in range(4000):
        ours = {n: (chance.lognormvariate(0, 0.1),) for n in LAUNCHES}
        theirs = {n: (chance.lognormvariate(0, 0.1),) for n in LAUNCHES}
        won += is_faster_in_launches(ours, theirs)
    assert won / 4000 <= 1 / 32
