"""Hints from one communicator for another: the best candidates of the nearest shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Bound, Candidate, Request, Timing
from stagegen.tune.elimination import eliminate
from stagegen.tune.field import Field, Sample
from stagegen.tune.hints import Known, hints_from
from stagegen.tune.launches import run_launch
from stagegen.tune.plan import Outcome, Plan
from stagegen.tune.point import Point
from stagegen.tune.prediction import Prediction
from stagegen.tune.protocol import Protocol
from stagegen.tune.scope import Options
from stagegen.tune.scouting import Scout
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import tune
from tests.measure.fakes import Model
from tests.strategies import make_topology

CATALOGUE = load_catalogue()

NATIVE, RING, TREE, PAIR = map(Candidate, ("native", "ring", "tree", "pair"))
ALL = {"native", "ring", "tree", "pair", "composed"}


def outcome(**seconds: float) -> Outcome:
    return of({Candidate(name): value for name, value in seconds.items()})


def of(seconds: dict[Candidate, float]) -> Outcome:
    samples = {candidate: Sample((value,)) for candidate, value in seconds.items()}
    return Outcome("alltoall", "whole", (), {64: samples}, ())


WHOLE = Known(Shape(16, 1), outcome(native=3, ring=1, tree=2, pair=4))
PAIRS = Known(Shape(2, 1), outcome(native=1, ring=5, tree=4, pair=2))


def test_hints_come_from_the_nearest_shape():
    assert hints_from([WHOLE, PAIRS], Shape(8, 1), ALL) == {64: (RING, TREE)}
    assert hints_from([WHOLE, PAIRS], Shape(3, 1), ALL) == {64: (NATIVE, PAIR)}
    assert hints_from([PAIRS, WHOLE], Shape(3, 1), ALL) == {64: (NATIVE, PAIR)}


def test_hosts_count_before_ranks_per_host():
    many = Known(Shape(15, 8), outcome(native=9, pair=1, tree=2))
    assert hints_from([many, WHOLE], Shape(15, 1), ALL) == {64: (PAIR, TREE)}


def test_what_cannot_run_there_is_left_out():
    assert hints_from([WHOLE], Shape(8, 1), {"native", "tree"}) == {64: (TREE, NATIVE)}


def test_an_algorithm_is_passed_on_once_and_compositions_are_not():
    small, large = (Candidate("ring", (("segment_size", size),)) for size in (64, 4096))
    composed = Candidate("composed", (), (Bound("bcast", NATIVE),))
    known = Known(Shape(4, 1), of({small: 2, large: 1, composed: 0.5, NATIVE: 3}))
    assert hints_from([known], Shape(4, 1), ALL) == {64: (large, NATIVE)}


def test_with_one_rule_for_all_sizes_what_serves_them_is_passed_on_at_each():
    short = {NATIVE: Sample((1.0,)), RING: Sample((4.0,)), TREE: Sample((0.9,))}
    long = {NATIVE: Sample((1.0,)), RING: Sample((0.2,)), TREE: Sample((0.8,))}
    found = Outcome("alltoallv", "whole", (), {1: short, 65536: long}, ())
    passed_on = hints_from([Known(Shape(16, 1), found)], Shape(8, 1), ALL, one_rule=True)
    assert passed_on == {1: (TREE, NATIVE), 65536: (TREE,)}


def crossing(candidate: Candidate, size: int) -> float:
    """Return seconds: pipelined_linear is faster than binomial by 3 % from 5817 bytes on."""
    lines = {"native": (2e-3, 3e-6), "binomial": (2e-3, 1e-6), "pipelined_linear": (7e-3, 1e-7)}
    at_once, per_byte = lines.get(candidate.algorithm, (1e-2, 4e-6))
    return at_once + per_byte * size


def tuned(model: Model, total: float | None = None):
    options = Options(("bcast",), (64, 1024, 16384), Timing(), 1.0, ("whole", "4"), total=total)
    return tune(make_topology([4, 4], [0]), CATALOGUE, options, model, lambda: True)


def test_looks_of_many_ranks_decide_which_routines_few_ranks_try_with_the_longest_messages():
    """No communicator has the other's longest size, and its calls are long."""
    model = Model(crossing)
    tuned(model)
    asked = {
        candidate.algorithm
        for request in model.asked
        for candidate in request.candidates
        if (request.communicator, request.size) == ("4", 4 * 16384) and not candidate.bound
    }
    assert "pipelined_linear" in asked
    assert len(asked) <= 3


