"""Hints from one communicator for another: the best candidates of the nearest shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import (
    Bound,
    Candidate,
    Check,
    Measurement,
    Request,
    Timing,
)
from stagegen.tune.choose import choose, without_doubtful
from stagegen.tune.communicators import Communicator
from stagegen.tune.field import Field, Sample
from stagegen.tune.hints import hints_from
from stagegen.tune.passes import Topic, teacher_of
from stagegen.tune.plan import Outcome, Plan
from stagegen.tune.point import Point
from stagegen.tune.prediction import Prediction
from stagegen.tune.race import TRIAL
from stagegen.tune.scope import Options
from stagegen.tune.scouting import Scout
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import tune
from tests.measure.fakes import Model
from tests.strategies import make_topology

CATALOGUE = load_catalogue()

NATIVE, RING, TREE, PAIR = map(Candidate, ("native", "ring", "tree", "pair"))
ALL = {"native", "ring", "tree", "pair", "composed"}


def outcome(**seconds: float) -> Outcome:
    return of({Candidate(name): value for name, value in seconds.items()})


def of(seconds: dict[Candidate, float]) -> Outcome:
    samples = {candidate: Sample((value,)) for candidate, value in seconds.items()}
    return Outcome("alltoall", "whole", (), {64: samples}, ())


def topic(shape: str, collective: str = "bcast", group: int | None = None) -> Topic:
    """Return a topic on the cluster, a group of it, or a job of some shape."""
    hosts, per_host = map(int, shape.split("x"))
    ranks = tuple(range(hosts * per_host))
    communicator = Communicator(shape, ranks, hosts, group)
    return Topic(CATALOGUE.collective(collective), communicator, (), (), {})


WHOLE, PAIRS, FULL, HOST = topic("16x1", group=0), topic("2x1"), topic("15x8"), topic("1x4")


@pytest.mark.parametrize(
    ("shape", "before", "teacher"),
    [
        pytest.param("8x1", [WHOLE, PAIRS], WHOLE, id="16 hosts are nearer"),
        pytest.param("3x1", [WHOLE, PAIRS], PAIRS, id="2 hosts are nearer"),
        pytest.param("3x1", [PAIRS, WHOLE], PAIRS, id="in another order"),
        pytest.param("15x1", [FULL, WHOLE], FULL, id="hosts count before ranks per host"),
        pytest.param("4x1", [topic("4x1", "reduce")], None, id="another collective"),
        pytest.param("1x8", [WHOLE, FULL], None, id="one host is like no other"),
        pytest.param("2x8", [HOST], None, id="several hosts are not like one"),
        pytest.param("1x8", [FULL, HOST], HOST, id="another host"),
        pytest.param("4x1", [], None, id="the first search"),
    ],
)
def test_hints_come_from_the_nearest_shape(shape, before, teacher):
    assert teacher_of(topic(shape), before) is teacher


@pytest.mark.parametrize("group", [0, 1])
def test_no_other_search_knows_the_schedules_of_the_cluster_and_of_groups(group):
    assert teacher_of(topic("8x1", group=group), [WHOLE, PAIRS]) is None


def test_what_cannot_run_there_is_left_out():
    found = outcome(native=3, ring=1, tree=2, pair=4)
    assert hints_from(found, ALL) == {64: (RING, TREE)}
    assert hints_from(found, {"native", "tree"}) == {64: (TREE, NATIVE)}


def test_an_algorithm_is_passed_on_once_and_compositions_are_not():
    small, large = (Candidate("ring", (("segment_size", size),)) for size in (64, 4096))
    composed = Candidate("composed", (), (Bound("bcast", NATIVE),))
    found = of({small: 2, large: 1, composed: 0.5, NATIVE: 3})
    assert hints_from(found, ALL) == {64: (large, NATIVE)}


def test_with_one_rule_for_all_sizes_what_serves_them_is_passed_on_at_each():
    short = {NATIVE: Sample((1.0,)), RING: Sample((4.0,)), TREE: Sample((0.9,))}
    long = {NATIVE: Sample((1.0,)), RING: Sample((0.2,)), TREE: Sample((0.8,))}
    found = Outcome("alltoallv", "whole", (), {1: short, 65536: long}, ())
    passed_on = hints_from(found, ALL, one_rule=True)
    assert passed_on == {1: (TREE, NATIVE), 65536: (TREE,)}


def crossing(candidate: Candidate, size: int) -> float:
    """Return seconds: pipelined_linear is faster than binomial by 3 % from 5817 bytes on."""
    lines = {"native": (2e-3, 3e-6), "binomial": (2e-3, 1e-6), "pipelined_linear": (7e-3, 1e-7)}
    at_once, per_byte = lines.get(candidate.algorithm, (1e-2, 4e-6))
    return at_once + per_byte * size


def tuned(model: Model, total: float | None = None):
    options = Options(("bcast",), (64, 1024, 16384), Timing(), 1.0, ("whole", "4"), total=total)
    return tune(make_topology([4, 4], [0]), CATALOGUE, options, model, lambda: True)


def test_looks_of_many_ranks_decide_which_routines_few_ranks_try_with_the_longest_messages():
    """No communicator has the other's longest size, and its calls are long."""
    model = Model(crossing)
    tuned(model)
    asked = {
        candidate.algorithm
        for request in model.asked
        for candidate in request.candidates
        if (request.communicator, request.size) == ("4", 4 * 16384) and not candidate.bound
    }
    assert "pipelined_linear" in asked
    assert len(asked) <= 3


