"""Launches that confirm what another search told: few finalists, few repetitions, early ends."""

from __future__ import annotations

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import (
    Candidate,
    Request,
    Timing,
)
from stagegen.tune.elimination import eliminate
from stagegen.tune.field import Field
from stagegen.tune.launches import FINALISTS_IF_TOLD, name_finalists, run_launch
from stagegen.tune.point import Point
from stagegen.tune.protocol import Protocol
from stagegen.tune.scope import Options
from stagegen.tune.tuner import tune
from tests.measure.fakes import Model
from tests.strategies import make_topology

CATALOGUE = load_catalogue()

NATIVE, RING, TREE = map(Candidate, ("native", "ring", "tree"))


def challenged(*finalists: Candidate, groups: tuple[set[Candidate], ...]) -> Point:
    """Return a size at which ring was faster elsewhere, and leads."""
    seconds = {RING: 1e-3, TREE: 1.05e-3, NATIVE: 1.3e-3}
    seen = {c: [seconds[c]] for c in finalists}
    point = Point(Field(finalists, tuple(map(frozenset, groups))), seen, dict(seen))
    point.told = frozenset({"ring"})
    point.finalists = finalists
    point.holders = frozenset({NATIVE})
    point.ranks = {c: seconds[c] for c in finalists}
    return point


def after_launches(point: Point, *times: dict[Candidate, float]) -> tuple[Candidate, ...]:
    """Return what still runs after launches in which candidates took these seconds."""
    for launch, seconds in enumerate(times, start=1):
        for candidate in point.running:
            point.raced.setdefault(candidate, {})[launch] = [seconds[candidate]] * 3
        point.launches.append(launch)
        eliminate(point, Protocol(gain=0.1), 0.1)
    return point.running


def test_only_jobs_that_another_search_tells_of_have_few_finalists():
    """The first search on one host has no teacher: three routines go into launches, not one."""
    lines = {"native": 1.0, "binomial": 0.8, "flat": 0.81, "pipelined_linear": 0.82}
    model = Model(lambda c, size: 1e-3 * lines.get(c.algorithm, 3.0))
    ranks = [name for name in ("n0", "n1", "n2", "n3") for _ in range(4)]
    topology = make_topology([2, 2], [0], ranks, dict.fromkeys(("n0", "n1", "n2", "n3"), 4))
    options = Options(("bcast",), (1024,), Timing(), 1.0, ("whole", "2x4", "1x4"))
    tune(topology, CATALOGUE, options, model, lambda: True)
    finalists = {
        where: {
            candidate.algorithm
            for request in model.asked
            for candidate in request.candidates
            if (request.communicator, request.launch, request.size) == (where, 1, 1024)
        }
        for where in ("2x4", "1x4")
    }
    assert finalists == {"2x4": {"native", "binomial"}, "1x4": {*lines}}


@pytest.mark.parametrize("place", [0, 3, 6])
@pytest.mark.parametrize("is_told", [False, True])
def test_few_go_into_launches_where_another_search_has_told_what_may_win(is_told, place):
    """Native has the best look, or one in the middle, or the worst."""
    others = tuple(Candidate(f"c{number}") for number in range(6))
    racers = (*others[:place], NATIVE, *others[place:])
    seen = {c: [1e-3 * (1 + 0.01 * number)] for number, c in enumerate(racers)}
    point = Point(Field(racers, (frozenset(racers),)), seen, dict(seen))
    name_finalists(point, [], is_told=is_told)
    first = others[:FINALISTS_IF_TOLD] if is_told else racers[:3]
    assert set(point.finalists) == {*first, NATIVE}


def test_what_is_far_from_the_best_look_goes_into_no_launch_either():
    seen = {NATIVE: [1e-3], RING: [1.5e-3]}
    point = Point(Field((NATIVE, RING), (frozenset(seen),)), seen, dict(seen))
    name_finalists(point, [], is_told=True)
    assert point.finalists == (NATIVE,)


@pytest.mark.parametrize(("launches", "fewer"), [(5, True), (2, True), (1, False)])
def test_launches_that_confirm_make_fewer_repetitions(launches, fewer):
    """One launch alone cannot confirm."""
    model = Model(lambda c, size: {RING: 1e-3, NATIVE: 1.2e-3}[c], noise=0.5)

    def repetitions(told: frozenset[str]) -> int:
        point = challenged(RING, NATIVE, groups=({RING, NATIVE},))
        point.told = told
        asked = Request("bcast", 1024, Timing(), False, 1, 1, (RING, NATIVE), "4", 1)
        run_launch(model, asked, point, Protocol(launches=launches), 20.0)
        return len(point.pooled(NATIVE))

    assert (repetitions(frozenset({"ring"})) < repetitions(frozenset())) == fewer


ALONE = {RING: 1e-3, TREE: 1.05e-3, NATIVE: 1.15e-3}


def test_what_is_not_ahead_of_native_by_the_least_gain_goes_out_with_it():
    everyone = (RING, TREE, NATIVE)
    groups = (set(everyone),)
    assert after_launches(challenged(*everyone, groups=groups), ALONE, ALONE) == (RING,)
    close = {**ALONE, RING: 1.04e-3}
    assert NATIVE in after_launches(challenged(*everyone, groups=groups), ALONE, close)


def test_native_stays_where_a_kind_of_tables_has_no_challenger():
    """Ring uses tables of these hosts, and other hosts have none."""
    point = challenged(RING, NATIVE, groups=({RING, NATIVE}, {NATIVE}))
    assert NATIVE in after_launches(point, ALONE, ALONE)
