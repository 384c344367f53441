"""Races and searches on cost models, whose right answers are known."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.catalogue import Algorithm, Parameter
from stagegen.errors import MeasurementError
from stagegen.measure.records import Candidate, Measurement
from stagegen.measure.source import LogSource, Source
from stagegen.tune.checking import CheckedSource, find_wrong
from stagegen.tune.choose import RESOLUTION, choose, crossover, fastest
from stagegen.tune.field import Field, Times
from stagegen.tune.launches import FINALISTS, name_finalists, run_launch
from stagegen.tune.point import Point, noise_of
from stagegen.tune.prediction import Prediction
from stagegen.tune.protocol import Protocol
from stagegen.tune.race import look, try_short
from stagegen.tune.scouting import odd_middles
from stagegen.tune.search import Outcome, Plan, Search
from tests.measure.fakes import TIMING, Model, request
from tests.tune.recorder import Recorder

SIZES = (1, 64, 512, *(1024 << k for k in range(9)))
NATIVE = Candidate("native")


def algorithm(name: str, needs: str | None = None, **more) -> Algorithm:
    return Algorithm("alltoall", name, "It.", **{
        "parameters": (), "constraints": (), "needs": needs, "construction": None, "min_bytes": 0,
        "max_ranks": None, "max_bytes": None, "cost": "α", "reference": "none",
        "template": Path(name), **more,
    })  # fmt: skip


def line(latency: float, per_byte: float):
    return lambda size: latency + per_byte * size


def by_name(**costs):
    return lambda candidate, size: costs[candidate.algorithm](size)


def search(model: Model, algorithms: list[Algorithm], sizes=SIZES, ranks: int = 8) -> Outcome:
    plan = Plan(ranks, tuple(sizes), TIMING, 20.0, lambda what: None)
    source = CheckedSource(model)
    wrong = {check.candidate.algorithm for check in checks(source, algorithms)}
    left = [algorithm for algorithm in algorithms if algorithm.name not in wrong]
    return Search(source, plan, "alltoall", left).run()


def checks(source: Source, algorithms: list[Algorithm]):
    return find_wrong(source, "alltoall", "whole", algorithms, lambda what: None)


def rules(outcome: Outcome, kind: str = "cluster") -> list[tuple[int, str]]:
    (table,) = (table for table in outcome.tables if table.communicator == kind)
    return [(rule.first, rule.candidate.algorithm) for rule in table.rules]


# Races.


def candidates(count: int) -> tuple[Candidate, ...]:
    return tuple(Candidate(f"c{i:02}") for i in range(count))


def points(model: Model, racers: tuple[Candidate, ...], groups=None) -> Point:
    """Scout these candidates, and name the finalists."""
    field = Field(racers, groups or (frozenset(racers),))
    asked = request(*racers)
    seen: Times = {}
    look(model, asked, field, Prediction(lambda size: 0.0), seen)
    point = Point(field, seen, try_short(model, asked, field, seen))
    name_finalists(point, [])
    return point


@pytest.mark.parametrize("seed", range(20))
def test_the_best_is_a_finalist_under_moderate_noise(seed):
    chance = random.Random(seed)
    racers = (*candidates(12), NATIVE)
    costs = dict(zip(racers, [1.0, *(chance.uniform(1.1, 6) for _ in racers[1:])], strict=True))
    model = Model(lambda c, size: 0.01 * costs[c], noise=0.04, seed=seed)
    point = points(model, racers)
    assert {racers[0], NATIVE} <= {*point.finalists}
    assert len(point.finalists) <= max(most for _, most in FINALISTS) + 1


def test_each_group_has_a_finalist():
    racers = (*candidates(6), NATIVE)
    model = Model(lambda c, size: 0.001 * (1 if c in racers[:5] else 100))
    groups = (frozenset(racers), frozenset(racers[5:]))
    assert {racers[0], racers[5]} <= {*points(model, racers, groups).finalists}


@pytest.mark.parametrize(
    ("times", "per_byte", "middles"),
    [
        pytest.param((1.0, 3.0, 3.2), 0.0, [2048, 8192], id="above the line"),
        pytest.param((1.0, 1.0, 9.0), 0.0, [], id="below it, with no bound"),
        pytest.param((1.0, 1.0, 9.0), 8 / 12288, [], id="below it, as the bound grows"),
        pytest.param((1.0, 1.0, 9.0), 4 / 12288, [8192], id="below it, against the bound"),
    ],
)
def test_sizes_are_added_where_times_are_above_the_line_or_grow_against_the_bound(
    times, per_byte, middles
):
    by_size = dict(zip((1024, 4096, 16384), times, strict=True))
    assert odd_middles(by_size, lambda size: per_byte * size, {}) == middles


def test_a_slow_candidate_is_timed_few_times():
    racers = (*candidates(3), NATIVE)
    model = Model(lambda c, size: 0.001 if c == racers[0] else 10.0)
    points(model, racers)
    assert sum(c == racers[1] for one in model.asked for c in one.candidates) <= 2


def test_a_candidate_that_a_hiccup_put_behind_is_looked_at_again():
    """The best one lost a packet in its first call of 0.1 s, beside many that took 0.3 s."""

    class Unlucky(Model):
        def measure(self, asked):
            made = super().measure(asked)
            first = len(self.asked) == 1
            times = tuple(
                (0.3,) if first and c == racers[0] else seconds
                for c, seconds in zip(asked.candidates, made.seconds, strict=True)
            )
            return replace(made, seconds=times)

    racers = (*candidates(4), NATIVE)
    costs = dict(zip(racers, [0.1, 0.26, 0.27, 0.28, 0.25], strict=True))
    model = Unlucky(lambda c, size: costs[c])
    prediction = Prediction(lambda size: 0.0)
    for size in (512, 900):
        prediction.observe(size, {c.algorithm: 0.98 * costs[c] for c in racers})
    field = Field(racers, (frozenset(racers),))
    seen: Times = {}
    look(model, request(*racers), field, prediction, seen)
    assert min(seen[racers[0]]) == pytest.approx(0.1)


def test_candidates_that_nothing_is_known_of_hide_no_others():
    """A prediction of 0 s is a guess: the nearest of many are still the least ones."""
    racers = candidates(4)
    times = dict(zip(racers, [0.0, 1.0, 2.0, 3.0], strict=True))
    field = Field(racers, (frozenset(racers),))
    assert field.nearest(times, float("inf"), 3) == list(racers[:3])


def test_hiccups_in_half_of_a_trial_do_not_make_a_finalist_a_loser():
    racers = (*candidates(2), NATIVE)
    tried = {racers[0]: [2e-3, 2e-2, 2e-2], racers[1]: [3e-3] * 3, NATIVE: [3e-3] * 3}
    seen = {c: [times[0]] for c, times in tried.items()}
    point = Point(Field(racers, (frozenset(racers),)), seen, tried)
    name_finalists(point, [])
    assert racers[0] in point.finalists
    assert fastest(point.samples()) == racers[0]


# Launches.


@pytest.mark.parametrize("noise", [0.02, 0.4])
def test_a_time_is_beaten_only_by_more_than_the_noise(noise):
    """Native is 1.8 × as slow in the first launch; looks at one candidate differ by the noise."""
    racers = (Candidate("a"), NATIVE)
    seen = {racers[0]: [1.0, 1.0 + noise], NATIVE: [1.8, 1.8 * (1 + noise)]}
    point = Point(Field(racers, (frozenset(racers),)), seen, seen)
    name_finalists(point, [])
    model = Model(lambda c, size: 1.0 if c == racers[0] else 1.8)
    run_launch(
        model, replace(request(*racers), launch=1), point, Protocol(), 20.0, noise_of([point])
    )
    assert (NATIVE in point.running) == (noise > 0.1)


def test_a_launch_that_hiccups_disturb_goes_on():
    racers = (Candidate("a"), NATIVE)

    class Disturbed(Model):
        def measure(self, asked):
            made = super().measure(asked)
            late = 0.2 if len(self.asked) == 1 else 0.0
            times = tuple(tuple(t + late for t in seconds) for seconds in made.seconds)
            return replace(made, seconds=times)

    costs = {racers[0]: 0.4, NATIVE: 0.5}
    seen = {c: [costs[c], costs[c]] for c in racers}
    point = Point(Field(racers, (frozenset(racers),)), seen, seen)
    name_finalists(point, [])
    model = Disturbed(lambda c, size: costs[c])
    run_launch(model, replace(request(*racers), launch=1), point, Protocol(), 0.1)
    assert [len(point.pooled(c)) for c in racers] == [3, 3]
    assert point.median(racers[0]) == pytest.approx(0.4)


def test_if_the_first_challenger_fails_no_other_replaces_the_native_routine():
    first, second = Candidate("a"), Candidate("b")
    racers = (first, second, NATIVE)
    seen = {first: [0.020], second: [0.021], NATIVE: [0.022]}
    point = Point(Field(racers, (frozenset(racers),)), seen, seen)
    name_finalists(point, [])
    costs = {first: 0.023, second: 0.019, NATIVE: 0.022}
    model = Model(lambda c, size: costs[c])
    run_launch(model, replace(request(*racers), launch=1), point, Protocol(), 20.0)
    assert point.running == (NATIVE,)
    assert choose(point.samples(), NATIVE) == NATIVE


@pytest.mark.parametrize(("unit", "chosen"), [(1.0, "b"), (0.01, "native")], ids=["long", "short"])
def test_each_challenger_is_tested_for_itself_where_calls_are_long(unit, chosen):
    """Scouting cannot tell two of them apart. The first one gains 2 %, the second one 4 %."""
    first, second = Candidate("a"), Candidate("b")
    racers = (first, second, NATIVE)
    seen = {first: [0.5027 * unit], second: [0.5028 * unit], NATIVE: [0.64 * unit]}
    point = Point(Field(racers, (frozenset(racers),)), seen, seen)
    name_finalists(point, [])
    costs = {first: 0.514 * unit, second: 0.503 * unit, NATIVE: 0.5245 * unit}
    model = Model(lambda c, size: costs[c])
    for launch in range(1, Protocol().launches + 1):
        run_launch(model, replace(request(*racers), launch=launch), point, Protocol(), 20.0)
    assert choose(point.samples(), NATIVE).algorithm == chosen


# Crossovers.


@given(st.integers(1, 1 << 18), st.integers(2, 64), st.floats(0, 1))
def test_a_crossover_is_found_within_the_resolution(low, factor, share):
    high = low * factor
    edge = low + 1 + int(share * (high - low - 1))
    below, above = crossover(low, high, lambda size: size >= edge)
    assert low <= below < edge <= above <= high
    assert above - below <= max(1, below * RESOLUTION)


# Searches.


def test_lines_cross_where_they_cross():
    """Bruck's for short, simple for long messages; native never best."""
    model = Model(
        by_name(native=line(9e-3, 4e-7), bruck=line(1e-3, 3e-7), simple=line(5e-3, 1e-7)),
        noise=0.001,
    )
    outcome = search(model, [algorithm(n) for n in ("native", "bruck", "simple")])
    assert [name for _, name in rules(outcome)] == ["bruck", "simple"]
    start = rules(outcome)[1][0]
    assert start == pytest.approx(20000, rel=2 * RESOLUTION)
    (table, *_) = outcome.tables
    below, above = table.rules[1].crossover
    assert below < above == start
    assert above - below <= below * RESOLUTION


