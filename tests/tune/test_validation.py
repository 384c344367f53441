"""Decisions measured again: which are drawn, and when one holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Measurement,
    Request,
    Timing,
)
from stagegen.measure.statistics import MARGIN
from stagegen.tune import Rule, Table
from stagegen.tune.elsewhere import ELSEWHERE_GAIN
from stagegen.tune.loss import Times
from stagegen.tune.validation import CROSSOVER_WEIGHT, Decision, decisions_of, draw, judge
from tests.measure.fakes import Model

NATIVE, RING, TREE = Candidate("native"), Candidate("ring"), Candidate("tree")
KEY = ("bcast", "cluster", 4, 4)


def table(*rules):
    return Table.exactly("bcast", "cluster", 4, 4, rules)


def decision(size=8, choice=RING, rivals=(NATIVE, TREE), weight=1.0):
    return Decision(KEY, "whole", size, choice, rivals, weight)


def measured_at(size, **seconds):
    candidates = tuple(Candidate(name) for name in seconds)
    asked = Request("bcast", size, Timing(), True, 1, 1, candidates)
    return Measurement(asked, tuple((s,) for s in seconds.values()))


def found(made, sizes=(1, 64, 1024), times=None, may_serve=lambda *_: True):
    return {
        one.size: one for one in decisions_of(KEY, made, "whole", sizes, times, may_serve)
    }  # fmt: skip


def test_both_sides_of_a_crossover_are_measured_against_each_other():
    made = table(Rule(0, TREE), Rule(300, RING, (290, 300)))
    decisions = found(made)
    assert sorted(decisions) == [1, 64, 290, 300, 1024]
    assert (decisions[290].choice, decisions[290].rivals) == (TREE, (NATIVE, RING))
    assert (decisions[300].choice, decisions[300].rivals) == (RING, (NATIVE, TREE))
    assert decisions[1024].rivals == (NATIVE,)
    assert decisions[300].weight > CROSSOVER_WEIGHT * decisions[64].weight
    assert decisions[1].weight < decisions[64].weight < decisions[1024].weight


def test_the_best_alternative_is_the_fastest_of_the_nearest_size_that_may_serve():
    times = Times(
        [measured_at(1, native=2.0, ring=1.0, tree=3.0, pair=4.0),
         measured_at(1024, native=2.0, ring=1.0, tree=4.0, pair=3.0)]
    )  # fmt: skip
    made = table(Rule(0, RING, alternatives=(TREE,)))
    by_time = found(made, times=times)
    assert [by_time[size].rivals[1].algorithm for size in (1, 64, 1024)] == ["tree", "pair", "pair"]
    some = found(made, times=times, may_serve=lambda _, c, size: c.algorithm != "pair")
    assert some[1024].rivals == (NATIVE, TREE)
    assert found(made)[1024].rivals == (NATIVE, TREE)
    assert found(made, may_serve=lambda *_: False)[1024].rivals == (NATIVE,)


def test_a_decision_without_a_rival_is_none():
    assert found(table(Rule(0, NATIVE))) == {}


@pytest.mark.parametrize(
    ("tree", "native", "gain", "beaten_by"),
    [
        (0.95, 1.2, 0.03, (TREE,)),
        (0.95, 1.2, 0.1, ()),
        (0.85, 1.2, 0.1, (TREE,)),
        (1.2, 0.95, 0.1, (NATIVE,)),
    ],
)
def test_a_rival_needs_the_gain_that_it_needed_in_tuning_but_native_less(
    tree, native, gain, beaten_by
):
    seconds = {RING: 1.0, TREE: tree, NATIVE: native}
    made = replace(decision(), gain=gain)
    assert judge(Model(lambda c, size: seconds[c], 0.001), made, 9).beaten_by == beaten_by


def test_the_sample_follows_from_the_seed():
    decisions = [decision(size, weight=1 + size) for size in range(40)]
    drawn = draw(decisions, 7, seed=3)
    assert drawn == draw(decisions, 7, seed=3) != draw(decisions, 7, seed=4)
    assert draw(decisions, 5, seed=3) == drawn[:5]


@given(st.lists(st.floats(0.1, 50), max_size=20), st.integers(1, 30), st.integers(0, 99))
def test_a_sample_has_each_decision_at_most_once(weights, count, seed):
    decisions = [decision(size, weight=weight) for size, weight in enumerate(weights)]
    drawn = draw(decisions, count, seed)
    assert len(set(drawn)) == len(drawn) == min(count, len(decisions))
    assert set(drawn) <= set(decisions)


def test_what_weighs_more_is_drawn_more_often():
    """Of two decisions, each is the first one by its share of the weights: 1 in 4."""
    light, heavy = decision(1, weight=1.0), decision(2, weight=3.0)
    firsts = Counter(draw([light, heavy], 1, seed)[0].size for seed in range(2000))
    assert 400 < firsts[1] < 600


def model(**milliseconds):
    return Model(lambda candidate, _: milliseconds[candidate.algorithm] / 1000, noise=0.001)


def test_a_decision_holds_against_slower_rivals_and_equal_ones():
    assert judge(model(ring=1.0, tree=1.5, native=2.0), decision(), 9).holds
    equal = judge(model(ring=1.0, tree=0.99, native=1.0), decision(), 9)
    assert equal.holds
    assert [one.candidate for one in equal.contestants] == [RING, NATIVE, TREE]


def test_a_decision_does_not_hold_against_a_faster_rival():
    verdict = judge(model(ring=1.0, tree=0.8, native=2.0), decision(), 9)
    assert (verdict.holds, verdict.beaten_by, verdict.why) == (False, (TREE,), "")
    lost = judge(model(ring=1.0, native=0.5), decision(rivals=(NATIVE,)), 9)
    assert lost.beaten_by == (NATIVE,)


def test_bad_luck_once_is_forgiven():
    """The ring is slow in the first contest alone; the second one is without the slow native."""

    class Unlucky(Model):
        def measure(self, request):
            lucky = NATIVE not in request.candidates
            self.cost = lambda c, _: 1e-3 if c != RING or lucky else 2e-3
            return super().measure(request)

    rivals = (TREE, NATIVE)
    source = Unlucky(lambda *_: 1e-3, noise=0.001)
    unlucky = judge(source, decision(rivals=rivals), 9)
    assert not unlucky.holds, "native is in the second contest as well, since it was faster, too"
    assert judge(source, decision(rivals=(TREE,)), 9).holds


def test_the_ranks_and_the_timing_are_those_of_the_decision():
    source = model(ring=1.0, native=2.0)
    other = Decision(("bcast", "group left", 3), "left", 8, RING, (NATIVE,), 1.0)
    judge(source, other, 4, Timing("mpptest"))
    assert {one.communicator for one in source.asked} == {"left"}
    assert {one.timing.mechanism for one in source.asked} == {"mpptest"}


def test_a_choice_that_is_wrong_does_not_hold_and_a_wrong_rival_is_none():
    times = {"ring": 1.0, "tree": 0.5, "native": 2.0}
    wrong = model(**times)
    wrong.wrong = frozenset({"ring"})
    verdict = judge(wrong, decision(), 9)
    assert (verdict.holds, verdict.why) == (False, "wrong: a case")
    rival = model(**times)
    rival.wrong = frozenset({"tree"})
    held = judge(rival, decision(), 9)
    assert held.holds
    assert [one.candidate for one in held.contestants] == [RING, NATIVE]


@pytest.mark.parametrize(("deadly", "why"), [("ring", "failed: it died"), ("tree", "")])
def test_a_choice_that_dies_does_not_hold_and_a_dead_rival_is_none(deadly, why):
    class Deadly(Model):
        def measure(self, request):
            for candidate in request.candidates:
                if candidate.algorithm == deadly:
                    failure = Failure("bcast", request.size, candidate, "it died")
                    raise CandidateFailed(failure)
            return super().measure(request)

    source = Deadly(lambda *_: 1e-3, noise=0.001)
    verdict = judge(source, decision(), 9)
    assert (verdict.holds, verdict.why) == (not why, why)


def test_a_check_is_asked_for_all_but_native():
    source = model(ring=1.0, tree=1.0, native=1.0)
    judge(source, decision(), 4)
    assert source.checked == [RING, TREE]
    assert isinstance(source.check("bcast", (RING,))[0], Check)


def test_on_shapes_that_were_not_measured_native_holds_until_a_rival_gains_much():
    made = replace(table(Rule(0, NATIVE)), confirmed=False)
    times = Times([measured_at(64, native=2.0, ring=1.8)])
    assert [
        one.gain for one in decisions_of(KEY, made, "whole", (64,), times, lambda *_: True)
    ] == [ELSEWHERE_GAIN]
    ring = replace(table(Rule(0, RING)), confirmed=False)
    (decided,) = decisions_of(KEY, ring, "whole", (64,), times, lambda *_: True)
    assert decided.gain == MARGIN
