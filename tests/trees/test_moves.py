"""Changes of trees: each is a tree again; the model finds the node that is in the way."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from stagegen.schedule.verify import facts_of, verify_configured
from stagegen.trees import make_tree, read_tree, shape_of, tree_yaml
from stagegen.trees.cost import hotspots, node_seconds, seconds_up
from stagegen.trees.moves import changed, moves, with_level, without_level
from tests.strategies import make_topology
from tests.trees.made import random_tree

EIGHT_BY_FOUR = make_topology([4, 4], [0], slots={f"n{i}": 4 for i in range(8)})
THREE = make_topology([2, 1], [0], slots={"n0": 3, "n1": 2, "n2": 1})


def test_every_change_of_a_random_tree_is_another_tree(tmp_path):
    chance = random.Random(3)
    file = tmp_path / "t.tree.yaml"
    for _ in range(60):
        tree = random_tree(chance, THREE.rank_count)
        found = moves(THREE, tree, node_seconds(THREE, tree))
        assert len({move.tree.nodes for move in found} | {tree.nodes}) == len(found) + 1
        for move in found:
            verify_configured(THREE, "allreduce", move.tree.rows)
            file.write_text(tree_yaml(move.tree))
            assert read_tree(file, THREE) == move.tree


def test_a_level_comes_and_goes():
    nary = make_tree(EIGHT_BY_FOUR, shape_of("nary"), "t")
    higher = with_level(nary, nary.root)
    assert (higher.height, len(higher.nodes)) == (nary.height + 1, len(nary.nodes) + 2)
    for name in ("root.a", "root.b"):
        higher = without_level(higher, higher.by_name[name])
    assert higher == nary


def test_the_hottest_node_of_nary_is_the_root_and_a_split_is_among_its_changes():
    """Eight hosts hand over to one: to split that over hosts is what the paper gains by."""
    nary = make_tree(EIGHT_BY_FOUR, shape_of("nary"), "t")
    seconds = node_seconds(EIGHT_BY_FOUR, nary)
    assert [one.node for one in hotspots(nary, seconds)][-1] == "root"
    first = moves(EIGHT_BY_FOUR, nary, seconds)[0]
    assert first.node == "root"
    added = next(m for m in moves(EIGHT_BY_FOUR, nary, seconds) if m.what.startswith("add"))
    assert added.what == "add a level below root"
    assert {EIGHT_BY_FOUR.ranks[n.worker] for n in added.tree.nodes if "root." in n.name} == {
        "n0", "n4"
    }  # fmt: skip


@pytest.mark.parametrize("name", ["flat", "nary", "binary", "split", "linked"])
def test_the_model_counts_what_comes(name):
    tree = make_tree(EIGHT_BY_FOUR, shape_of(name), "t")
    alone = node_seconds(EIGHT_BY_FOUR, tree, near=1.0, far=0.0)
    facts = facts_of(EIGHT_BY_FOUR, tree.rows)
    assert int(sum(alone.values()) + 0.5) == facts.up - facts.up_between
    assert seconds_up(tree, alone) <= sum(alone.values()) + 1e-9


def test_nodes_of_one_rank_follow_each_other():
    """A rank with two nodes side by side does one after the other: measured times add up."""
    tree = make_tree(THREE, shape_of("nary"), "t")
    seconds = {"n0": 3.0, "n1": 4.0, "root": 1.0}
    assert seconds_up(tree, seconds) == 5.0
    both = [node for node in tree.nodes if node.name == "n1"]
    assert seconds_up(changed(tree, replace(both[0], worker=0)), seconds) == 8.0
