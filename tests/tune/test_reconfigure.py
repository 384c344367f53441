"""The search for a better tree, on a model of its times; a log answers what it holds."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from stagegen.trees import make_tree, shape_of
from stagegen.trees.cost import node_seconds, seconds_up
from stagegen.trees.moves import moves
from stagegen.tune.reconfigure import reconfigure
from stagegen.tune.reconfigure_steps import MESSAGES, SHARED, Nodes, Setup
from tests.strategies import make_topology

TOPOLOGY = make_topology([8], [], slots={f"n{i}": 4 for i in range(8)})
LAUNCHES = 5
START = Setup(make_tree(TOPOLOGY, shape_of("nary"), "t"))


def cost(setup):
    """A model in which contributions of a node cost more the more there are."""
    tree = setup.tree
    seconds = {
        name: value + 4e-6 * len(tree.by_name[name].contributors) ** 2
        for name, value in node_seconds(TOPOLOGY, tree, far=1e-6).items()
    }
    return seconds_up(tree, seconds) * (1.0 if setup.on_host == MESSAGES else 0.8)


class Model:
    """Times setups by the model, with noise; counts launches."""

    def __init__(self, setups, chance, launched, seconds=cost):
        self.setups, self.chance, self.launched, self.seconds = setups, chance, launched, seconds

    def times(self, places, count):
        return [
            tuple(self.seconds(self.setups[i]) * self.chance.uniform(1, 1.02) for _ in range(count))
            for i in places
        ]

    def look(self):
        return self.times(range(len(self.setups)), 4)

    def launch(self, number, places):
        self.launched.append((number, len(places)))
        return self.times(places, 9)

    def close(self):
        """Nothing runs."""


def nodes(setup):
    parts = {"core": cost(setup)}
    return Nodes(node_seconds(TOPOLOGY, setup.tree), measured=True, parts=parts)


def search(seed, launched=None, most=48, records=(), seconds=cost, asked=nodes):
    chance, launched = random.Random(seed), [] if launched is None else launched
    return list(
        reconfigure(
            TOPOLOGY, START, lambda setups: Model(setups, chance, launched, seconds), asked,
            0.03, most, 8, LAUNCHES, records,
        )
    )  # fmt: skip


def test_it_finds_a_faster_tree_and_accepts_nothing_slower():
    best = START
    for number, step in enumerate(search(1), 1):
        assert (step.number, step.before) == (number, best)
        for one in step.challengers:
            assert one is not step.accepted or cost(one.setup) < 0.97 * cost(best)
        best = best if step.accepted is None else step.accepted.setup
    assert cost(START) / cost(best) > 1.5
    assert best.on_host == SHARED


def test_the_measured_time_that_suggested_a_change_is_named_and_comes_first():
    """The node that was measured to be the hottest is changed first, whatever the model says."""
    for name in ("root", "n3"):
        seconds = {**dict.fromkeys(START.tree.by_name, 1e-6), name: 5e-4}
        batches = []

        def look(setups, batches=batches):
            batches.append(setups)
            return Model(setups, random.Random(3), [])

        (first,) = reconfigure(
            TOPOLOGY, START, look, lambda _, s=seconds: Nodes(s, True), 0.03, 8, 8, LAUNCHES
        )
        present, on_host, changed, *_ = batches[0]
        assert (present, on_host) == (START, replace(START, on_host=SHARED))
        wanted = next(m for m in moves(TOPOLOGY, START.tree, seconds) if m.node == name)
        assert changed == Setup(wanted.tree)
        about = [one for one in first.challengers if one.node == name]
        (told,) = {first.why(one).partition(";")[0] for one in about}
        assert told == f"{name} takes 500 µs, measured"


def test_equal_trees_are_not_accepted():
    steps = search(5, seconds=lambda _: 1.0)
    assert steps
    assert not any(step.accepted for step in steps)


def test_changes_that_are_not_faster_cost_five_further_looks():
    launched = []

    def seconds(setup):
        return 1.0 if setup == START else 1.05

    (step, *_) = search(6, launched, most=8, seconds=seconds)
    assert step.accepted is None
    assert [number for number, _ in launched] == [LAUNCHES + look for look in range(1, 6)]
    assert not any(one.is_raced for one in step.challengers)


class Fixed(Model):
    """The first look, further looks and the race each have their own seconds."""

    FIRST: tuple[float, ...] = ()
    FURTHER: tuple[float, ...] = ()
    RACE: tuple[float, ...] = ()

    def look(self):
        times = (*self.FIRST, *[2.0] * len(self.setups))
        return [(seconds,) for seconds in times[: len(self.setups)]]

    def launch(self, number, places):
        self.launched.append((number, len(places)))
        times = self.FURTHER if number > LAUNCHES else self.RACE
        return [(times[i],) * 5 for i in places]


def step_of(times):
    launched = []
    (step,) = reconfigure(
        TOPOLOGY, START, lambda setups: times(setups, None, launched), nodes, 0.03, 8, 8, LAUNCHES
    )
    return step, launched


def test_only_the_best_one_by_the_looks_is_raced():
    """Another one that would win is not kept: of several tests, one passes by chance."""

    class Lucky(Fixed):
        FIRST, FURTHER, RACE = (1.0, 0.8, 0.9), (1.0, 0.8, 0.9), (1.0, 1.01, 0.5)

    step, launched = step_of(Lucky)
    assert [one.is_raced for one in step.challengers[:3]] == [True, False, False]
    assert launched[-1] == (1, 2), "a launch that it lost ends the race"
    assert step.accepted is None


def test_a_lucky_first_look_does_not_keep_a_better_change_from_the_race():
    class Lucky(Fixed):
        FIRST, FURTHER, RACE = (1.0, 0.7, 0.9), (1.0, 1.05, 0.8), (1.0, 1.05, 0.8)

    step, _ = step_of(Lucky)
    assert step.accepted is step.challengers[0]
    assert step.ratio(step.accepted) == 0.8
    assert "a look saw 1.050 × the time before: not raced" in step.why(step.challengers[1])


def test_ratios_are_of_launches_that_timed_both():
    """Further launches take twice as long. In the first look, one change is slower, one near."""

    class Slower(Fixed):
        FIRST, FURTHER, RACE = (1.0, 1.2, 1.05), (2.0, 0.1, 2.2), ()

    step, launched = step_of(Slower)
    near, slower, *_ = step.challengers
    assert step.ratio(near) == pytest.approx(1.1)
    assert "a look saw 1.200 × the time before: not raced" in step.why(slower)
    assert all(number > LAUNCHES for number, _ in launched)


@pytest.mark.parametrize("kept", [0, 1, 3, 100])
def test_a_stopped_search_goes_on_where_its_log_ends(kept):
    whole = search(2)
    records = [json.loads(json.dumps(step.to_json())) for step in whole[:kept]]
    launched, asked = [], []

    def counted(setup):
        asked.append(setup)
        return nodes(setup)

    again = search(2, launched, records=records, asked=counted)
    assert [one.to_json() for one in again[: len(records)]] == records
    if kept > len(whole):
        assert not launched
        assert len(asked) == 0
    else:
        assert launched


def test_a_log_of_other_changes_is_measured_anew():
    records = [json.loads(json.dumps(step.to_json())) for step in search(2)]
    records[1]["tried"].pop()
    launched = []
    again = search(2, launched, records=records)
    assert launched
    assert [step.number for step in again] == list(range(1, len(again) + 1))
    assert again[0].to_json() == records[0]
    assert len(again[1].challengers) == len(records[1]["tried"]) + 1
    timed = [step.to_json()["times"] for step in again[1:]]
    assert not any(record["times"] in timed for record in records[1:])


def test_shared_memory_is_tried_only_where_ranks_share_hosts():
    flat = make_topology([4], [])
    setup = Setup(make_tree(flat, shape_of("nary"), "t"))
    steps = list(
        reconfigure(
            flat, setup, lambda setups: Model(setups, random.Random(1), [], lambda _: 1.0),
            lambda one: Nodes(node_seconds(flat, one.tree), False), 0.03, 40, 8, LAUNCHES,
        )
    )  # fmt: skip
    assert {one.setup.on_host for step in steps for one in step.challengers} == {MESSAGES}
    assert all("by the model" in step.why(one) for step in steps for one in step.challengers)
