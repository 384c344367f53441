"""What one communicator tells about another: the best candidates of the nearest shape."""

from __future__ import annotations

from stagegen.measure.records import Bound, Candidate
from stagegen.tune.field import Sample
from stagegen.tune.hints import Known, hints_from
from stagegen.tune.plan import Outcome
from stagegen.tune.shapes import Shape

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


def test_the_first_search_has_no_hints():
    assert hints_from([], Shape(4, 1), ALL) == {}
