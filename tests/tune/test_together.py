"""Communicators that share no link: which are timed at once, and that this changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.measure.records import Candidate, CandidateFailed, Failure, Request, Timing
from stagegen.measure.rounds import Rounds
from stagegen.measure.source import LogSource
from stagegen.topology import Group
from stagegen.tune.communicators import find_communicators
from stagegen.tune.forecast import race_of, races
from stagegen.tune.scope import Options
from stagegen.tune.together import in_turn, together
from stagegen.tune.tuner import tune
from tests.measure.fakes import Model
from tests.strategies import make_topology
from tests.tune.test_tuner import QUICK, catalogue, cost

#: Three groups of a switch each, and one of a host of each switch.
TOPOLOGY = replace(
    make_topology([3, 3, 4], [0, 0]),
    groups=(
        Group("first", ("n0", "n1", "n2")),
        Group("across", ("n1", "n4", "n7")),
        Group("second", ("n3", "n4", "n5")),
        Group("third", ("n6", "n7", "n8", "n9")),
    ),
)
NAMES = ("whole", "first", "across", "second", "third", "2x1")
OPTIONS = Options(("bcast",), (64, 4096, 65536), Timing(), 1.0, NAMES)


def test_communicators_of_a_set_share_no_link_and_keep_their_order():
    found = together(TOPOLOGY, find_communicators(TOPOLOGY, NAMES))
    names = [tuple(one.name for one in some) for some in found]
    assert names == [("whole",), ("first", "second", "third"), ("across",), ("2x1",)]


def test_only_named_groups_that_follow_each_other_are_in_a_set():
    names = ("first", "second", "2x1", "third", "whole")
    found = together(TOPOLOGY, find_communicators(TOPOLOGY, names))
    assert [len(some) for some in found] == [2, 1, 1, 1]


class Dealer:
    """A source that answers what several searches ask for in rounds."""

    def __init__(self, model):
        self.model = model
        self.rounds = Rounds(self._answer)
        self.together: list[list[str]] = []

    def _answer(self, requests):
        self.together.append([one.communicator for one in requests])
        return [self._one(request) for request in requests]

    def _one(self, request):
        try:
            return self.model.measure(request)
        except CandidateFailed as failed:
            return failed

    def check(self, collective, given, communicator="whole"):
        return self.rounds.alone(lambda: self.model.check(collective, given, communicator))

    def measure(self, request):
        return self.rounds.measure(request)


def of_group(candidate: Candidate, size: int) -> float:
    """The times of :mod:`test_tuner`, and of long messages the other way round."""
    return 1 / cost(candidate, size) * 1e-6 if size > 10000 else cost(candidate, size)


class Deadly(Model):
    """A routine ends the job on one of the groups."""

    def measure(self, asked):
        if asked.communicator == "second":
            for candidate in asked.candidates:
                if candidate.algorithm == QUICK:
                    raise CandidateFailed(Failure("bcast", asked.size, candidate, "x", "second"))
        return super().measure(asked)


def in_some_order(requests: list[Request]) -> list[Request]:
    """By communicator, size and launch; those that are equal in these stay as they are."""
    return sorted(requests, key=lambda one: (one.communicator, one.size, one.launch))


@pytest.mark.parametrize("model", [Model, Deadly])
def test_timed_at_once_or_in_turn_the_same_is_asked_for_and_found(model):
    dealer = Dealer(model(of_group, noise=0.05))
    at_once = tune(
        TOPOLOGY, catalogue(), OPTIONS, dealer, lambda: True, run_searches=dealer.rounds.run
    )
    alone = model(of_group, noise=0.05)
    in_turn = tune(TOPOLOGY, catalogue(), OPTIONS, alone, lambda: True)
    assert at_once == in_turn
    assert in_some_order(dealer.model.asked) == in_some_order(alone.asked)
    several = [names for names in dealer.together if len(names) > 1]
    assert ["first", "second", "third"] in several
    assert all({*names} <= {"first", "second", "third"} for names in several)
    assert sum(map(len, several)) > 0.8 * sum(
        one.communicator in ("first", "second", "third") for one in alone.asked
    )


def test_the_log_of_what_was_timed_at_once_gives_the_same_tables():
    records = []

    class Kept(Dealer):
        def _one(self, request):
            measured = super()._one(request)
            records.append(measured.to_json())
            return measured

        def check(self, *asked):
            checks = super().check(*asked)
            records.extend(check.to_json() for check in checks)
            return checks

    dealer = Kept(Model(of_group, noise=0.05))
    live = tune(
        TOPOLOGY, catalogue(), OPTIONS, dealer, lambda: True, run_searches=dealer.rounds.run
    )
    again = tune(TOPOLOGY, catalogue(), OPTIONS, LogSource(records), lambda: True)
    assert again == live


@pytest.mark.parametrize("at_once", [True, False])
def test_the_forecast_counts_races_as_done_in_the_order_in_which_they_are_measured(at_once):
    """So it counts none that is still to come."""
    dealer = Dealer(Model(of_group, noise=0.05))
    run_searches = dealer.rounds.run if at_once else in_turn
    tune(TOPOLOGY, catalogue(), OPTIONS, dealer, lambda: True, run_searches=run_searches)
    groups = ("first", "second", "third")
    foreseen = [
        race
        for race in races(TOPOLOGY, catalogue(), OPTIONS, at_once=at_once)
        if race.communicator in groups and not race.composed
    ]
    asked = dict.fromkeys(map(race_of, dealer.model.asked))
    assert [race for race in asked if race in foreseen] == foreseen
