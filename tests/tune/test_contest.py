"""Candidates that the user names: what may be asked for, and how they are timed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.catalogue import Parameter, Part
from stagegen.catalogue.formula import Formula
from stagegen.catalogue.values import ValueRange
from stagegen.errors import InputError, MeasurementError
from stagegen.measure.records import Candidate
from stagegen.tune.contest import named_candidate, require_right, time_in_turn
from tests.measure.fakes import Model
from tests.tune.test_race_search import algorithm

SEGMENT = Parameter("segment_size", "bytes of a segment", (8, 64, 512), 512)
WINDOW = Parameter("window", "messages at a time", (1, 2, 4), 1)
RADIX = Parameter("radix", "base of numbers", ValueRange(2, Formula("min(p, 64)")), 2)
PIECE = Parameter("piece", "bytes of a piece", ValueRange(512, Formula("n"), 2), 512)
KNOWN = {
    "aapc": algorithm("aapc", parameters=(SEGMENT, WINDOW)),
    "bruck": algorithm("bruck", parameters=(RADIX, PIECE)),
    "native": algorithm("native"),
}
NATIVE, RING, TREE = Candidate("native"), Candidate("ring"), Candidate("tree")


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ("aapc", (512, 1)),
        ("aapc:window=2", (512, 2)),
        ("aapc:window=4:segment_size=100", (100, 4)),
    ],
)
def test_what_is_not_asked_for_is_the_default(spec, values):
    segment, window = values
    wanted = Candidate("aapc", (("segment_size", segment), ("window", window)))
    assert named_candidate(KNOWN, spec) == wanted


def test_a_range_has_its_values_on_any_ranks_and_bytes_may_be_any_number():
    wanted = Candidate("bruck", (("piece", 3), ("radix", 64)))
    assert named_candidate(KNOWN, "bruck:radix=64:piece=3") == wanted


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("rings", "no algorithm rings can run here; choose from aapc, bruck, native"),
        ("aapc:windows=2", "no parameter windows; it has segment_size, window"),
        ("native:window=2", "no parameter window; it has none"),
        ("aapc:window=3", "window must be one of 1, 2, 4"),
        ("bruck:radix=1", r"radix must be one of 2, 3, 4, … up to min\(p, 64\)"),
        ("bruck:radix=65", "radix must be one of 2, 3"),
        ("bruck:piece=0", "piece must be one of 512, 1024, 2048, … up to n"),
        ("aapc:window", "expected NAME or NAME:PARAMETER=NUMBER"),
        ("", "expected NAME"),
    ],
)
def test_what_cannot_be_asked_for_is_reported(spec, says):
    with pytest.raises(InputError, match=says):
        named_candidate(KNOWN, spec)


SPLIT = replace(
    algorithm("split"),
    parts=(Part("reduce", Formula("n")), Part("bcast", Formula("n"))),
)
SERVED = {
    "split": SPLIT,
    "bcast/split": SPLIT,
    "reduce/native": algorithm("native"),
    "bcast/aapc": KNOWN["aapc"],
    "bcast/native": algorithm("native"),
}


def test_a_composition_has_the_routines_that_its_parts_are_given():
    served = named_candidate(SERVED, "split+reduce/native+bcast/aapc:window=2")
    assert served.spec == "split+reduce/native+bcast/aapc:segment_size=512:window=2"
    assert named_candidate(SERVED, "split").bound == (), "the MPI library serves all parts"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("split+bcast/aapc+reduce/native", "split has routines of reduce, bcast"),
        ("split+reduce/native", "split has routines of reduce, bcast"),
        ("split+reduce/native+bcast/ring", "no algorithm ring can run here; choose from aapc"),
        ("split+reduce/native+bcast/split", "no algorithm split can run here"),
        ("split+reduce/native+bcast/aapc:window=3", "window must be one of 1, 2, 4"),
    ],
)
def test_parts_that_a_composition_does_not_have_are_errors(spec, says):
    with pytest.raises(InputError, match=says):
        named_candidate(SERVED, spec)


def test_routines_without_parts_get_none():
    with pytest.raises(InputError, match="aapc has no parts"):
        named_candidate(KNOWN, "aapc+reduce/native")


def test_a_wrong_routine_is_an_error():
    model = Model(lambda candidate, size: 1.0, wrong=frozenset({"tree"}))
    require_right(model, "alltoall", (NATIVE, RING))
    assert model.checked == [RING]
    with pytest.raises(MeasurementError, match="alltoall tree is wrong: a case"):
        require_right(model, "alltoall", (RING, TREE))


def test_ratios_are_to_the_first():
    costs = {NATIVE: 0.4, RING: 0.2, TREE: 0.5}
    model = Model(lambda candidate, size: costs[candidate], noise=0.001)
    contestants = time_in_turn(model, "alltoall", 1024, (RING, NATIVE, TREE), 7)
    assert [one.candidate for one in contestants] == [RING, NATIVE, TREE]
    assert [one.ratio.median for one in contestants] == pytest.approx([1, 2, 2.5], rel=0.02)
    assert contestants[0].ratio.low == contestants[0].ratio.high == 1
    assert {one.seconds.count for one in contestants} == {7}
    scout, timed = model.asked
    assert (scout.repetitions, timed.repetitions) == (1, 7)


@pytest.mark.parametrize(("seconds", "count", "settle"), [(1e-3, 60, True), (3.0, 3, False)])
def test_the_shorter_the_call_the_more_is_done(seconds, count, settle):
    model = Model(lambda candidate, size: seconds)
    (one,) = time_in_turn(model, "alltoall", 1024, (RING,), 3)
    assert one.seconds.count == count
    assert model.asked[-1].settle is settle
