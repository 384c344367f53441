"""Which values of parameters are tried, and for which candidates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.catalogue import Algorithm, Parameter
from stagegen.catalogue.formula import Formula
from stagegen.catalogue.values import ValueRange
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import at_size, default_candidate, variants
from stagegen.tune.checking import CheckedSource
from tests.strategies import examples
from tests.tune.test_race_search import Model, algorithm, search

SEGMENT = Parameter("segment_size", "bytes of a segment", (8, 64, 512), 512)
BLOCK = Parameter("block_size", "phases of a block", (2, 4, 8), 4)


@pytest.mark.parametrize(
    ("size", "values"),
    [(0, (8,)), (1, (8,)), (8, (8,)), (9, (8, 64)), (64, (8, 64)), (9999, (8, 64, 512))],
)
def test_segments_as_long_as_the_message_are_all_the_same(size, values):
    assert SEGMENT.values_at(size, 8) == values


@pytest.mark.parametrize("meaning", [BLOCK.meaning, "base of numbers, not bytes"])
@pytest.mark.parametrize("size", [0, 1, 3, 9999])
def test_what_counts_something_else_does_not_depend_on_the_size(size, meaning):
    assert replace(BLOCK, meaning=meaning).values_at(size, 8) == (2, 4, 8)


@pytest.mark.parametrize(("size", "segment"), [(1, 8), (9, 64), (65, 512), (9999, 512)])
def test_a_candidate_has_a_value_that_is_tried(size, segment):
    both: Algorithm = algorithm("both", parameters=(BLOCK, SEGMENT))
    wanted = Candidate("both", (("block_size", 4), ("segment_size", segment)))
    assert at_size(both, default_candidate(both), size, 8) == wanted


RADIX = Parameter("radix", "base of numbers", ValueRange(2, Formula("p")), 4)


@pytest.mark.parametrize(("ranks", "value"), [(2, 2), (3, 3), (4, 4), (9, 4)])
def test_a_default_beyond_the_range_gives_way_to_the_largest_value_before_it(ranks, value):
    bruck: Algorithm = algorithm("bruck", parameters=(RADIX,))
    wanted = Candidate("bruck", (("radix", value),))
    assert at_size(bruck, default_candidate(bruck), 1, ranks) == wanted


def test_all_listed_values_and_some_of_a_range_are_checked_first():
    both: Algorithm = algorithm("both", parameters=(BLOCK, RADIX))
    found = [dict(candidate.parameters) for candidate in variants(both, 1024, 100)]
    assert found[0] == {"block_size": 4, "radix": 4}
    assert [one["block_size"] for one in found if one["radix"] == 4] == [4, 2, 8]
    assert [one["radix"] for one in found[3:]] == [2, 3, 6, 10, 18, 34, 66, 100]


class Dated(Model):
    """Remembers in which order candidates are checked and timed."""

    def __init__(self, cost, **others):
        super().__init__(cost, **others)
        self.early: set[Candidate] = set()

    def measure(self, asked):
        self.early |= {c for c in asked.candidates if c not in self.checked}
        return super().measure(asked)


def radix_cost(best: int):
    """The native routine takes a second; the other one the less, the nearer to the best."""

    def cost(candidate: Candidate, size: int) -> float:
        radix = dict(candidate.parameters).get("radix")
        return 1.0 if radix is None else 1e-3 * (1 + abs(radix - best))

    return cost


def tuned_radix(model: Model, ranks: int) -> Candidate:
    algorithms = [algorithm("native"), algorithm("bruck", parameters=(RADIX,))]
    outcome = search(CheckedSource(model), algorithms, sizes=(64,), ranks=ranks)
    return outcome.tables[0].choice(64)


@pytest.mark.parametrize("best", [2, 3, 7, 29, 63, 64])
def test_a_long_range_is_searched_coarsely_first_and_then_around_the_best(best):
    model = Dated(radix_cost(best), noise=1e-4)
    assert tuned_radix(model, 64) == Candidate("bruck", (("radix", best),))
    assert len(asked_values(model, "bruck", 64)) < 30, "of 63"


@given(st.integers(2, 70), st.integers(2, 70))
@examples(20)
def test_no_value_is_timed_before_it_is_checked(ranks, best):
    model = Dated(radix_cost(best), noise=1e-4)
    tuned_radix(model, ranks)
    assert model.early <= {Candidate("native")}
    assert asked_values(model, "bruck", 64)


def test_a_value_that_is_found_wrong_late_ends_its_routine():
    class Picky(Dated):
        def check(self, collective, given, communicator="whole"):
            checks = super().check(collective, given, communicator)
            return [replace(c, wrong=1, first_wrong="radix 29") if c.candidate.parameters == (
                ("radix", 29),) else c for c in checks]  # fmt: skip

    model = Picky(radix_cost(29))
    assert tuned_radix(model, 64) == Candidate("native")
    assert ("radix", 29) not in {p for r in model.asked for c in r.candidates for p in c.parameters}


def asked_values(model: Model, name: str, size: int) -> set[int]:
    found = (c for r in model.asked if r.size == size for c in r.candidates if c.algorithm == name)
    return {value for candidate in found for _, value in candidate.parameters}


def test_an_algorithm_that_is_behind_is_tuned_once_and_not_at_every_size():
    def cost(candidate: Candidate, size: int) -> float:
        block = dict(candidate.parameters).get("block_size", 8)
        return {"native": 1e-6, "near": 1.4e-6, "far": 9e-6}[candidate.algorithm] * size * 8 / block

    model = Model(cost)
    algorithms = [algorithm(n, parameters=(BLOCK,)) for n in ("near", "far")]
    search(model, [algorithm("native"), *algorithms], sizes=(1024, 2048))
    assert asked_values(model, "near", 1024) == asked_values(model, "near", 2048) == {2, 4, 8}
    assert asked_values(model, "far", 1024) == {2, 4, 8}
    assert asked_values(model, "far", 2048) <= {8}
