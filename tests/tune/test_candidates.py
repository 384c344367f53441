"""Which values of parameters are tried, and for whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.catalogue import Algorithm, Parameter
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import at_size, default_candidate, useful_values
from tests.tune.test_race_search import Model, algorithm, search

SEGMENT = Parameter("segment_size", "bytes of a segment", (8, 64, 512), 512)
BLOCK = Parameter("block_size", "phases of a block", (2, 4, 8), 4)


@pytest.mark.parametrize(
    ("size", "values"),
    [(0, [8]), (1, [8]), (8, [8]), (9, [8, 64]), (64, [8, 64]), (9999, [8, 64, 512])],
)
def test_segments_as_long_as_the_message_are_all_the_same(size, values):
    assert useful_values(SEGMENT, size) == values


@pytest.mark.parametrize("meaning", [BLOCK.meaning, "base of numbers, not bytes"])
@pytest.mark.parametrize("size", [0, 1, 3, 9999])
def test_what_counts_something_else_does_not_depend_on_the_size(size, meaning):
    assert useful_values(replace(BLOCK, meaning=meaning), size) == [2, 4, 8]


@pytest.mark.parametrize(("size", "segment"), [(1, 8), (9, 64), (65, 512), (9999, 512)])
def test_a_candidate_has_a_value_that_is_tried(size, segment):
    both: Algorithm = algorithm("both", parameters=(BLOCK, SEGMENT))
    wanted = Candidate("both", (("block_size", 4), ("segment_size", segment)))
    assert at_size(both, default_candidate(both), size) == wanted


def asked_values(model: Model, name: str, size: int) -> set[int]:
    found = (c for r in model.asked if r.size == size for c in r.candidates if c.algorithm == name)
    return {value for candidate in found for _, value in candidate.parameters}


def test_who_is_behind_is_tuned_once_and_not_at_every_size():
    def cost(candidate: Candidate, size: int) -> float:
        block = dict(candidate.parameters).get("block_size", 8)
        return {"native": 1e-6, "near": 2e-6, "far": 9e-6}[candidate.algorithm] * size * 8 / block

    model = Model(cost)
    algorithms = [algorithm(n, parameters=(BLOCK,)) for n in ("near", "far")]
    search(model, [algorithm("native"), *algorithms], sizes=(1024, 2048))
    assert asked_values(model, "near", 1024) == asked_values(model, "near", 2048) == {2, 4, 8}
    assert asked_values(model, "far", 1024) == {2, 4, 8}
    assert asked_values(model, "far", 2048) == {8}