def test_a_crossover_of_few_ranks_follows_from_the_times_at_the_sizes():
    """There, pipelined_linear must be faster than binomial by 10 %, as it is from 6500 bytes on."""
    model = Model(crossing)
    decision = tuned(model).decision
    for kind, ranks, first in (("cluster", 8, 5817), ("hosts", 4, 6500)):
        table = decision.table("bcast", kind, Shape(ranks, 1))
        assert table is not None
        (rule,) = (r for r in table.rules if r.candidate.algorithm == "pipelined_linear")
        assert rule.first == pytest.approx(first, rel=1 / 8)
    for communicator, has_duels in (("whole", True), ("4", False)):
        asked = [request for request in model.asked if request.communicator == communicator]
        looked_at = {request.size for request in asked if request.launch == 0}
        assert any(request.size not in looked_at for request in asked) == has_duels


def by_factor(factor: float, others: float = 3.0) -> Callable[[Candidate, int], float]:
    """Return seconds: binomial takes this share of native's, and all others take longer."""
    factors = {"native": 1.0, "binomial": factor}
    return lambda candidate, size: factors.get(candidate.algorithm, others) * (1e-3 + 1e-7 * size)


@pytest.mark.parametrize("total", [None, 1000.0], ids=["all", "budget"])
@pytest.mark.parametrize(("factor", "on_few"), [(0.95, "native"), (0.85, "binomial")])
def test_few_ranks_need_more_gain_than_all_ranks(factor, on_few, total):
    """On other hosts than the measured ones, times differ."""
    decision = tuned(Model(by_factor(factor)), total).decision
    for kind, ranks, chosen in (("cluster", 8, "binomial"), ("hosts", 4, on_few)):
        table = decision.table("bcast", kind, Shape(ranks, 1))
        assert table is not None
        assert {rule.candidate.algorithm for rule in table.rules} == {chosen}


@pytest.mark.parametrize(("factor", "on_few"), [(3.0, False), (0.5, True)])
def test_compositions_that_were_slower_than_their_parts_are_not_looked_at_on_few_ranks(
    factor, on_few
):
    """A call takes 1 ms, and a part of a composition half of it; the composition, a factor more.

    At the smallest size, nothing is known of the parts, which are shorter.
    """

    def cost(candidate: Candidate, size: int) -> float:
        return factor * 1e-3 if candidate.bound else 1e-3

    class Parts(Model):
        def measure(self, request: Request) -> Measurement:
            made = super().measure(request)
            if request.collective == "bcast":
                return made
            return replace(made, seconds=tuple(tuple(t / 2 for t in s) for s in made.seconds))

    model = Parts(cost)
    names = ("allgather", "bcast", "scatter")
    options = Options(names, (64, 1024, 16384), Timing(), 1.0, ("whole", "4"))
    tune(make_topology([4, 4], [0]), CATALOGUE, options, model, lambda: True)
    composed = {
        request.communicator
        for request in model.asked
        for candidate in request.candidates
        if (request.collective, candidate.algorithm) == ("bcast", "of_scatter_and_allgather")
        and request.size > 64
    }
    assert composed == ({"whole", "4"} if on_few else {"whole"})