def test_three_lines_have_two_crossovers():
    model = Model(
        by_name(native=line(1e-3, 1e-6), ring=line(2e-3, 5e-7), tree=line(9e-3, 2e-7)), noise=0.001
    )
    outcome = search(model, [algorithm(n) for n in ("native", "ring", "tree")])
    assert [name for _, name in rules(outcome)] == ["native", "ring", "tree"]
    starts = [start for start, _ in rules(outcome)]
    assert starts[0] == 0
    assert starts[1] == pytest.approx(2191, rel=0.2)  # where it is faster by more than 3 %
    assert starts[2] == pytest.approx(25381, rel=0.2)


def test_noise_alone_seldom_replaces_the_native_routine():
    served = []
    for seed in range(20):
        model = Model(by_name(native=line(1e-2, 0), other=line(1e-2, 0)), noise=0.02, seed=seed)
        (table, *_) = search(model, [algorithm("native"), algorithm("other")]).tables
        served += [table.choice(size).algorithm for size in SIZES]
    assert served.count("other") < 0.15 * len(served)


def test_the_luckiest_of_many_seldom_replaces_the_native_routine():
    """None of them is faster, but one of a dozen is lucky; seldom twice."""
    names = [f"a{i:02}" for i in range(12)]
    served = []
    for seed in range(20):
        model = Model(by_name(**dict.fromkeys(["native", *names], line(1e-2, 0))), 0.1, seed=seed)
        (table, *_) = search(model, [algorithm(name) for name in ("native", *names)]).tables
        served += [table.choice(size).algorithm for size in SIZES]
    assert served.count("native") > 0.9 * len(served)


