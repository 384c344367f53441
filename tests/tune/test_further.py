"""Launches after those of the protocol: where a large gain over a long native call is in doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.measure.records import Candidate, Measurement, Request
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.field import Field
from stagegen.tune.further import FURTHER, asks_for_more, further_launches
from stagegen.tune.plan import Plan
from stagegen.tune.point import Point
from stagegen.tune.protocol import LAUNCHES, Protocol
from stagegen.tune.purse import PaidSource, Purse
from stagegen.tune.search import Search
from stagegen.tune.spending import Spender
from stagegen.tune.subject import Subject
from tests.measure.fakes import Model
from tests.tune.test_synthetic import RATE, TIMING, algorithm

NATIVE, OTHER = NATIVE_CANDIDATE, Candidate("other")
SIZE = 1000


class TwoSpeeds(Model):
    """The native routine is slow, but in looks and in some launches it is a bit faster."""

    def __init__(self, slow: float, fast_in: frozenset[int]):
        super().__init__(lambda candidate, size: 0.6, noise=0.002)
        self.slow, self.fast_in = slow, fast_in

    def measure(self, request: Request) -> Measurement:
        found = super().measure(request)
        fast = 0.98 if request.launch else 1.02
        factor = fast if request.launch in {0, *self.fast_in} else self.slow
        rows = [
            tuple(factor * one for one in row) if candidate == NATIVE else row
            for candidate, row in zip(request.candidates, found.seconds, strict=True)
        ]
        return replace(found, seconds=tuple(rows))


def plan(launches: int) -> Plan:
    return Plan(
        16, (SIZE,), TIMING, 60.0, lambda what: None, protocol=Protocol(launches),
        bound=lambda size: RATE * size,
    )  # fmt: skip


def search(source: Model, launches: int = LAUNCHES) -> Search:
    return Search(source, plan(launches), "alltoall", [algorithm("native"), algorithm("other")])


@pytest.mark.parametrize(
    ("slow", "fast_in", "launches", "most", "chosen"),
    [
        pytest.param(1.7, {2}, 5, 6, OTHER, id="one of five hides a large gain"),
        pytest.param(1.7, {1}, 5, 1, NATIVE, id="the first one, and looks: nothing shows it"),
        pytest.param(1.7, {2, 3}, 5, 3, NATIVE, id="two of three"),
        pytest.param(1.7, {2, 6}, 5, 6, NATIVE, id="two of six"),
        pytest.param(1.7, set(), 5, 5, OTHER, id="nothing is in doubt"),
        pytest.param(1.1, {2}, 5, 2, NATIVE, id="a small gain"),
        pytest.param(1.7, {2}, 3, 2, NATIVE, id="few launches"),
    ],
)
def test_a_large_gain_that_one_launch_hides_has_further_launches(
    slow, fast_in, launches, most, chosen
):
    model = TwoSpeeds(slow, frozenset(fast_in))
    table = search(model, launches).run().tables[0]
    assert table.choice(SIZE) == chosen
    assert max(asked.launch for asked in model.asked) == most


def test_a_budget_has_them_too():
    model = TwoSpeeds(1.7, frozenset({2}))
    purse = Purse(1e4)
    subject = Subject(
        Search(PaidSource(model, purse), plan(LAUNCHES), "alltoall", [
            algorithm("native"), algorithm("other")
        ]), "alltoall", plan(LAUNCHES), dict,
    )  # fmt: skip
    (outcome,) = Spender([subject], purse, Protocol(), lambda *call: 0.0).run()
    assert outcome.tables[0].choice(SIZE) == OTHER
    assert max(asked.launch for asked in model.asked) == 6


def test_after_a_further_launch_no_search_goes_back_to_an_earlier_one():
    """That would start the job anew."""
    model = TwoSpeeds(1.7, frozenset({2}))
    purse = Purse(1e4)
    sizes = {"alltoall": (SIZE,), "bcast": (1, 2 * SIZE)}  # the latter with a crossover

    def cost(candidate: Candidate, size: int) -> float:
        if size == SIZE:
            return 0.6
        return 2e-3 + 1e-4 * size if candidate == NATIVE else 1e-2 + 3e-5 * size

    model.cost = cost
    subjects = []
    for name, of in sizes.items():
        own = replace(plan(LAUNCHES), sizes=of)
        able = [algorithm("native"), algorithm("other")]
        subjects.append(Subject(Search(PaidSource(model, purse), own, name, able), name, own, dict))
    Spender(subjects, purse, Protocol(), lambda *call: 0.0).run()
    asked = [one.launch for one in model.asked]
    assert asked == sorted(asked)
    assert asked[-1] == 6


def test_short_calls_have_none():
    racers = OTHER, NATIVE
    raced = {OTHER: [0.01] * 5, NATIVE: [0.01, 0.02, 0.02, 0.02, 0.02]}
    point = Point(Field(racers, (frozenset(racers),)), {c: [0.01] for c in racers}, {})
    point.finalists, point.launches = racers, [1, 2, 3, 4, 5]
    point.raced = {c: {n + 1: [s] for n, s in enumerate(times)} for c, times in raced.items()}
    assert not asks_for_more(point, Protocol())
    point.seen = {c: [0.6] for c in racers}
    assert asks_for_more(point, Protocol())
    assert len(further_launches(Protocol())) == FURTHER


def test_a_small_gain_has_none_though_the_last_launch_shows_traces():
    """Only then would launches have untimed calls; there is no large gain to wait for."""
    racers = OTHER, NATIVE
    raced = {OTHER: [0.6] * 5, NATIVE: [0.627, 0.627, 0.627, 0.627, 0.582]}
    point = Point(Field(racers, (frozenset(racers),)), {c: [0.6] for c in racers}, {})
    point.finalists, point.launches, point.settles_from = racers, [1, 2, 3, 4, 5], 6
    point.raced = {c: {n + 1: [s] for n, s in enumerate(times)} for c, times in raced.items()}
    assert not asks_for_more(point, Protocol())
