"""Tuning for ranks that come late: experiments are numbered, and looks are of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.catalogue.algorithm import NATIVE
from stagegen.data import TOPOLOGIES
from stagegen.measure.arrivals import LOOK, Imbalance
from stagegen.measure.records import Candidate, CandidateFailed, Failure, Measurement
from stagegen.measure.source import LogSource
from stagegen.measure.timing import Timing
from stagegen.topology import load_topology
from stagegen.tune.bounds import bound_or_none
from stagegen.tune.experiments import Experiments
from stagegen.tune.field import Field
from stagegen.tune.launches import run_launch
from stagegen.tune.point import Point
from stagegen.tune.protocol import Protocol
from stagegen.tune.race import LATE_TOGETHER
from stagegen.tune.scope import Options
from stagegen.tune.tuner import tune
from tests.measure.fakes import Model, request

LATE = Timing("imbalance", metric="mean", arrivals=Imbalance(16, True))
TOPOLOGY = load_topology(TOPOLOGIES / "quickstart.yaml")
CATALOGUE = load_catalogue()
RING, PAIR, FAR = Candidate("ring"), Candidate("pair"), Candidate("far")


class Log(Model):
    """Records of all that was measured."""

    def measure(self, request):
        measured = super().measure(request)
        self.records.append(measured.to_json())
        return measured

    records: list


def test_equal_requests_have_further_experiments_and_others_the_same():
    model = Model(lambda _candidate, _size: 1.0)
    source = Experiments(model)
    asked = replace(request(RING, PAIR, repetitions=3), timing=LATE, launch=1)
    other = replace(asked, candidates=(PAIR,))
    for one in (asked, asked, other, replace(asked, repetitions=5), replace(asked, launch=2)):
        answer = source.measure(one)
        assert answer.request == one
    assert [one.first for one in model.asked] == [0, 3, 0, 6, 0]
    assert model.asked[0].experiment != model.asked[-1].experiment


@pytest.mark.parametrize("launch", [0, 3])
def test_a_look_is_the_mean_of_the_same_experiments(launch):
    """The mean, not the least: that would be the time of the mildest pattern."""
    model = Model(lambda _candidate, _size: 1.0, noise=0.5)
    source = Experiments(model)
    asked = replace(request(RING, repetitions=1), timing=LATE, launch=launch, look=True)
    ((mean,),) = source.measure(asked).seconds
    source.measure(asked)
    assert [(one.first, one.repetitions) for one in model.asked] == [(0, LOOK)] * 2
    assert mean > 1.0
    again = Model(lambda _candidate, _size: 1.0, noise=0.5)
    ((*many,),) = again.measure(replace(asked, repetitions=LOOK)).seconds
    assert mean == pytest.approx(sum(many) / LOOK)


def test_without_late_ranks_requests_stay_as_they_are():
    model = Model(lambda _candidate, _size: 1.0)
    source = Experiments(model)
    for _ in range(2):
        source.measure(request(RING, repetitions=1))
    assert [(one.first, one.repetitions) for one in model.asked] == [(0, 1)] * 2


def cost(candidate: Candidate, size: int) -> float:
    """One algorithm stands imbalance."""
    return 1e-3 * (1 if candidate.algorithm == "simple" else 2) * (1 + size / 1024)


def test_tuning_under_imbalance_chooses_again_from_its_log_alone():
    options = Options(
        ("alltoall",), (64, 4096), LATE, 0.5, ("whole",), protocol=Protocol(launches=5)
    )
    model = Log(cost, noise=0.05)
    model.records = []
    tuned = tune(TOPOLOGY, CATALOGUE, options, model, lambda: True)
    checks = [check.to_json() for check in Model(cost).check("alltoall", tuple(model.checked))]
    again = tune(TOPOLOGY, CATALOGUE, options, LogSource([*checks, *model.records]), lambda: True)
    assert again.decision == tuned.decision
    assert tuned.decision.timing == LATE
    table = tuned.decision.tables[0]
    assert {rule.candidate.algorithm for rule in table.rules} == {"simple"}
    assert all(one.timing == LATE for one in model.asked)
    launches = {one.launch for one in model.asked}
    assert min(launches) == 0 < max(launches)
    assert all(Measurement.from_json(r).request.timing.arrivals for r in model.records)


def test_looks_after_a_late_failure_are_of_as_many_experiments_as_all_others():
    """One experiment says little of what the others take without the one that failed."""
    options = Options(
        ("alltoall",), (64, 4096), LATE, 0.5, ("whole",), protocol=Protocol(launches=5)
    )

    class Late(Model):
        def measure(self, asked):
            if asked.launch == 1 and any(c.algorithm == "simple" for c in asked.candidates):
                failed = (asked.collective, asked.size, Candidate("simple"), "x")
                raise CandidateFailed(Failure(*failed))
            return super().measure(asked)

    model = Late(cost, noise=0.05)
    tune(TOPOLOGY, CATALOGUE, options, model, lambda: True)
    later = [one for one in model.asked if one.launch == 1 and len(one.candidates) > 3]
    again = [one for one in later if not one.settle]
    assert again
    assert {one.repetitions for one in again} == {LOOK}


def looked_at(
    arrivals: Imbalance,
    size: int,
    cost: Callable[[Candidate, int], float] = cost,
    best: str = "simple",
) -> dict[int, set[str]]:
    """Return by size, in the order of the first looks, which algorithms were looked at."""
    timing = replace(LATE, metric="last", arrivals=arrivals)
    options = Options(
        ("alltoall",), (size,), timing, 0.5, ("whole",), protocol=Protocol(launches=5)
    )
    model = Model(cost)
    (outcome,) = tune(TOPOLOGY, CATALOGUE, options, model, lambda: True).outcomes
    assert {rule.candidate.algorithm for rule in outcome.tables[0].rules} == {best}
    seen: dict[int, set[str]] = {}
    for one in model.asked:
        if one.launch == 0:
            seen.setdefault(one.size, set()).update(c.algorithm for c in one.candidates)
    return seen


def test_where_ranks_come_seconds_late_smaller_sizes_decide_which_algorithms_get_a_look():
    """They begin where a call is short, and not where it is so short that latency decides."""
    size = 1 << 15
    assert list(looked_at(Imbalance(2, True), size)) == [size]
    seen = looked_at(Imbalance(64, True), size)
    assert list(seen) == [size // 16, size // 4, size]
    assert list(looked_at(Imbalance(256, True), size)) == [size // 64, size // 16, size // 4, size]
    assert {"simple", NATIVE} <= seen[size]
    assert len(seen[size]) < len(seen[size // 16]) / 3


def test_no_smaller_size_is_looked_at_if_ranks_are_as_late_there():
    size = 1 << 15
    assert list(looked_at(Imbalance(2_000_000, False), size)) == [size]


def test_what_wins_at_a_large_size_alone_is_found_where_few_are_looked_at():
    """Many steps cost much at small sizes, and at large ones they overlap."""
    described = CATALOGUE.collective("alltoall")

    def crossing(candidate: Candidate, size: int) -> float:
        bound = bound_or_none(TOPOLOGY, described, size)
        assert bound is not None
        if candidate.algorithm == "ring":
            return max(12e-3, 1.06 * bound.seconds)
        return 4e-3 + 5e-5 * len(candidate.spec) + 1.7 * bound.seconds

    size = 1 << 15
    seen = looked_at(Imbalance(1024, True), size, crossing, "ring")
    assert len(seen[size]) < len(seen[size // 64]) / 3


class Waiting(Model):
    """Each call takes a second of waiting for the last rank, and so does its repetition."""

    def measure(self, request):
        measured = super().measure(request)
        return replace(measured, took=float(len(request.candidates) * request.repetitions))


def test_a_budget_ends_between_parts_of_a_look_and_what_was_seen_counts():
    """A whole look at all candidates would take several times the budget."""
    total = 30.0
    options = Options(
        ("alltoall",), (4096,), LATE, 0.5, ("whole",), protocol=Protocol(launches=5), total=total
    )
    model = Waiting(cost)
    tuned = tune(TOPOLOGY, CATALOGUE, options, model, lambda: True)
    spent = sum(len(one.candidates) * one.repetitions for one in model.asked)
    assert total <= spent <= total + LATE_TOGETHER * LOOK
    first, *_ = model.asked
    assert NATIVE in {candidate.algorithm for candidate in first.candidates}
    (outcome,) = tuned.outcomes
    assert len(outcome.samples[4096]) > LATE_TOGETHER
    assert tuned.decision.tables


def test_what_is_left_of_a_launch_goes_on_with_further_experiments():
    model = Model(lambda _candidate, _size: 1.0)
    source = Experiments(model)
    asked = replace(request(RING, PAIR, repetitions=2), timing=LATE, launch=1)
    left = replace(asked, candidates=(PAIR,), first=4)
    for one in (asked, asked, left, left):
        assert source.measure(one).request == one
    assert [one.first for one in model.asked] == [0, 2, 4, 6]


def test_those_left_in_a_launch_have_no_experiment_twice():
    """A far slower candidate leaves after the first round; the others go on with the second one."""
    costs = {RING: 1.0, PAIR: 1.05, FAR: 1.4}
    model = Model(lambda candidate, _size: costs[candidate], noise=0.2)
    looks = {candidate: [seconds] for candidate, seconds in costs.items()}
    field = Field(tuple(costs), (frozenset(costs),))
    point = Point(field, looks, dict(looks), finalists=tuple(costs))
    point.ranks = dict(costs)
    asked = replace(request(*costs), timing=LATE, launch=1)
    run_launch(Experiments(model), asked, point, Protocol(width=1e-3), 20.0)
    assert len({one.candidates for one in model.asked}) > 1, "nobody left"
    numbers = [one.first for one in model.asked]
    assert numbers == list(range(len(numbers)))