def test_a_gain_below_the_margin_leaves_the_native_routine():
    model = Model(by_name(native=line(1e-2, 0), other=line(0.98e-2, 0)))
    assert rules(search(model, [algorithm("native"), algorithm("other")])) == [(0, "native")]


def test_high_latency_at_small_sizes_does_not_keep_a_winner_out():
    """A ring of 16 ranks against a tree: 15 latencies against 4, and a quarter of the bytes."""
    model = Model(by_name(native=line(5e-3, 4e-7), ring=line(15e-3, 1e-7), tree=line(4e-3, 4e-7)))
    outcome = search(model, [algorithm(n) for n in ("native", "ring", "tree")])
    assert [name for _, name in rules(outcome)] == ["tree", "ring"]


def test_what_is_far_behind_for_long_messages_is_given_up():
    model = Model(by_name(native=line(1e-3, 1e-6), flat=line(1e-3, 4e-6)))
    outcome = search(model, [algorithm("native"), algorithm("flat")])
    assert rules(outcome) == [(0, "native")]
    looked_at = {r.size for r in model.asked for c in r.candidates if c.algorithm == "flat"}
    assert len(looked_at) < len(SIZES) / 2


def test_what_serves_without_a_topology_is_not_measured_by_what_needs_one():
    model = Model(by_name(native=line(1e-3, 9e-6), aapc=line(1e-3, 1e-6), ring=line(1e-3, 5e-6)))
    algorithms = [algorithm("native"), algorithm("aapc", needs="aapc", construction="none")]
    outcome = search(model, [*algorithms, algorithm("ring")])
    assert rules(outcome, "other")[-1][1] == "ring"
    assert outcome.tables[2].choice(SIZES[-1]).algorithm == "ring"


