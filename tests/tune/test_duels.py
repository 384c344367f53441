"""Duels: how long they go on, and how often they find a difference that is not there."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle

import pytest

from stagegen.measure.records import Candidate, Measurement, Request
from stagegen.measure.statistics import MARGIN
from stagegen.tune.duels import LONG_REPETITIONS, PROLONGED, Duels
from tests.measure.fakes import request

HOLDER, CHALLENGER = Candidate("holder"), Candidate("challenger")


@dataclass
class Drawn:
    """Answers requests with seconds that are drawn for each candidate."""

    draw: dict[Candidate, Callable[[], float]]
    asked: list[Request] = field(default_factory=list)

    def measure(self, asked: Request) -> Measurement:
        self.asked.append(asked)
        repetitions = range(asked.repetitions)
        return Measurement(
            asked, tuple(tuple(self.draw[c]() for _ in repetitions) for c in asked.candidates)
        )

    @property
    def repetitions(self) -> list[int]:
        return [one.repetitions for one in self.asked[1:]]  # the first is a look


def scout(size: int, candidates: tuple[Candidate, ...]) -> Request:
    return request(*candidates, size=size)


def duels(gain: float = MARGIN, **draw) -> tuple[Duels, Drawn]:
    source = Drawn({HOLDER: draw["holder"], CHALLENGER: draw["challenger"]})
    return Duels(source, scout, lambda what: None, gain), source


def in_turn(*seconds: float) -> Callable[[], float]:
    """Return these one after the other, again and again."""
    return partial(next, cycle(seconds))


def drawn_by(seed: int, noise: float) -> Callable[[], float]:
    """Return seconds that are drawn from one distribution."""
    chance = random.Random(seed)
    return lambda: 1 + noise * chance.expovariate(1)


def test_a_clear_duel_is_over_at_once():
    fought, source = duels(holder=lambda: 1.0, challenger=lambda: 0.5)
    assert fought.is_faster(64, CHALLENGER, HOLDER)
    assert source.repetitions == [LONG_REPETITIONS]


def test_a_duel_without_a_difference_does_not_go_on():
    fought, source = duels(holder=lambda: 1.0, challenger=lambda: 0.99)
    assert not fought.is_faster(64, CHALLENGER, HOLDER)
    assert source.repetitions == [LONG_REPETITIONS]


@pytest.mark.parametrize(("gain", "wins"), [(0.03, True), (0.2, False)])
def test_a_challenger_must_gain_what_was_asked_for(gain, wins):
    fought, _ = duels(gain, holder=lambda: 1.0, challenger=lambda: 0.9)
    assert fought.is_faster(64, CHALLENGER, HOLDER) is wins


def test_an_open_duel_goes_on_once():
    """The holder is mostly slower, but not in each repetition."""
    fought, source = duels(holder=in_turn(2.0, 2.0, 0.9, 2.0, 2.0, 2.0), challenger=lambda: 1.0)
    assert fought.is_faster(64, CHALLENGER, HOLDER)
    assert source.repetitions == [LONG_REPETITIONS, PROLONGED * LONG_REPETITIONS]
    assert fought.is_faster(64, CHALLENGER, HOLDER)
    assert len(source.repetitions) == 2


def test_an_undecided_duel_leaves_the_holder():
    fought, source = duels(holder=in_turn(0.5, 0.5, 2.0, 2.0), challenger=lambda: 1.0)
    assert not fought.is_faster(64, CHALLENGER, HOLDER)
    assert not fought.is_faster(64, CHALLENGER, HOLDER)
    assert len(source.repetitions) == 2


@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_equals_seldom_beat_each_other(noise):
    won = 0
    for seed in range(400):
        draw = drawn_by(seed, noise)
        won += duels(holder=draw, challenger=draw)[0].is_faster(64, CHALLENGER, HOLDER)
    assert won / 400 < 0.06
