"""Compositions are looked at where their parts say that they may win, and go on where they do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.measure.records import Bound, Candidate
from stagegen.tune.composing import Composing
from stagegen.tune.compositions import on_line
from stagegen.tune.field import Field
from stagegen.tune.point import Point
from tests.measure.fakes import Model, request

NATIVE, PLAIN = Candidate("native"), Candidate("ring")
SLOW, QUICK = (Candidate(name, (), (Bound("bcast", NATIVE),)) for name in ("slow", "quick"))


def field(candidates) -> Field:
    everyone = tuple(candidates)
    return Field(everyone, (frozenset(everyone),))


def point(plain: float) -> Point:
    seen = {NATIVE: [2 * plain], PLAIN: [plain]}
    return Point(field(seen), dict(seen), dict(seen))


def composing(model: Model) -> Composing:
    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    return Composing(model, ask, field, 0.03)


@pytest.mark.parametrize("plain", [0.004, 3.0])
def test_what_its_parts_rule_out_is_not_looked_at(plain):
    model = Model(lambda c, size: {SLOW: 2.0, QUICK: 0.8}.get(c, 1.0) * plain)
    here = point(plain)
    composing(model).look(1024, here, {SLOW: 2.0 * plain, QUICK: 0.8 * plain})
    assert SLOW not in {c for asked in model.asked for c in asked.candidates}
    assert QUICK in here.tried
    assert QUICK in here.field.candidates


def test_one_that_does_not_win_does_not_go_on():
    model = Model(lambda c, size: 0.99 if c == QUICK else 1.0)
    here = point(1.0)
    composing(model).look(1024, here, {QUICK: 0.9})
    assert QUICK in here.seen
    assert QUICK not in here.tried


def test_how_far_predictions_were_off_counts_at_the_next_size():
    """Twice as slow as its parts at several sizes: a larger one needs no look."""
    model = Model(lambda c, size: 1.6 if c == QUICK else 1.0)
    composer = composing(model)
    sizes = [1 << k for k in range(8)]
    for size in sizes:
        composer.look(size, point(1.0), {QUICK: 0.8})
    assert {asked.size for asked in model.asked} < set(sizes)


@pytest.mark.parametrize(("seconds", "is_looked_at"), [(2.0, False), (0.8, True)])
def test_what_compositions_took_on_another_communicator_tells_what_they_take(seconds, is_looked_at):
    """There, one took 2.5 times as long as its parts at several sizes, or just as long."""
    model = Model(lambda c, size: seconds if c == QUICK else 1.0)
    teacher, pupil = composing(model), composing(model)
    for size in (1 << k for k in range(8)):
        teacher.look(size, point(1.0), {QUICK: 0.8})
    pupil.learn_from(teacher)
    model.asked.clear()
    pupil.look(1024, point(1.0), {QUICK: 0.8})
    assert (QUICK in {c for asked in model.asked for c in asked.candidates}) == is_looked_at


def test_the_error_of_predictions_from_another_communicator_counts_twice():
    """There, predictions were off by 10 %. Parts that take 12 % more are ruled out there alone."""
    teacher = composing(Model(lambda c, size: 0.8 * 1.1 ** (size.bit_length() % 2)))
    for size in (1 << k for k in range(8)):
        teacher.look(size, point(1.0), {QUICK: 0.8})
    pupil = composing(Model(lambda c, size: 1.0))
    pupil.learn_from(teacher)
    for composer, is_looked_at in ((pupil, True), (teacher, False)):
        here = point(1.0)
        composer.look(128, here, {QUICK: 1.12})
        assert (QUICK in here.seen) == is_looked_at


def test_the_nearest_size_on_another_communicator_predicts_the_first_look():
    """There, one took as long as its parts with short messages, and twice as long with others."""
    teacher = composing(Model(lambda c, size: 0.6 if size < 1024 else 1.2))
    for size in (1 << k for k in range(16)):
        teacher.look(size, point(10.0), {QUICK: 0.6})
    for size, is_looked_at in ((8, True), (1 << 16, False)):
        pupil, here = composing(Model(lambda c, size: 0.6)), point(1.0)
        pupil.learn_from(teacher)
        pupil.look(size, here, {QUICK: 0.6})
        assert (QUICK in here.seen) == is_looked_at


@pytest.mark.parametrize(
    ("size", "seconds"), [(1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0), (8, 3.0), (12, 3.0)]
)
def test_a_part_is_predicted_by_the_line_through_the_sizes_around_it(size, seconds):
    assert on_line({2: 1.0, 4: 3.0, 8: 3.0}, size) == pytest.approx(seconds)


def test_a_part_beyond_the_measured_sizes_is_on_the_last_line():
    assert on_line({2: 1.0, 4: 3.0}, 8) == pytest.approx(7.0)