def test_other_communicators_get_no_routine_of_the_topology():
    model = Model(
        by_name(native=line(9e-3, 0), aapc=line(1e-3, 0), ring=line(5e-3, 0)), noise=0.001
    )
    algorithms = [algorithm("native"), algorithm("aapc", needs="aapc", construction="none")]
    outcome = search(model, [*algorithms, algorithm("ring")])
    assert rules(outcome) == [(0, "aapc")]
    assert rules(outcome, "other") == [(0, "ring")]


@pytest.mark.parametrize(("thrifty", "tried"), [(False, {1, 2, 4}), (True, {1})])
def test_within_a_budget_no_values_are_tried_of_what_is_far_behind(thrifty, tried):
    """Each value would be checked first. If it is near the best one, they are."""
    parameter = Parameter("radix", "a number", (1, 2, 4), 1)
    model = Model(by_name(native=line(1e-3, 0), near=line(1.1e-3, 0), far=line(5e-3, 0)))
    names = ("near", "far")
    algorithms = [algorithm("native"), *(algorithm(n, parameters=(parameter,)) for n in names)]
    plan = Plan(8, (1024,), TIMING, 20.0, lambda what: None, thrifty=thrifty)
    Search(model, plan, "alltoall", algorithms).run()
    values = {
        name: {
            dict(candidate.parameters)["radix"]
            for asked in model.asked
            for candidate in asked.candidates
            if candidate.algorithm == name
        }
        for name in names
    }
    assert values == {"near": {1, 2, 4}, "far": tried}


