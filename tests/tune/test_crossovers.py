"""Where between two sizes the choice changes: by duels, or by lines through the times at both."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

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


def timed_in_launches(candidate: Candidate, size: int) -> Sample:
    return Sample((seconds(candidate, size),), launches={1: (seconds(candidate, size),)})


def first_of(lower, upper, *, is_told=False, gain=0.1, timed=(NATIVE, RING, TREE), looked_at=None):
    """Return the first size of the upper choice, and whether duels were fought."""
    model = Model(seconds)

    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    crossovers = Crossovers(Duels(model, ask, lambda _: None, gain), lambda *_: True, gain, is_told)
    samples = {size: {c: timed_in_launches(c, size) for c in timed} for size in (LOW, HIGH)}
    samples[LOW][lower] = timed_in_launches(lower, LOW)
    samples[HIGH][upper] = timed_in_launches(upper, HIGH)
    if looked_at is not None:
        samples[LOW][looked_at] = Sample((seconds(looked_at, LOW) / 2,))
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


@pytest.mark.parametrize(
    "known", [{"timed": (NATIVE,)}, {"looked_at": NATIVE}], ids=["not timed", "looked at"]
)
def test_duels_decide_where_launches_have_not_timed_both_at_both_sizes(known):
    found, duels = first_of(RING, NATIVE, is_told=True, **known)
    assert 6554 / 2 < found < 2 * 6554
    assert duels


@pytest.mark.parametrize(
    ("low", "high", "first"),
    [
        # What tree takes beyond the bound above, it takes below, too.
        ({RING: 1.1}, {RING: 1.5, TREE: 1.08}, 3607),
        ({RING: 1.05}, {RING: 1.5, TREE: 1.08}, 3692),
        # What ring takes beyond the bound below grows with it.
        ({RING: 1.1, TREE: 1.2}, {TREE: 1.05}, 6067),
        # A good part of what tree takes is no bytes.
        ({RING: 1.1}, {RING: 1.5, TREE: 1.3}, HIGH),
        # Tree gains less than what counts.
        ({RING: 1.05}, {RING: 1.1, TREE: 1.08}, HIGH),
    ],
)
def test_where_bytes_are_nearly_all_the_bound_tells_the_time_of_a_long_call(low, high, first):
    """One of two was timed at one size alone; times are given over the bound."""
    model = Model(seconds)

    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    def bound(size):
        return 1e-4 * size

    crossovers = Crossovers(Duels(model, ask, lambda _: None), lambda *_: True, 0.03, bound=bound)
    samples = {
        size: {one: Sample((over * bound(size),)) for one, over in overs.items()}
        for size, overs in ((LOW, low), (HIGH, high))
    }
    _, rule = crossovers.rules({LOW: RING, HIGH: TREE}, samples)
    assert rule.first == pytest.approx(first, abs=5)
    assert not model.asked


#: At 2 to 16 times the lower size: which of two is faster, or neither, and what serves.
CHANGES = [
    (RING, TREE, "lower neither upper neither", "lower lower upper upper"),
    (RING, TREE, "upper neither lower upper", "upper upper lower upper"),
    (RING, NATIVE, "lower neither lower neither", "lower lower lower upper"),
    (RING, NATIVE, "neither lower upper lower", "lower lower upper lower"),
    (RING, NATIVE, "upper neither lower neither", "upper upper lower upper"),
    (NATIVE, RING, "neither upper neither upper", "lower upper upper upper"),
    (NATIVE, RING, "upper neither lower upper", "upper lower lower upper"),
]


@pytest.mark.parametrize(("lower", "upper", "verdicts", "served"), CHANGES)
def test_a_choice_changes_only_where_the_other_one_is_faster_or_native(
    lower, upper, verdicts, served
):
    """Where neither is, noise would decide. Native serves if what is beside it differs."""
    factors = {"lower": 1.2, "upper": 0.8, "neither": 1.0}
    by_size = {LOW << k: factors[word] for k, word in enumerate(verdicts.split(), start=1)}
    ends = {LOW: 1.2, LOW << 5: 0.8}

    def factor(size):
        return {**by_size, **ends}[1 << (size.bit_length() - 1)]

    model = Model(lambda c, size: 1e-3 * (factor(size) if c == upper else 1.0))

    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    crossovers = Crossovers(Duels(model, ask, lambda _: None), lambda *_: True, 0.03)
    samples = {size: {c: Sample((1e-3,)) for c in (lower, upper)} for size in ends}
    rules = list(crossovers.rules(dict(zip(ends, (lower, upper), strict=True)), samples))

    def at(size):
        return [rule for rule in rules if rule.first <= size][-1].candidate

    found = ["upper" if at(LOW << k) == upper else "lower" for k in range(1, 5)]
    assert found == served.split()
    words = {1.2: lower, 0.8: upper, 1.0: None}
    for before, rule in pairwise(rules):
        faster = [words[factor(size)] for size in rule.crossover]
        old, new = before.candidate, rule.candidate
        assert rule.crossover[1] == rule.first
        assert [one == old if new == NATIVE else one != new for one in faster] == [True, False]


#: Whether ring is looked at with 4 KiB, or in launches; how many times as long as native it takes
#: there; and the sizes from which each serves.
LOOKED_AT = [
    ("looks", 0.8, [(0, "ring")]),
    ("looks", 1.0, [(0, "ring"), (2048, "native"), (8192, "ring")]),
    ("launches", 0.8, [(0, "ring"), (2048, "native"), (8192, "ring")]),
    ("neither", 0.8, [(0, "ring"), (2048, "native"), (8192, "ring")]),
]


@pytest.mark.parametrize(("timed", "ratio", "expected"), LOOKED_AT)
def test_what_serves_on_both_sides_of_a_size_may_serve_there_if_it_wins_a_duel(
    timed, ratio, expected
):
    """Ring wins with 1 and 16 KiB, and native was chosen for 4 KiB."""
    middle = 4 * LOW
    model = Model(lambda c, size: 1e-3 * (ratio if size == middle else 0.8) if c == RING else 1e-3)
    if timed != "looks" or ratio == 1.0:  # else native has a range of its own
        model.cost = lambda c, size: (
            1e-3 * (0.8 if not 2048 <= size < 8192 else 1.1) if c == RING else 1e-3
        )

    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    launched = {c: Sample((1e-3,), launches={1: (1e-3,)}) for c in (NATIVE, RING)}
    at_middle = {
        "looks": {**launched, RING: Sample((2e-3,))},
        "launches": launched,
        "neither": {NATIVE: launched[NATIVE]},
    }[timed]
    crossovers = Crossovers(Duels(model, ask, lambda _: None), lambda *_: True, 0.03)
    choices = {LOW: RING, middle: NATIVE, HIGH: RING}
    samples = {LOW: launched, middle: at_middle, HIGH: launched}
    rules = list(crossovers.rules(crossovers.reconsidered(choices, samples), samples))
    found = [(rule.first, rule.candidate.algorithm) for rule in rules]
    assert [name for _, name in found] == [name for _, name in expected]
    for (first, _), (wanted, _) in zip(found, expected, strict=True):
        assert first == pytest.approx(wanted, rel=1 / 8)


def test_native_needs_a_gain_of_3_percent_however_much_others_need():
    model = Model(lambda c, size: 0.95e-3 if c == NATIVE else 1e-3)

    def ask(size, candidates):
        return replace(request(*candidates), size=size)

    duels = Duels(model, ask, lambda _: None, 0.1)
    assert duels.is_faster(LOW, NATIVE, RING)
    assert duels.stays_faster(LOW, NATIVE, TREE)
    assert not duels.is_faster(LOW, RING, TREE)
