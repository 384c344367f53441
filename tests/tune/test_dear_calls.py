"""Where calls take seconds, time is spent for the table of the ranks that are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest

from stagegen.catalogue import Parameter
from stagegen.measure.records import Candidate, Measurement, Request
from stagegen.tune.choose import worthy
from stagegen.tune.composing import Composing
from stagegen.tune.elimination import eliminate, is_settled, worth_timing
from stagegen.tune.field import DEAR_SECONDS, Field, Times
from stagegen.tune.kinds import TableKinds
from stagegen.tune.launches import name_finalists, run_launch
from stagegen.tune.one_rule import FOREMOST, foremost
from stagegen.tune.plan import Plan
from stagegen.tune.point import Point
from stagegen.tune.prediction import Prediction
from stagegen.tune.protocol import Protocol
from stagegen.tune.race import look
from stagegen.tune.search import Outcome, Search
from tests.measure.fakes import TIMING, Model, request
from tests.tune.test_race_search import algorithm

NATIVE, AWARE, PLAIN = map(Candidate, ("native", "aware", "plain"))
OTHER = Candidate("other")
RACERS = frozenset((NATIVE, AWARE, PLAIN, OTHER))
SIZE = 1 << 20


class Looks(Model):
    """Some looks take other times than launches."""

    def __init__(self, costs: dict[str, float], looks: dict[str, float]):
        super().__init__(lambda candidate, size: costs[candidate.algorithm])
        self.costs, self.looks = costs, {**costs, **looks}

    def measure(self, asked: Request) -> Measurement:
        known = self.costs if asked.launch else self.looks
        self.cost = lambda candidate, size: known[candidate.algorithm]
        return super().measure(asked)


def tuned(costs: dict[str, float], looks: dict[str, float] | None = None) -> tuple[Model, Outcome]:
    """Tune one size; ``aware`` is the only routine that knows the topology."""
    model = Looks(costs, looks or {})
    plan = Plan(16, (SIZE,), TIMING, 20.0, lambda what: None)
    able = [algorithm(name, "order" if name == "aware" else None) for name in costs]
    return model, Search(model, plan, "alltoall", able).run()


def launches(model: Model, candidate: Candidate) -> set[int]:
    """Return the launches that timed a candidate, scouting excluded."""
    return {asked.launch for asked in model.asked if candidate in asked.candidates} - {0}


def serving(outcome: Outcome, kind: str) -> str:
    (table,) = (one for one in outcome.tables if one.communicator == kind)
    return table.choice(SIZE).algorithm


@pytest.mark.parametrize(("unit", "last", "other"), [(1e-2, 5, "plain"), (2.0, 2, "native")])
def test_dear_calls_have_no_launch_for_what_only_other_tables_ask(unit, last, other):
    """The two unaware ones differ by 4 %, which takes five launches to tell."""
    model, outcome = tuned({"native": 1.25 * unit, "plain": 1.2 * unit, "aware": unit})
    assert max(launches(model, NATIVE)) == last
    assert max(launches(model, PLAIN)) == last
    assert (serving(outcome, "cluster"), serving(outcome, "other")) == ("aware", other)


def test_one_look_does_not_drop_a_dear_native_routine():
    """Its look took 2.5 times as long as its launches."""
    model, outcome = tuned({"native": 4.0, "plain": 4.2, "aware": 4.1}, {"native": 10.0})
    assert launches(model, NATIVE) == {1}
    assert {serving(outcome, kind) for kind in ("cluster", "other")} == {"native"}


def test_a_dear_native_routine_that_lost_by_far_has_one_launch():
    model, outcome = tuned({"native": 3.0, "plain": 2.9, "aware": 1.01})
    assert launches(model, NATIVE) == {1}
    assert (serving(outcome, "cluster"), serving(outcome, "other")) == ("aware", "native")


def test_a_dear_routine_that_lost_by_far_is_not_timed_beside_what_is_still_open():
    model, outcome = tuned({"native": 3.0, "plain": 2.4, "aware": 2.0})
    assert (launches(model, NATIVE), launches(model, AWARE)) == ({1}, {1, 2})
    # Native and plain share one launch, in which they differ by 25 %.
    assert (serving(outcome, "cluster"), serving(outcome, "other")) == ("aware", "native")


def test_if_the_first_challenger_fails_those_of_other_tables_go_on():
    looks = {"aware": 2.0, "plain": 2.05, "native": 2.9}
    model, outcome = tuned({"aware": 2.8, "plain": 2.1, "native": 2.6}, looks)
    assert max(launches(model, PLAIN)) > 1
    assert {serving(outcome, kind) for kind in ("cluster", "other")} == {"plain"}


LADDER = (1 << 12, 1 << 14, 1 << 16, SIZE)


@pytest.mark.parametrize(
    ("native", "look", "expected"),
    [(3.0, 1.0, set()), (1.4, 1.0, {1}), (3.0, 0.4, {1, 2}), (1.4, 2.0, {1})],
    ids=["clearly slower", "slower", "a look that was not foreseen", "a look that was unlucky"],
)
def test_a_dear_native_routine_has_no_launch_if_a_look_shows_what_was_foreseen(
    native, look, expected
):
    """Aware takes twice the bound. ``look`` is the factor of native's only look at a dear call."""

    class Lucky(Model):
        def measure(self, asked: Request) -> Measurement:
            made = super().measure(asked)
            odd = asked.size == SIZE and not asked.launch
            seconds = tuple(
                tuple(one * (look if odd and candidate == NATIVE else 1.0) for one in times)
                for candidate, times in made.by_candidate().items()
            )
            return replace(made, seconds=seconds)

    def bound(size: int) -> float:
        return 1e-6 * size

    factors = {"native": 2 * native, "aware": 2.0, "plain": 2.1 * native}
    model = Lucky(lambda candidate, size: 1e-3 + factors[candidate.algorithm] * bound(size))
    plan = Plan(16, LADDER, TIMING, 20.0, lambda what: None, bound=bound)
    able = [algorithm(name, "order" if name == "aware" else None) for name in factors]
    outcome = Search(model, plan, "alltoall", able).run()
    model.asked = [asked for asked in model.asked if asked.size == SIZE]
    assert launches(model, NATIVE) == expected
    assert serving(outcome, "cluster") == "aware"