def test_parameters_are_tuned_for_each_size():
    def cost(candidate: Candidate, size: int) -> float:
        if candidate == NATIVE:
            return 3.0
        best = 16 if size < 2000 else 64 if size < 8000 else 256
        return 1e-4 * (1 + abs(dict(candidate.parameters)["segment_size"] - best))

    parameter = Parameter("segment_size", "bytes", (16, 64, 256, 1024), 1024)
    model = Model(cost, noise=0.0005)
    outcome = search(
        model,
        [algorithm("native"), algorithm("linear", parameters=(parameter,))],
        sizes=(1024, 4096, 16384),
    )
    chosen = [outcome.tables[0].choice(size).spec for size in (1024, 4096, 16384)]
    assert chosen == [f"linear:segment_size={v}" for v in (16, 64, 256)]


def test_a_wrong_routine_is_reported_never_timed_and_never_chosen():
    model = Model(
        by_name(native=line(1, 0), broken=line(1e-6, 0), ring=line(0.5, 0)),
        wrong=frozenset({"broken"}),
    )
    algorithms = [algorithm(n) for n in ("native", "broken", "ring")]
    assert [check.candidate.algorithm for check in checks(model, algorithms)] == ["broken"]
    outcome = search(model, algorithms)
    assert model.timed() == {"native", "ring"}
    assert {rule.candidate.algorithm for t in outcome.tables for rule in t.rules} == {"ring"}


def test_a_routine_wrong_for_one_parameter_is_wrong():
    class Picky(Model):
        def check(self, collective, given, communicator="whole"):
            checks = super().check(collective, given)
            return [
                replace(check, wrong=1) if ("segment", 1) in check.candidate.parameters else check
                for check in checks
            ]

    model = Picky(by_name(native=line(1, 0), linear=line(1e-6, 0)))
    parameter = Parameter("segment", "bytes", (1, 8, 64), 8)
    algorithms = [algorithm("native"), algorithm("linear", parameters=(parameter,))]
    outcome = search(model, algorithms)
    wrong = Candidate("linear", (("segment", 1),))
    assert wrong in model.checked
    assert wrong not in {c for asked in model.asked for c in asked.candidates}
    assert {name for _, name in rules(outcome)} == {"native"}
    assert {failure.candidate for failure in outcome.failures} == {wrong}


def test_every_value_of_a_parameter_that_is_timed_is_checked_once():
    parameter = Parameter("segment", "bytes", (1, 8, 64, 512), 8)
    model = Model(by_name(native=line(1, 0), linear=line(0.5, 0)))
    search(model, [algorithm("native"), algorithm("linear", parameters=(parameter,))])
    timed = {c for asked in model.asked for c in asked.candidates} - {NATIVE}
    assert len(timed) > 1
    assert sorted(model.checked) == sorted(timed)


