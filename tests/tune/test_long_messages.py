"""Routines that win with long messages only: a search finds them, whatever short calls say."""

from __future__ import annotations

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import default_candidate
from stagegen.tune.field import Field, Times
from stagegen.tune.plan import Plan
from stagegen.tune.prediction import Prediction
from stagegen.tune.race import MORE_AT_A_TIME, MORE_LOOKS, MORE_SECONDS, look
from stagegen.tune.search import Search
from tests.measure.fakes import TIMING, Model, request
from tests.tune.test_race_search import algorithm

#: Seconds that the links need for a byte, as in an alltoall of 16 hosts at 20 Mbit/s.
PER_BYTE = 2.56e-5

#: Short calls of these are the fastest, but they send each byte several times.
LOGARITHMIC = tuple(f"logarithmic{i}" for i in range(6))

#: These take as many steps as there are ranks; one of them comes near the bound.
DIRECT = tuple(f"direct{i:02}" for i in range(20))
BEST = "direct13"


def bound(size: int) -> float:
    return PER_BYTE * size


def seconds(candidate: Candidate, size: int) -> float:
    """As in the lab with bbr: native is the best up to 4 KiB, and at 32 KiB takes 4 × the bound."""
    name = candidate.algorithm
    if name == "native":
        return 2e-3 + bound(size) * (1.04 if size <= 16384 else 4.0)
    if name in LOGARITHMIC:
        return 1e-3 + 1e-4 * LOGARITHMIC.index(name) + 2.2 * bound(size)
    return 5e-3 + 1e-5 * DIRECT.index(name) + bound(size) * (1.07 if name == BEST else 2.0)


@pytest.mark.parametrize("sizes", [(1, 64, 1024, 4096, 16384, 32768, 65536), (1, 64, 32768)])
def test_a_routine_that_wins_with_long_messages_only_is_found(sizes):
    """In the second case, no short call has bytes as most of it: the look goes on instead."""
    model = Model(seconds)
    plan = Plan(16, sizes, TIMING, 20.0, lambda what: None, bound=bound)
    names = ("native", *LOGARITHMIC, *(DIRECT if len(sizes) > 3 else DIRECT[8:16]))
    outcome = Search(model, plan, "alltoall", [algorithm(name) for name in names]).run()
    (table,) = (one for one in outcome.tables if one.communicator == "cluster")
    for size in sizes:
        if size >= 32768:
            assert table.choice(size).algorithm == BEST


def looked_at(late: float) -> Times:
    """Which of many that were seen with 1 byte only have a look at 32 KiB, where native is slow."""
    racers = tuple(map(Candidate, ("native", *DIRECT)))
    prediction = Prediction(bound)
    prediction.observe(1, {one.algorithm: seconds(one, 1) for one in racers})
    times: Times = {}
    field = Field(racers, (frozenset(racers),))
    look(Model(seconds), request(*racers, size=32768), field, prediction, times, late)
    return times


def test_a_look_goes_on_but_not_for_ever():
    found = looked_at(0.0)
    assert 2 < len(found) <= 4 + MORE_LOOKS * MORE_AT_A_TIME


def looks_at_seconds(slow: float) -> Times:
    """Which have a look at 4 MiB, where native takes 1.3 and all others ``slow`` times the bound.

    All were seen up to 4 KiB. A call that takes as long as the bound takes 13 s.
    """

    def longest(size: int) -> float:
        return bound(size) / 8

    def times(candidate: Candidate, size: int) -> float:
        return 2e-3 + (1.3 if candidate.algorithm == "native" else slow) * longest(size)

    racers = tuple(map(Candidate, ("native", *DIRECT)))
    prediction = Prediction(longest)
    for size in (1, 512, 1024, 4096):
        prediction.observe(size, {one.algorithm: times(one, size) for one in racers})
    found: Times = {}
    field = Field(racers, (frozenset(racers),))
    look(Model(times), request(*racers, size=4 << 20), field, prediction, found)
    return found


def test_calls_of_seconds_are_not_made_of_what_takes_many_times_as_long():
    """A flat tree takes 15 times the bound with 4 KiB, and so it does with 4 MiB."""
    assert {one.algorithm for one in looks_at_seconds(15.0)} == {"native"}


def test_looks_at_calls_of_seconds_end_with_their_time():
    """The last candidate begins before the end of this time; second looks come after that."""
    first = [seconds[0] for seconds in looks_at_seconds(2.0).values()]
    assert len(first) > 1
    assert sum(first) < MORE_SECONDS + max(first)


def test_no_more_have_a_look_if_each_awaits_late_ranks():
    assert len(looked_at(30.0)) < len(looked_at(0.0))
    assert len(looked_at(30.0)) <= 5


#: An alltoall whose messages in flight are a parameter: many are best for short messages, and lose
#: frames with long ones.
SCHEDULED = load_catalogue().find("alltoall", "aapc_rounds")
USUAL = dict(default_candidate(SCHEDULED).parameters)["in_flight"]


def with_losses(candidate: Candidate, size: int) -> float:
    """As in the lab with bbr: native and many messages in flight lose frames from 32 KiB on."""
    if candidate.algorithm == "native":
        return 2e-3 + bound(size) * (1.04 if size < 32768 else 2.0)
    in_flight = dict(candidate.parameters)["in_flight"]
    factor = 1.0 if size < 32768 else 6.0 if in_flight > USUAL else 1.08
    return 1e-3 / in_flight + bound(size) * factor


@pytest.mark.parametrize("longest", [32768, 65536])
def test_values_that_suit_short_messages_do_not_keep_a_routine_from_long_ones(longest):
    model = Model(with_losses)
    sizes = (64, 1024, longest)
    plan = Plan(16, sizes, TIMING, 20.0, lambda what: None, bound=bound)
    outcome = Search(model, plan, "alltoall", [algorithm("native"), SCHEDULED]).run()
    (table,) = (one for one in outcome.tables if one.communicator == "cluster")
    values = {size: dict(table.choice(size).parameters).get("in_flight") for size in sizes}
    assert values[64] > USUAL
    assert values[longest] == USUAL


def test_defaults_have_no_look_where_the_best_call_is_near_the_bound():
    model = Model(lambda candidate, size: 1e-3 + bound(size) * 1.2)
    sizes = (64, 1024, 32768)
    plan = Plan(16, sizes, TIMING, 20.0, lambda what: None, bound=bound)
    Search(model, plan, "alltoall", [algorithm("native"), SCHEDULED]).run()
    long = {c for asked in model.asked if asked.size == 32768 for c in asked.candidates}
    assert len([c for c in long if c.algorithm == SCHEDULED.name]) <= 1
