"""What one communicator tells about another: the best candidates of the nearest shape."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Bound, Candidate, Timing
from stagegen.tune.field import Sample
from stagegen.tune.hints import Known, hints_from
from stagegen.tune.plan import Outcome
from stagegen.tune.scope import Options
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


def test_the_longest_messages_of_few_ranks_are_told_by_those_of_many():
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
    """Return seconds of which binomial takes a share, and all others but native take longer."""
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


def timed(model: Model, communicator: str) -> tuple[set[int], int]:
    """Return the launches that timed native with 1024 bytes, and the repetitions of the first."""
    asked = [
        request
        for request in model.asked
        if request.launch and request.size == 1024 and request.communicator == communicator
        if NATIVE in request.candidates
    ]
    return {request.launch for request in asked}, asked[0].repetitions


def test_two_launches_confirm_what_was_named_elsewhere():
    model = Model(by_factor(0.89))
    tuned(model)
    assert timed(model, "whole") == ({1, 2, 3}, 3)
    assert timed(model, "4") == ({1, 2}, 2)


def test_the_first_search_has_no_hints():
    assert hints_from([], Shape(4, 1), ALL) == {}