def test_a_duel_must_be_won_by_more_than_the_noise():
    """From 1024 bytes on `up` is 10 % faster, before that 1 %: it serves from 1024 bytes on."""

    def cost(candidate: Candidate, size: int) -> float:
        return 1e-2 * (1 if candidate == NATIVE else 0.99 if size < 1024 else 0.9)

    outcome = search(Model(cost), [algorithm("native"), algorithm("up")], sizes=(1, 65536))
    assert [name for _, name in rules(outcome)] == ["native", "up"]
    assert 1024 <= rules(outcome)[1][0] <= 1024 * (1 + RESOLUTION)


def test_constraints_keep_an_algorithm_out():
    model = Model(by_name(native=line(1, 0), pair=line(1e-3, 0)))
    pair = algorithm("pair", constraints=("power_of_two",))
    assert rules(search(model, [algorithm("native"), pair], ranks=8)) == [(0, "pair")]
    assert rules(search(model, [algorithm("native"), pair], ranks=6)) == [(0, "native")]


def test_sizes_that_an_algorithm_cannot_do_are_never_timed():
    model = Model(by_name(native=line(1, 0), short=line(1e-3, 0)), noise=0.001)
    short = algorithm("short", max_bytes=600)
    outcome = search(model, [algorithm("native"), short])
    sizes = [r.size for r in model.asked for c in r.candidates if c.algorithm == "short"]
    assert max(sizes) <= 600
    assert rules(outcome)[0] == (0, "short")
    assert rules(outcome)[-1][1] == "native"
    assert 600 < rules(outcome)[-1][0] <= 600 * (1 + RESOLUTION)


def noisy(seed: int) -> Model:
    chance = random.Random(seed)
    costs = {
        f"a{i}": line(chance.uniform(1e-3, 9e-3), 10 ** chance.uniform(-8, -6)) for i in range(5)
    }
    return Model(by_name(native=line(4e-3, 3e-7), **costs), noise=0.1, seed=seed)


ALGORITHMS = [algorithm("native"), *(algorithm(f"a{i}") for i in range(5))]


@pytest.mark.parametrize("seed", range(5))
def test_a_log_replays_to_the_same_decision(seed):
    records: list = []
    outcome = search(Recorder(noisy(seed), records), ALGORITHMS)
    assert search(LogSource(records), ALGORITHMS) == outcome


@pytest.mark.parametrize("seed", range(2))
def test_a_search_that_was_stopped_anywhere_goes_on_to_the_same_decision(seed):
    records: list = []
    outcome = search(Recorder(noisy(seed), records), ALGORITHMS)
    for cut in range(0, len(records), 3):
        known = list(records[:cut])
        model = noisy(seed)
        for record in known:  # the noise of a request depends on how often it was asked
            if record["kind"] == "measurement":
                model.asked.append(_request_of(record))
        resumed = search(LogSource(known, Recorder(model, known)), ALGORITHMS)
        assert resumed.tables == outcome.tables, f"cut after {cut} records"
        assert known == records


def _request_of(record):
    return Measurement.from_json(record).request


def test_a_log_that_ends_too_early_is_no_decision():
    records: list = []
    search(Recorder(noisy(1), records), ALGORITHMS)
    with pytest.raises(MeasurementError, match="the log lacks"):
        search(LogSource(records[:-1]), ALGORITHMS)


def test_one_lucky_look_does_not_keep_the_others_from_their_trial():
    """One call takes 0.4 of what all others do, as it happens with short messages."""
    racers = (*candidates(5), NATIVE)
    seen = {racer: [1e-3, 1.1e-3] for racer in racers}
    seen[racers[4]] = [4e-4, 9.5e-4]
    costs = dict(zip(racers, [0.7, 0.8, 0.8, 0.8, 0.9, 0.9], strict=True))
    model = Model(lambda c, size: 1e-3 * costs[c])
    asked, field = request(*racers), Field(racers, (frozenset(racers),))
    tried = try_short(model, asked, field, seen)
    assert racers[4] in tried
    assert len(tried) > 3
    point = Point(field, seen, tried)
    name_finalists(point, [])
    assert racers[0] in point.finalists