def launches(model: Model, communicator: str) -> set[int]:
    """Return the launches that timed native with 1024 bytes."""
    return {
        request.launch
        for request in model.asked
        if request.launch and request.size == 1024 and request.communicator == communicator
        if NATIVE in request.candidates
    }


def test_two_launches_confirm_what_was_faster_elsewhere():
    model = Model(by_factor(0.89))
    tuned(model)
    assert launches(model, "whole") == {1, 2, 3}
    assert launches(model, "4") == {1, 2}


def test_what_was_slower_than_native_elsewhere_is_not_confirmed_by_two_launches():
    """Native leads on all ranks, so it is named first. Binomial is named second, and leads here."""

    class OnFew(Model):
        def measure(self, asked):
            made = super().measure(asked)
            if asked.communicator == "whole":
                return made
            return replace(made, seconds=tuple(
                tuple(t * (0.85 if c.algorithm == "binomial" else 1.0) for t in seconds)
                for c, seconds in zip(asked.candidates, made.seconds, strict=True)
            ))  # fmt: skip

    model = OnFew(by_factor(1.05))
    decision = tuned(model).decision
    table = decision.table("bcast", "hosts", Shape(4, 1))
    assert table is not None
    assert {rule.candidate.algorithm for rule in table.rules} == {"binomial"}
    assert launches(model, "4") == {1, 2, 3}


def scouted(told_at: int) -> tuple[Scout, Point]:
    """Return what scouting finds with 1024 bytes, if binomial won with others elsewhere."""
    scout = scouting(Model(by_factor(0.8)), {told_at: (Candidate("binomial"), NATIVE)})
    return scout, look_at_1024(scout, "native", "binomial")


def look_at_1024(scout: Scout, *names: str) -> Point:
    algorithms = [CATALOGUE.find("bcast", name) for name in names]
    return scout.at(1024, algorithms, Prediction(scout.plan.bound), (), {})


def scouting(model: Model, hints: dict[int, tuple[Candidate, ...]]) -> Scout:
    """Return what scouts a bcast on four ranks."""

    def ask(size: int, candidates: tuple[Candidate, ...]) -> Request:
        return Request("bcast", size, Timing(), False, 2, 1, candidates)

    def field(candidates: Iterable[Candidate]) -> Field:
        return Field(everyone := tuple(candidates), (frozenset(everyone),))

    plan = Plan(4, (1024,), Timing(), 1.0, lambda _: None, hints=hints)
    return Scout(model, plan, ask, field)


@pytest.mark.parametrize(("told_at", "told"), [(1024, True), (2048, True), (4096, False)])
def test_what_won_with_other_messages_is_confirmed_within_an_octave(told_at, told):
    _, point = scouted(told_at)
    assert point.told == ({"binomial"} if told else set())


@pytest.mark.parametrize(("factor", "chosen"), [(0.8, "binomial"), (1.1, "native")])
@pytest.mark.parametrize(("seconds", "is_short"), [(1e-3, True), (0.02, False)])
def test_a_lucky_look_at_a_short_call_is_repeated_whatever_won_elsewhere(
    seconds, is_short, factor, chosen
):
    """The looks see half of the time of what won elsewhere."""

    class Lucky(Model):
        def measure(self, asked):
            made = super().measure(asked)
            is_look = asked.repetitions < TRIAL
            return replace(made, seconds=tuple(
                tuple(t * (0.5 if is_look and c != NATIVE else 1.0) for t in times)
                for c, times in zip(asked.candidates, made.seconds, strict=True)
            ))  # fmt: skip

    model = Lucky(lambda c, size: seconds * (1.0 if c == NATIVE else factor))
    scout = scouting(model, {1024: (Candidate("binomial"), NATIVE)})
    point = look_at_1024(scout, "native", "binomial")
    assert point.told == {"binomial"}
    expected = chosen if is_short else "binomial"
    assert choose(without_doubtful(point.samples()), NATIVE).algorithm == expected


def in_segments(size: int) -> Candidate:
    return Candidate("pipelined_linear", (("segment_size", size),))