def test_a_crossover_of_few_ranks_follows_from_the_times_at_the_sizes():
    """There, pipelined_linear must be faster than binomial by 10 %, as it is from 6500 bytes on."""
    model = Model(crossing)
    decision = tuned(model).decision
    for kind, ranks, first in (("cluster", 8, 5817), ("hosts", 4, 6500)):
        table = decision.table("bcast", kind, Shape(ranks, 1))
        assert table is not None
        (rule,) = (r for r in table.rules if r.candidate.algorithm == "pipelined_linear")
        assert rule.first == pytest.approx(first, rel=1 / 8)
    for communicator, has_duels in (("whole", True), ("4", False)):
        asked = [request for request in model.asked if request.communicator == communicator]
        looked_at = {request.size for request in asked if request.launch == 0}
        assert any(request.size not in looked_at for request in asked) == has_duels


def by_factor(factor: float) -> Callable[[Candidate, int], float]:
    """Return seconds: binomial takes this share of native's, and all others take longer."""
    factors = {"native": 1.0, "binomial": factor}
    return lambda candidate, size: factors.get(candidate.algorithm, 3.0) * (1e-3 + 1e-7 * size)


@pytest.mark.parametrize("total", [None, 1000.0], ids=["all", "budget"])
@pytest.mark.parametrize(("factor", "on_few"), [(0.95, "native"), (0.85, "binomial")])
def test_few_ranks_need_more_gain_than_all_ranks(factor, on_few, total):
    """On other hosts than the measured ones, times differ."""
    decision = tuned(Model(by_factor(factor)), total).decision
    for kind, ranks, chosen in (("cluster", 8, "binomial"), ("hosts", 4, on_few)):
        table = decision.table("bcast", kind, Shape(ranks, 1))
        assert table is not None
        assert {rule.candidate.algorithm for rule in table.rules} == {chosen}


def launches(model: Model, communicator: str) -> set[int]:
    """Return the launches that timed native with 1024 bytes."""
    return {
        request.launch
        for request in model.asked
        if request.launch and request.size == 1024 and request.communicator == communicator
        if NATIVE in request.candidates
    }


def test_two_launches_confirm_what_was_faster_elsewhere():
    model = Model(by_factor(0.89))
    tuned(model)
    assert launches(model, "whole") == {1, 2, 3}
    assert launches(model, "4") == {1, 2}


def test_what_was_slower_than_native_elsewhere_is_not_confirmed_by_two_launches():
    """Native leads on all ranks, so it is named first. Binomial is named second, and leads here."""

    class OnFew(Model):
        def measure(self, asked):
            made = super().measure(asked)
            if asked.communicator == "whole":
                return made
            return replace(made, seconds=tuple(
                tuple(t * (0.85 if c.algorithm == "binomial" else 1.0) for t in seconds)
                for c, seconds in zip(asked.candidates, made.seconds, strict=True)
            ))  # fmt: skip

    model = OnFew(by_factor(1.05))
    decision = tuned(model).decision
    table = decision.table("bcast", "hosts", Shape(4, 1))
    assert table is not None
    assert {rule.candidate.algorithm for rule in table.rules} == {"binomial"}
    assert launches(model, "4") == {1, 2, 3}


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


def scouted(told_at: int) -> tuple[Scout, Point]:
    """Return what scouting finds with 1024 bytes, if binomial won with others elsewhere."""
    model = Model(by_factor(0.8))
    algorithms = [CATALOGUE.find("bcast", name) for name in ("native", "binomial")]

    def ask(size: int, candidates: tuple[Candidate, ...]) -> Request:
        return Request("bcast", size, Timing(), False, 2, 1, candidates)

    def field(candidates: Iterable[Candidate]) -> Field:
        return Field(everyone := tuple(candidates), (frozenset(everyone),))

    hints = {told_at: (Candidate("binomial"), NATIVE)}
    plan = Plan(4, (1024,), Timing(), 1.0, lambda _: None, hints=hints)
    scout = Scout(model, plan, ask, field)
    return scout, scout.at(1024, algorithms, Prediction(plan.bound), (), {})


@pytest.mark.parametrize(("told_at", "told"), [(1024, True), (2048, True), (4096, False)])
def test_what_won_with_other_messages_is_confirmed_within_an_octave(told_at, told):
    _, point = scouted(told_at)
    assert point.told == ({"binomial"} if told else set())


def test_looks_and_what_ranks_candidates_are_kept_apart():
    """Compositions are looked at later, and those that lose must not be finalists."""
    scout, point = scouted(1024)
    for one in (point, scout.as_seen(1024, point.seen)):
        one.seen[RING] = [1.0]
        assert RING not in one.tried


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


def test_the_first_search_has_no_hints():
    assert hints_from([], Shape(4, 1), ALL) == {}