@pytest.mark.parametrize(("composed", "expected"), [(1.86, [0]), (1.75, [])])
def test_a_single_look_at_a_composition_asks_for_no_launch_of_native(composed, expected):
    """Predictions named the other two, before any call of this size."""
    of_halves = Candidate("of_halves")
    looks = {NATIVE: 10.0, AWARE: 1.93, of_halves: composed}
    point = point_of(looks, {})
    point.finalists, point.named = (), {NATIVE: [10.0], AWARE: [1.93]}
    name_finalists(point, [])
    assert point.launches == expected
    assert (AWARE in point.finalists) == bool(expected)


def test_a_dear_call_has_one_look_however_it_compares():
    assert {len(seconds) for seconds in looked_at(1 << 18).values()} == {1}
    model, _ = tuned({"native": 1.25, "plain": 1.2, "aware": 1.1})
    assert [asked.launch for asked in model.asked].count(0) == 1


def test_a_launch_repeats_long_calls_of_what_is_near_the_best():
    """All calls take twice as long as their looks, so the best are repeated; native lost."""
    costs = {NATIVE: 0.9, PLAIN: 0.31, AWARE: 0.3}
    model = Slower(lambda candidate, size: costs[candidate] / (2 if candidate == NATIVE else 1))
    point = point_of(costs, {})
    run_launch(model, replace(request(*costs), launch=1), point, Protocol(width=1.0), 0.0)
    assert [set(asked.candidates) for asked in model.asked] == [set(costs), {PLAIN, AWARE}]


