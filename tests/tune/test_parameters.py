"""Parameters are tuned one after the other; of equal values, the largest suits larger sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import default_candidate
from stagegen.tune.parameters import Tuner, choices
from tests.measure.fakes import Model, request

CATALOGUE = load_catalogue()
RANKS, SIZE = 16, 65536

#: One algorithm with a number of bytes, and one with a number that is none.
IN_BYTES, OTHER = CATALOGUE.find("bcast", "pipelined_linear"), CATALOGUE.find("bcast", "knomial")


def value(candidate: Candidate) -> int:
    ((_, found),) = candidate.parameters
    return found


def tuned(algorithm, seconds, *, for_larger: bool, is_first: bool = True) -> int:
    """Return the value that is found if a call with each takes so many seconds."""
    model = Model(lambda candidate, size: seconds(value(candidate)))

    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    tuner = Tuner(model, ask, SIZE, RANKS, for_larger=for_larger)
    begin = default_candidate(algorithm)
    best, _ = tuner.tune(algorithm, begin, seconds(value(begin)), is_first=is_first)
    return value(best)


@pytest.mark.parametrize("for_larger", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("around", [0.001, 0.03, 0.5])
def test_a_value_that_is_faster_is_found(around, is_first, for_larger):
    best = 4096

    def seconds(bytes_: int) -> float:
        return around * max(bytes_ / best, best / bytes_) ** 0.3

    assert tuned(IN_BYTES, seconds, for_larger=for_larger, is_first=is_first) == best


@pytest.mark.parametrize("around", [0.001, 0.03, 0.5])
def test_the_largest_of_equally_fast_numbers_of_bytes_is_passed_on_to_larger_sizes(around):
    limit = 16384

    def seconds(bytes_: int) -> float:
        return around * (1.0 if bytes_ <= limit else 1.5)

    assert tuned(IN_BYTES, seconds, for_larger=True) == limit
    assert (
        tuned(IN_BYTES, seconds, for_larger=False) == default_candidate(IN_BYTES).parameters[0][1]
    )


def test_values_that_grow_slower_step_by_step_are_not_as_fast():
    """Each is 2 % slower than the one before; 3 % count, but of the fastest of all."""
    ((parameter,),) = [choices(IN_BYTES, SIZE, RANKS)]
    values = parameter.values_at(SIZE, RANKS)
    cost = {one: 0.03 * 1.02**place for place, one in enumerate(values)}
    assert tuned(IN_BYTES, cost.__getitem__, for_larger=True) == values[1]


def test_other_numbers_stay_where_nothing_is_faster():
    assert (
        tuned(OTHER, lambda _: 0.03, for_larger=True) == default_candidate(OTHER).parameters[0][1]
    )
