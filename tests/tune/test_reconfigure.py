"""The search for a better tree, on a model of its times; a log answers what it holds."""

from __future__ import annotations

import json
import random
from functools import partial

import pytest

from stagegen.trees import make_tree, shape_of
from stagegen.trees.cost import node_seconds, seconds_up
from stagegen.tune.reconfigure import reconfigure, recorded
from tests.strategies import make_topology

TOPOLOGY = make_topology([8], [], slots={f"n{i}": 4 for i in range(8)})


def cost(tree):
    """A model in which contributions of a node cost more the more there are."""
    seconds = {
        name: value + 4e-6 * len(tree.by_name[name].contributors) ** 2
        for name, value in node_seconds(TOPOLOGY, tree, far=1e-6).items()
    }
    return seconds_up(tree, seconds)


def noisy(seed, calls):
    chance = random.Random(seed)

    def race(old, new):
        calls.append((old, new))
        return tuple(
            {n: tuple(cost(t) * chance.uniform(1, 1.02) for _ in range(9)) for n in range(5)}
            for t in (old, new)
        )

    return race


def search(race, most=12):
    tree = make_tree(TOPOLOGY, shape_of("nary"), "t")
    times = partial(node_seconds, TOPOLOGY)
    return tree, list(reconfigure(TOPOLOGY, tree, race, times, 0.03, most))


def test_it_finds_a_faster_tree_and_accepts_nothing_slower():
    tree, steps = search(noisy(1, []), most=40)
    best = tree
    for step in steps:
        assert step.before == best
        assert (
            step.accepted == (cost(step.move.tree) < 0.96 * cost(best))
            or abs(cost(step.move.tree) / cost(best) - 0.965) < 0.02
        )
        best = step.move.tree if step.accepted else best
    assert cost(tree) / cost(best) > 1.2
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))


def test_equal_trees_are_not_accepted():
    def same(old, new):
        return dict.fromkeys(range(5), (1.0,) * 9), dict.fromkeys(range(5), (0.999,) * 9)

    assert not any(step.accepted for step in search(same)[1])


@pytest.mark.parametrize("kept", [0, 3, 12])
def test_a_stopped_search_goes_on_where_its_log_ends(kept):
    _, whole = search(noisy(2, []))
    records = [json.loads(json.dumps(step.to_json())) for step in whole[:kept]]
    calls = []
    _, again = search(recorded(records, noisy(2, calls)))
    assert len(calls) == len(whole) - kept
    assert [one.to_json() for one in again[:kept]] == records
    assert all(record["why"].count("×") == 1 for record in records)
