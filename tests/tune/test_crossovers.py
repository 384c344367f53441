"""Where between two sizes the choice changes: by duels, or by lines through the times at both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.measure.records import Candidate
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.duels import Duels
from stagegen.tune.field import Sample
from tests.measure.fakes import Model, request

NATIVE, RING, TREE = map(Candidate, ("native", "ring", "tree"))
LOW, HIGH = 1024, 16 * 1024

#: Seconds at once and per byte: ring is as fast as native with 8192 bytes, and takes 0.9 of its
#: time with 6554; tree is as fast as ring with 10240.
COSTS = {NATIVE: (10e-3, 0.0), RING: (5e-3, 0.6103515625e-6), TREE: (11.25e-3, 0.0)}


def seconds(candidate: Candidate, size: int) -> float:
    at_once, per_byte = COSTS[candidate]
    return at_once + per_byte * size


def first_of(lower, upper, *, is_told=False, gain=0.1, timed=(NATIVE, RING, TREE)):
    """Return the first size of the upper choice, and whether duels were fought."""
    model = Model(seconds)

    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    crossovers = Crossovers(Duels(model, ask, lambda _: None, gain), lambda *_: True, gain, is_told)
    samples = {size: {c: Sample((seconds(c, size),)) for c in timed} for size in (LOW, HIGH)}
    samples[LOW][lower], samples[HIGH][upper] = (
        Sample((seconds(lower, LOW),)),
        Sample((seconds(upper, HIGH),)),
    )
    _, rule = crossovers.rules({LOW: lower, HIGH: upper}, samples)
    return rule.first, bool(model.asked)


@pytest.mark.parametrize("is_told", [False, True])
@pytest.mark.parametrize(("gain", "first"), [(0.1, 6554), (0.03, 7700)])
def test_native_serves_where_the_gain_of_the_routine_before_it_no_longer_counts(
    gain, first, is_told
):
    """It need not be faster itself: what is slower than native must not serve."""
    found, duels = first_of(RING, NATIVE, gain=gain, is_told=is_told)
    assert found == pytest.approx(first, rel=0.02 if is_told else 1 / 8)
    assert duels == (not is_told)


@pytest.mark.parametrize(("gain", "first"), [(0.1, 12288), (0.03, 10810)])
def test_another_routine_serves_where_its_gain_counts(gain, first):
    found, duels = first_of(RING, TREE, gain=gain, is_told=True)
    assert found == pytest.approx(first, rel=0.02)
    assert not duels


def test_duels_decide_where_one_of_the_two_was_not_timed_at_both_sizes():
    found, duels = first_of(RING, NATIVE, is_told=True, timed=(NATIVE,))
    assert 6554 / 2 < found < 2 * 6554
    assert duels


@pytest.mark.parametrize(
    ("upper", "verdicts", "served"),
    [
        (TREE, "lower neither upper neither", "lower lower upper upper"),
        (TREE, "upper neither lower upper", "upper upper lower upper"),
        (NATIVE, "lower neither lower neither", "lower lower lower upper"),
        (NATIVE, "neither lower upper lower", "lower lower upper lower"),
    ],
)
def test_a_choice_changes_back_only_where_the_other_one_is_faster(upper, verdicts, served):
    """At 2 to 16 times the lower size, one of two is faster, or neither: then noise decides."""
    factors = {"lower": 1.2, "upper": 0.8, "neither": 1.0}
    by_size = {LOW << k: factors[word] for k, word in enumerate(verdicts.split(), start=1)}
    model = Model(lambda c, size: 1e-3 * (by_size.get(size, 1.0) if c == upper else 1.0))

    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    crossovers = Crossovers(Duels(model, ask, lambda _: None), lambda *_: True, 0.03)
    end = LOW << 5
    samples = {size: {RING: Sample((1e-3,)), upper: Sample((1e-3,))} for size in (LOW, end)}
    rules = list(crossovers.rules({LOW: RING, end: upper}, samples))

    def at(size):
        return [rule for rule in rules if rule.first <= size][-1].candidate

    found = ["upper" if at(LOW << k) == upper else "lower" for k in range(1, 5)]
    assert found == served.split()
