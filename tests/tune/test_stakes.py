"""What a choice may lose, by what is known of a size and of those beside it."""

from __future__ import annotations

import pytest

from stagegen.measure.records import Candidate
from stagegen.tune.decision import Estimate
from stagegen.tune.field import Field
from stagegen.tune.point import Point
from stagegen.tune.prediction import Prediction
from stagegen.tune.stakes import LAUNCHES, NEIGHBOURS, NOTHING, SCOUTING, UNKNOWN, Stakes

A, B, C = (Candidate(name) for name in "abc")


def point(**seconds: float) -> Point:
    candidates = tuple(map(Candidate, seconds))
    seen = {Candidate(name): [time] for name, time in seconds.items()}
    return Point(Field(candidates, (frozenset(candidates),)), seen, dict(seen))


def below(points: dict[int, Point]):
    def predicted(size: int) -> Prediction:
        prediction = Prediction(lambda _: 0.0)
        for smaller in sorted(s for s in points if s < size):
            seen = points[smaller].seen
            prediction.observe(smaller, {c.algorithm: min(t) for c, t in seen.items()})
        return prediction

    return predicted


def stakes(points: dict[int, Point], **more) -> Stakes:
    return Stakes(points, lambda _: 0.0, below(points), **more)


def test_the_loss_is_unknown_where_nothing_was_measured():
    estimate = stakes({}).estimate(64, A)
    assert (estimate.loss, estimate.basis) == (None, NOTHING)


def test_looks_are_known_to_within_their_error():
    found = stakes({64: point(a=1.0, b=1.2)})
    best, other = (found.estimate(64, one) for one in (A, B))
    assert best.basis == other.basis == SCOUTING
    assert best.loss == 0  # 1.05 s at the most, and the other 1.14 s at the least
    assert other.loss == pytest.approx(1.26 / 0.95 - 1)


def test_launches_bound_the_loss_better_than_looks():
    one = point(a=1.0, b=1.05)
    looked_at = stakes({64: one}).estimate(64, B).loss
    one.raced = {c: {n: [t] * 3 for n in range(5)} for c, t in ((A, 1.0), (B, 1.05))}
    one.launches = [0, 1, 2, 3, 4]
    timed = stakes({64: one}).estimate(64, B)
    assert timed.basis == LAUNCHES
    assert timed.loss == pytest.approx(0.05)
    assert timed.loss < looked_at


def test_one_hiccup_among_few_times_does_not_make_the_loss():
    """One of three calls of the only launch took 0.2 s more."""
    one = point(a=0.01, b=0.011)
    one.raced = {A: {1: [0.01, 0.01, 0.21]}, B: {1: [0.011, 0.011, 0.011]}}
    one.launches = [1]
    assert stakes({64: one}).estimate(64, A).loss == 0
    one.raced[A] = {1: [0.01] * 9 + [0.21] * 3}
    assert stakes({64: one}).estimate(64, A).loss == 0
    one.raced[A] = {1: [0.02, 0.02, 0.21]}
    assert stakes({64: one}).estimate(64, A).loss > 0.5


def test_hiccups_in_half_of_many_times_make_the_loss():
    one = point(a=0.01, b=0.011)
    one.raced = {A: {1: [0.01] * 6 + [0.21] * 5}, B: {1: [0.011] * 11}}
    one.launches = [1]
    assert stakes({64: one}).estimate(64, A).loss > 5


def test_a_line_goes_through_the_sizes_on_both_sides():
    points = {100: point(a=1.0, b=2.0), 300: point(a=3.0, b=2.0)}
    found = stakes(points).estimate(200, A)
    assert found.basis == NEIGHBOURS
    # Both take 2 s by the lines; before any prediction was made, they are right to within 40 %.
    assert found.loss == pytest.approx(2.8 / 1.2 - 1)


def test_a_candidate_that_may_not_serve_takes_no_part():
    points = {64: point(a=1.0, b=5.0)}
    assert stakes(points, belongs=lambda c: c == B).estimate(64, B).loss == 0
    assert stakes(points).estimate(64, B).loss > 4


def test_an_algorithm_that_was_only_seen_below_may_still_be_the_best():
    points = {64: point(a=1.0, c=0.1), 128: point(a=1.0)}
    assert stakes(points).estimate(128, A).loss > stakes({128: point(a=1.0)}).estimate(128, A).loss


def test_a_choice_that_was_never_timed_there_is_not_known():
    assert stakes({64: point(a=1.0)}).estimate(64, C).basis == NOTHING


def test_the_loss_is_unknown_if_looks_differ_by_as_much_as_they_take():
    one = point(a=1.0, b=1.2)
    one.seen = {A: [1.0, 9.0], B: [1.2, 9.0]}
    found = stakes({64: one})
    assert found.estimate(64, A) == Estimate(64, None, SCOUTING)
    assert found.factor(64, A) == UNKNOWN