class Slower(Model):
    """Launches take twice as long as looks, as if all of their calls had lost packets."""

    def measure(self, asked: Request) -> Measurement:
        made = super().measure(asked)
        factor = 2.0 if asked.launch else 1.0
        seconds = tuple(tuple(factor * one for one in times) for times in made.seconds)
        return replace(made, seconds=seconds)


@pytest.mark.parametrize(("unit", "expected"), [(0.3, 3), (3.0, 1)])
def test_dear_calls_are_not_repeated_for_hiccups(unit, expected):
    model = Slower(lambda candidate, size: unit * (1.5 if candidate == NATIVE else 1.0))
    plan = Plan(16, (SIZE,), TIMING, 0.1, lambda what: None)
    Search(model, plan, "alltoall", [algorithm("native"), algorithm("plain")]).run()
    asked = [one.repetitions for one in model.asked if one.launch == 1]
    assert sum(asked) == expected


class Traces(Model):
    """Native takes longer after its own calls than after those of others, but in its look."""

    def __init__(self, others: float, slow: float):
        super().__init__(lambda candidate, size: 1.0 if candidate == NATIVE else others)
        self.slow = slow

    def measure(self, asked: Request) -> Measurement:
        made = super().measure(asked)
        after_itself = asked.settle or not asked.launch
        seconds = tuple(
            tuple(one * (self.slow if after_itself and c == NATIVE else 1.0) for one in times)
            for c, times in made.by_candidate().items()
        )
        return replace(made, seconds=seconds)


@pytest.mark.parametrize(
    ("others", "slow", "unsettled", "settled", "chosen"),
    [
        (0.998, 1.2, {1}, {2, 3, 4, 5}, "plain"),
        (0.998, 1.04, {1, 2}, set(), "native"),
        (0.5, 1.2, {1}, set(), "plain"),
    ],
    ids=["its own traces slow it down", "within what looks tell", "beaten whatever was before"],
)
def test_if_times_of_a_long_call_scatter_it_is_timed_after_itself(
    others, slow, unsettled, settled, chosen
):
    model = Traces(others, slow)
    plan = Plan(16, (SIZE,), TIMING, 0.1, lambda what: None)
    able = [algorithm("native"), algorithm("plain")]
    outcome = Search(model, plan, "alltoall", able).run()
    assert serving(outcome, "cluster") == chosen
    launched = [asked for asked in model.asked if asked.launch]
    assert {asked.launch for asked in launched if not asked.settle} == unsettled
    assert {asked.launch for asked in launched if asked.settle} == settled


def test_noise_of_other_sizes_does_not_hide_traces():
    point = point_of({NATIVE: 1.2, PLAIN: 1.0}, {})
    noise = 0.6  # such traces have doubled times of the other sizes
    run_launch(
        Traces(0.99, 1.2), replace(request(NATIVE, PLAIN), launch=1), point, Protocol(), 0.0, noise
    )
    assert point.settles_from == 2


@pytest.mark.parametrize(("noise", "is_decided"), [(0.0, True), (0.04, True), (0.07, False)])
def test_launches_do_not_end_before_the_choice_would_replace_native(noise, is_decided):
    """What replaces native by far must exceed the noise of launches: 1.15 is e to 0.14."""
    point = point_of({NATIVE: 2.6, PLAIN: 2.0}, {NATIVE: (2.3, 2.3), PLAIN: (2.0, 2.0)})
    replaces = bool(worthy(point.samples(), noise=noise))
    assert replaces == is_settled(point, Protocol(), noise) == is_decided
    assert set(worth_timing(point, noise)) == ({PLAIN} if is_decided else {NATIVE, PLAIN})


