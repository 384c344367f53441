"""Long calls whose times vary: what is steady has launches, and is not beaten by luck."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.measure.records import Candidate
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.elimination import eliminate
from stagegen.tune.field import Field
from stagegen.tune.launches import name_finalists, run_launch
from stagegen.tune.point import Point
from stagegen.tune.protocol import Protocol
from tests.measure.fakes import Model, request

NATIVE = NATIVE_CANDIDATE
STEADY, LUCKY = Candidate("steady"), Candidate("lucky")


@pytest.mark.parametrize(
    ("again", "steady", "is_finalist"),
    [
        pytest.param(0.3, 0.32, True, id="near the best"),
        pytest.param(0.3, 0.33, False, id="far from it"),
        pytest.param(0.7, 0.45, True, id="far from it, and looks are erratic"),
        pytest.param(0.7, 0.55, False, id="no faster than they are in the median"),
    ],
)
def test_a_routine_with_a_schedule_may_be_a_finalist_though_its_look_is_not_the_best(
    again, steady, is_finalist
):
    unaware = (Candidate("lucky"), NATIVE)
    scheduled = Candidate("scheduled"), Candidate("scheduled_and_slow")
    racers = *unaware, *scheduled
    seen = {NATIVE: [0.3, again], unaware[0]: [0.28], scheduled[0]: [steady], scheduled[1]: [0.6]}
    field = Field(racers, (frozenset(racers), frozenset(unaware)))
    point = Point(field, seen, seen)
    name_finalists(point, [])
    assert {*point.finalists} == {*unaware, *scheduled[:is_finalist]}


def test_of_a_pattern_the_order_of_its_own_messages_is_the_steady_one():
    """Phases of all ranks keep no order of what is sent, so their look may be lucky, too."""
    of_ranks, of_pattern = Candidate("spreading_simple"), Candidate("pattern_p")
    racers = of_ranks, of_pattern, NATIVE
    seen = {NATIVE: [0.3, 0.3], of_ranks: [0.28], of_pattern: [0.31]}
    groups = (frozenset(racers),)
    field = Field(racers, groups, frozenset(racers[:2]), frozenset({of_pattern}))
    point = Point(field, seen, seen)
    name_finalists(point, [])
    assert of_pattern in point.finalists


def test_what_has_the_better_mean_is_not_behind():
    """The leader has the better median, and one call in three that takes twice as long."""
    racers = STEADY, LUCKY, NATIVE
    point = Point(Field(racers, (frozenset(racers),)), {c: [0.3] for c in racers}, {})
    point.finalists = racers
    point.ranks = dict.fromkeys(racers, 0.3)
    for launch in (1, 2):
        for candidate, times in {
            STEADY: [0.3] * 3, LUCKY: [0.28, 0.28, 0.6], NATIVE: [0.5] * 3
        }.items():  # fmt: skip
            point.raced.setdefault(candidate, {})[launch] = list(times)
        point.launches.append(launch)
        eliminate(point, Protocol(), 0.0)
    assert STEADY not in point.out


def test_what_is_slow_in_general_and_lucky_in_a_launch_is_repeated_there():
    """By its first call, the native routine would win the launch."""
    racers = STEADY, NATIVE
    usual = {STEADY: 1.0, NATIVE: 1.9}
    point = Point(Field(racers, (frozenset(racers),)), {c: [usual[c]] for c in racers}, {})
    point.finalists, point.launches, point.ranks = racers, [1, 2], usual
    point.raced = {c: {1: [usual[c]], 2: [usual[c]]} for c in racers}
    model = Model(lambda candidate, size: 0.9 if candidate == NATIVE else 1.0)
    run_launch(model, replace(request(*racers), launch=3), point, Protocol(), 20.0)
    assert [set(asked.candidates) for asked in model.asked][:3] == [set(racers)] * 3