@pytest.mark.parametrize(
    ("told", "at", "factor", "tried"),
    [
        pytest.param(512, 1024, 0.8, {512}, id="the hint wins"),
        pytest.param(1 << 20, 1024, 0.8, {1024}, id="the hint wins, with the nearest value"),
        pytest.param(512, 1024, 1.1, {512, 1024}, id="native wins"),
        pytest.param(512, 8192, 0.8, {512, 1024}, id="the hint is for another size"),
    ],
)
def test_values_that_were_best_elsewhere_are_tuned_only_where_they_do_not_win(
    told, at, factor, tried
):
    """A segment of the whole message is the longest that is tried."""
    factors = {"native": 1.0, "pipelined_linear": factor}
    model = Model(lambda c, size: 1e-3 * factors[c.algorithm])
    scout = scouting(model, {at: (in_segments(told), NATIVE)})
    point = look_at_1024(scout, *factors)
    asked = {c for request in model.asked for c in request.candidates}
    assert asked - {NATIVE} == set(map(in_segments, tried))
    first = in_segments(min(told, 1024) if at == 1024 else 1024)
    assert first in model.asked[0].candidates
    assert bool(point.told) == (factor < 1 and at == 1024)


def test_what_was_tuned_here_keeps_its_values_and_is_tuned_on():
    """Its value wins, but was best at another size: the next ones are tried."""
    model = Model(lambda c, size: 1e-3 if c == NATIVE else 0.8e-3)
    scout = scouting(model, {1024: (in_segments(512), NATIVE)})
    scout.parameters["pipelined_linear"] = in_segments(1024)
    scout.tuned.add("pipelined_linear")
    point = look_at_1024(scout, "native", "pipelined_linear")
    assert in_segments(1024) in point.seen
    assert in_segments(512) in {c for request in model.asked for c in request.candidates}


@pytest.mark.parametrize("hints", [(NATIVE,), (RING, NATIVE)])
def test_all_routines_are_looked_at_if_only_native_is_left_of_the_hints(hints):
    """Ring cannot run here."""
    point = look_at_1024(scouting(Model(by_factor(0.8)), {1024: hints}), "native", "binomial")
    assert Candidate("binomial") in point.seen


class Recorded(Model):
    """Knows on which ranks routines were checked; some are wrong on four ranks."""

    def __init__(self, wrong_on_four: str, others: float = 3.0):
        super().__init__(by_factor(0.5, others))
        self.wrong_on_four = wrong_on_four
        self.where: set[tuple[str, Candidate]] = set()

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = "whole"
    ) -> list[Check]:
        self.where |= {(communicator, candidate) for candidate in candidates}
        wrong = self.wrong_on_four if communicator == "4" else ""
        self.wrong = frozenset({wrong})
        return super().check(collective, candidates, communicator)


def test_a_routine_is_checked_on_other_ranks_only_if_it_is_timed_there():
    model = Recorded("")
    tuned(model)
    timed = {
        candidate
        for request in model.asked
        for candidate in request.candidates
        if request.communicator == "4" and candidate != NATIVE
    }
    assert {candidate for where, candidate in model.where if where == "4"} == timed
    names = {candidate.algorithm for where, candidate in model.where if where == "whole"}
    assert {c.algorithm for c in timed} < names


@pytest.mark.parametrize("others", [3.0, 0.8], ids=["native is next", "another is next"])
def test_a_routine_that_is_wrong_on_other_ranks_alone_serves_nowhere(others):
    model = Recorded("binomial", others)
    found = tuned(model)
    serving = {r.candidate.algorithm for table in found.decision.tables for r in table.rules}
    assert "binomial" not in serving
    assert "binomial" in {f.candidate.algorithm for one in found.outcomes for f in one.failures}
    table = found.decision.table("bcast", "hosts", Shape(4, 1))
    assert table is not None
    assert (table.choice(1024) == NATIVE) == (others > 1)


def test_looks_and_what_ranks_candidates_are_kept_apart():
    """Compositions are looked at later, and those that lose must not be finalists."""
    scout, point = scouted(1024)
    for one in (point, scout.as_seen(1024, point.seen)):
        one.seen[RING] = [1.0]
        assert RING not in one.tried