@pytest.mark.parametrize(("unit", "expected"), [(1e-1, True), (2.0, False)])
def test_dear_compositions_are_not_for_the_best_of_other_tables(unit, expected):
    composed = Candidate("composed")
    costs = {NATIVE: 4 * unit, PLAIN: 3 * unit, AWARE: unit, composed: 2 * unit}
    model = Model(lambda candidate, size: costs[candidate])

    def field(candidates: Iterable[Candidate]) -> Field:
        everyone = tuple(candidates)
        return Field(everyone, (frozenset(everyone), frozenset(everyone) - {AWARE}))

    seen = {candidate: [costs[candidate]] for candidate in (NATIVE, PLAIN, AWARE)}
    point = Point(field(seen), seen, dict(seen))
    composing = Composing(model, lambda size, few: request(*few, size=size), field, 0.03)
    composing.look(SIZE, point, {composed: 2 * unit})
    assert (composed in point.seen) == expected


def point_of(
    looks: dict[Candidate, float], raced: dict[Candidate, tuple[float, ...]], late: float = 0.0
) -> Point:
    """Return what is known after launches; some candidates may lack the last one."""
    everyone = frozenset(looks)
    field = Field(tuple(looks), (everyone, everyone - {AWARE}))
    seen = {candidate: [seconds] for candidate, seconds in looks.items()}
    point = Point(field, seen, dict(seen), late, finalists=tuple(looks))
    point.holders, point.ranks = frozenset({NATIVE}), looks
    for candidate, times in raced.items():
        point.raced[candidate] = {n: [seconds] for n, seconds in enumerate(times, start=1)}
    point.launches = list(range(1, max(map(len, raced.values()), default=0) + 1))
    return point


def test_launches_count_for_two_candidates_if_both_took_part():
    """Native is 14 % behind the other unaware one in the only launch of both."""
    looks = {AWARE: 1.8, PLAIN: 2.45, NATIVE: 2.8}
    point = point_of(looks, {AWARE: (1.8, 1.8), PLAIN: (2.45,), NATIVE: (2.8,)})
    eliminate(point, Protocol(), 0.0)
    assert NATIVE in point.running


@pytest.mark.parametrize(("seconds", "expected"), [(5e-3, 2), (2.0, 1)])
def test_that_ranks_are_late_makes_no_call_dear(seconds, expected):
    """In a launch, all calls take twice as long as in looks, so short ones are repeated."""
    model = Slower(lambda candidate, size: seconds)
    point = point_of({NATIVE: seconds, PLAIN: seconds}, {}, late=5.0)
    launch = replace(request(NATIVE, PLAIN), launch=1)
    run_launch(model, launch, point, Protocol(width=1.0), 0.0)
    assert sum(asked.repetitions for asked in model.asked) == expected


MANY = tuple(f"plain{i:02}" for i in range(20))


#: Factors over the bound: each plain routine, 2.5 times, may be twice as fast as native.
OVER = {"native": 4.0, "aware": 1.1}


def looked_at(
    size: int,
    over: Mapping[str, float] = OVER,
    plain: float = 2.5,
    tabled: frozenset[Candidate] | None = None,
) -> Times:
    """Return what is looked at, by the factors over the bound of some routines and of plain ones.

    With `tabled`, one table is for all, and these candidates have tables of its ranks.
    """

    def bound(size: int) -> float:
        return 1e-5 * size

    def seconds(candidate: Candidate, size: int) -> float:
        return 2e-3 + over.get(candidate.algorithm, plain) * bound(size)

    racers = tuple(map(Candidate, ("native", "aware", *MANY)))
    prediction = Prediction(bound)
    for smaller in (1, 256, 512, 1024):
        prediction.observe(smaller, {one.algorithm: seconds(one, smaller) for one in racers})
    found: Times = {}
    everyone = frozenset(racers)
    groups = (everyone, everyone - {AWARE}) if tabled is None else (everyone,)
    field = Field(racers, groups, tabled or frozenset())
    look(Model(seconds), request(*racers, size=size), field, prediction, found)
    return found


