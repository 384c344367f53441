"""Tuning several communicators: each routine where it can run, and none after it failed."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.measure.records import Candidate, CandidateFailed, Check, Failure, Timing
from stagegen.measure.source import LogSource
from stagegen.tune.scope import Options
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import tune
from tests.measure.fakes import Model
from tests.strategies import make_topology
from tests.tune.recorder import Recorder

TOPOLOGY = make_topology([3, 3], [0])
OPTIONS = Options(("bcast",), (64, 4096), Timing(), 1.0, ("whole", "half", "2"))
QUICK = "binomial"
HANGS = "knomial"


@lru_cache
def catalogue() -> Catalogue:
    names = ("native", "flat", QUICK, "topology_linear", "topology_binary")
    whole = load_catalogue()
    return replace(whole, algorithms=tuple(a for a in whole.of("bcast") if a.name in names))


def cost(candidate: Candidate, size: int) -> float:
    return {"native": 5e-3, QUICK: 1e-3, "topology_binary": 5e-4}.get(candidate.algorithm, 3e-3)


def tuned(model: Model):
    return tune(TOPOLOGY, catalogue(), OPTIONS, model, lambda: True)


def served(decision, kind: str, ranks: int) -> str:
    table = decision.table("bcast", kind, Shape(ranks, 1))
    return table.choice(64).algorithm if table else "none"


def test_each_kind_of_communicator_has_the_best_that_it_can_run():
    decision = tuned(Model(cost)).decision
    assert served(decision, "cluster", 6) == "topology_binary"
    assert {served(decision, kind, n) for kind in ("hosts", "other") for n in range(2, 13)} == {
        QUICK
    }
    assert served(decision, "hosts", 13) == QUICK
    assert served(decision, "other", 13) == "none"


def test_a_routine_that_is_wrong_on_some_ranks_is_never_timed_on_any():
    class Picky(Model):
        def check(self, collective, given, communicator="whole"):
            wrong = {QUICK} if communicator == "half" else set()
            return [Check(collective, c, 9, c.algorithm in wrong, "", communicator) for c in given]

    model = Picky(cost)
    found = tuned(model)
    assert {(check.candidate.algorithm, check.communicator) for check in found.wrong} == {
        (QUICK, "half")
    }
    assert QUICK not in model.timed()
    assert served(found.decision, "hosts", 6) in ("flat", "topology_linear")


def test_a_routine_that_fails_on_one_communicator_is_not_tried_on_the_next():
    class Deadly(Model):
        def measure(self, asked):
            if asked.communicator == "half":
                for candidate in asked.candidates:
                    if candidate.algorithm == QUICK:
                        raise CandidateFailed(Failure("bcast", asked.size, candidate, "x", "half"))
            return super().measure(asked)

    model = Deadly(cost)
    outcomes = {outcome.communicator: outcome for outcome in tuned(model).outcomes}
    assert [failure.candidate.algorithm for failure in outcomes["half"].failures] == [QUICK]
    for name in ("half", "2"):
        of_it = (request for request in model.asked if request.communicator == name)
        assert QUICK not in {c.algorithm for request in of_it for c in request.candidates}


class Hangs(Model):
    """One routine, which has a parameter, does not end when it is checked."""

    def check(self, collective, given, communicator="whole"):
        checks = super().check(collective, given, communicator)
        return [replace(c, wrong=-1) if c.candidate.algorithm == HANGS else c for c in checks]


def checks_that_hung(model: Model) -> int:
    return sum(candidate.algorithm == HANGS for candidate in model.checked)


@pytest.mark.parametrize("total", [None, 1e6])
def test_a_routine_that_hangs_in_a_check_is_checked_no_more(total):
    """Neither with other values of its parameter nor on other ranks: each would take minutes."""
    options = replace(OPTIONS, total=total)
    algorithms = tuple(a for a in load_catalogue().of("bcast") if a.name in ("native", HANGS))
    small = replace(catalogue(), algorithms=algorithms)
    sound = Model(cost)
    tune(TOPOLOGY, small, options, sound, lambda: True)
    assert checks_that_hung(sound) > len(OPTIONS.communicators)
    model = Hangs(cost)
    records: list = []
    found = tune(TOPOLOGY, small, options, Recorder(model, records), lambda: True)
    assert checks_that_hung(model) == 1
    assert all(table.is_native for table in found.decision.tables)
    assert HANGS not in model.timed()
    assert tune(TOPOLOGY, small, options, LogSource(records), lambda: True) == found
    again = Hangs(cost)
    resumed = tune(TOPOLOGY, small, options, LogSource(records, again), lambda: True)
    assert resumed == found
    assert checks_that_hung(again) == 1, "the fault may have been the machine's"
    assert not again.asked


@pytest.mark.parametrize("name", ["whole", "half", "2"])
def test_samples_are_of_the_communicator(name):
    model = Model(cost)
    (outcome,) = (outcome for outcome in tuned(model).outcomes if outcome.communicator == name)
    assert set(outcome.samples) >= {64, 4096}
    assert {t.ranks for t in outcome.tables} == {{"whole": 6, "half": 3, "2": 2}[name]}