def test_dear_looks_are_not_for_the_best_of_other_tables():
    """Beside native and the best prediction of each table, nothing has a look."""
    assert len(looked_at(1 << 18)) <= 3
    assert len(looked_at(1 << 13)) > 3


@pytest.mark.parametrize("tabled", [frozenset(), frozenset({AWARE})])
def test_one_with_tables_has_a_look_where_one_table_is_for_all(tabled):
    """As of a pattern: others have better predictions, but may be lucky in one call."""
    found = looked_at(1 << 15, {"native": 1.5, "aware": 1.4}, 1.3, tabled)
    assert (AWARE in found) == bool(tabled)


@pytest.mark.parametrize(
    ("best", "gain", "expected"),
    [(1.07, 0.03, False), (1.2, 0.03, True), (1.07, 0.005, True), (1.2, 0.3, True)],
)
def test_long_calls_have_no_look_for_less_than_the_least_gain(best, gain, expected):
    """The last size did not see the other one. It is hoped to take 1.04 to 1.05 times the bound."""

    def bound(size: int) -> float:
        return 1e-5 * size

    def seconds(candidate: Candidate, size: int) -> float:
        over = {"native": 2.0, "aware": best if size == SIZE else 1.04}
        return over.get(candidate.algorithm, 1.05) * bound(size)

    racers = (NATIVE, AWARE, PLAIN)
    prediction = Prediction(bound)
    for smaller in (SIZE >> octaves for octaves in range(8, 0, -1)):
        seen = racers if 2 * smaller < SIZE else (NATIVE, AWARE)
        prediction.observe(smaller, {one.algorithm: seconds(one, smaller) for one in seen})
    found: Times = {}
    everyone = Field(racers, (frozenset(racers),))
    asked = request(*racers, size=SIZE)
    assert 1.04 <= prediction.hope("plain", SIZE) / bound(SIZE) <= 1.05
    look(Model(seconds), asked, everyone, prediction, found, 0.0, gain)
    assert (PLAIN in found) == expected


@pytest.mark.parametrize(
    ("groups", "plain", "expected"),
    [
        ((RACERS, RACERS - {AWARE}), 1.6, True),
        ((RACERS,), 1.6, False),
        # No routine has come nearer to the bound.
        ((RACERS, RACERS - {AWARE}), 1.05, False),
    ],
    ids=["with tables", "without tables", "nothing to gain"],
)
def test_a_routine_with_tables_of_the_topology_has_a_look_if_it_may_win(groups, plain, expected):
    """``plain`` was the best so far and may lose frames; ``other`` has a better prediction."""

    def bound(size: int) -> float:
        return size / 1e6

    def seconds(candidate: Candidate, size: int) -> float:
        own = plain if size == SIZE else 1.05
        overs = {"native": 1.3, "aware": 1.15, "plain": own, "other": 1.12}
        return overs[candidate.algorithm] * bound(size)

    prediction = Prediction(bound)
    for smaller in (SIZE >> octaves for octaves in range(8, 0, -1)):
        seen = RACERS if 8 * smaller < SIZE else {NATIVE, PLAIN}
        prediction.observe(smaller, {c.algorithm: seconds(c, smaller) for c in sorted(seen)})
    found: Times = {}
    racers = tuple(sorted(RACERS))
    look(Model(seconds), request(*racers, size=SIZE), Field(racers, groups), prediction, found)
    assert {NATIVE, PLAIN} <= found.keys()
    assert (AWARE in found) == expected
    assert (OTHER in found) == (plain > 1.3)


def test_groups_whose_best_call_is_dear_are_left_out_but_the_first():
    racers = (NATIVE, AWARE, PLAIN)
    groups = (frozenset(racers), frozenset((NATIVE, PLAIN)))
    field = Field(racers, groups)
    dear, cheap = 2 * DEAR_SECONDS, DEAR_SECONDS / 2
    assert field.without_dear({NATIVE: dear, AWARE: dear, PLAIN: cheap}).groups == groups
    assert field.without_dear({NATIVE: dear, AWARE: cheap, PLAIN: dear}).groups == groups[:1]
    assert field.without_dear({AWARE: dear}).groups == groups


# One rule for calls of all sizes.


def plan(sizes: tuple[int, ...], bound: Callable[[int], float]) -> Plan:
    return Plan(16, sizes, TIMING, 20.0, lambda what: None, bound=bound, one_rule=True)


@pytest.mark.parametrize(
    ("sizes", "per_byte", "expected"),
    [
        ((1, 1024, 65536), 1e-6, 65536),
        ((1, 1024, 65536), 4e-5, 16384),
        ((1, 1024, 65536), 1.0, 2048),
        ((65536,), 4e-5, 16384),
        ((1,), 5.0, 1),
    ],
)
def test_one_rule_is_tuned_at_the_largest_size_that_is_not_dear(sizes, per_byte, expected):
    asked = plan(sizes, lambda size: per_byte * size)
    assert asked.tuning_size == expected
    assert asked.tunes(expected)
    assert not any(asked.tunes(size) for size in sizes if size != expected)


def test_dear_calls_of_one_rule_are_of_few_routines_with_their_best_values():
    """At the largest size a call takes 4 s; a value of 4 is the best from 512 bytes on."""
    sizes = (1, 1024, 65536)
    names = [f"windows{i}" for i in range(9)]

    def seconds(candidate: Candidate, size: int) -> float:
        value = dict(candidate.parameters).get("in_flight", 4)
        order = names.index(candidate.algorithm) if candidate.algorithm in names else 12
        return (1e-3 + 6e-5 * size) * (0.8 + 0.02 * order) * (1.1 if value != 4 else 1.0)

    model = Model(seconds)
    window = Parameter("in_flight", "messages at a time", (1, 2, 4), 1)
    able = [algorithm("native"), *(algorithm(n, parameters=(window,)) for n in names)]
    outcome = Search(model, plan(sizes, lambda size: 6e-5 * size), "alltoallv", able).run()
    (table,) = (one for one in outcome.tables if one.communicator == "cluster")
    assert table.choice(sizes[-1]) == Candidate("windows0", (("in_flight", 4),))
    dear = {c for asked in model.asked if asked.size == sizes[-1] for c in asked.candidates}
    assert {c.algorithm for c in dear} == {"native", *names[:FOREMOST]}
    assert {dict(c.parameters)["in_flight"] for c in dear if c != NATIVE} == {4}


def test_each_kind_of_tables_has_its_foremost():
    names = [f"aware{i}" for i in range(2 * FOREMOST)] + [f"plain{i}" for i in range(2 * FOREMOST)]
    known = {n: algorithm(n, "order" if n.startswith("aware") else None) for n in names}
    times = {Candidate(name): [1.0 + place / 100] for place, name in enumerate(names)}
    times[NATIVE] = [100.0]
    kinds = TableKinds(("cluster", "other"), {**known, "native": algorithm("native")})
    expected = {*names[:FOREMOST], *names[2 * FOREMOST : 3 * FOREMOST]}
    assert foremost([times, times], kinds) == expected


def test_what_is_far_behind_with_the_longest_known_messages_is_none_of_the_foremost():
    """With short ones, all are alike."""
    names = ("near", "far", "best")
    kinds = TableKinds(("cluster",), {n: algorithm(n) for n in ("native", *names)})
    short: Times = {Candidate(name): [1.0] for name in ("native", *names)}
    long: Times = {Candidate("best"): [1.0], Candidate("near"): [1.4], Candidate("far"): [1.6]}
    assert foremost([short, {**long, NATIVE: [2.0]}], kinds) == {"best", "near"}
