"""Trees for broadcast and reduce, of every construction, on random clusters."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError
from stagegen.schedule import TREE_CONSTRUCTIONS, Message, Tree, broadcast_tree, reduce_tree
from stagegen.schedule.trees.orders import ORDERS
from stagegen.schedule.verify import verify
from stagegen.topology import load_topology, restricted_to
from tests.schedule.oracle import Oracle
from tests.schedule.test_goldens import TOPOLOGIES
from tests.schedule.tree_oracle import free_of_contention
from tests.strategies import make_topology, topologies

constructions = pytest.mark.parametrize("construction", TREE_CONSTRUCTIONS)
FREE = set(TREE_CONSTRUCTIONS) - {"binomial"}
clusters = topologies(max_hosts=16, max_switches=8, max_ranks=18)


@st.composite
def trees(draw, construction):
    """A cluster and one of its trees, with any root and arity."""
    topology = draw(clusters)
    root = draw(st.integers(0, topology.rank_count - 1))
    arity = draw(st.integers(1, 6)) if construction == "kary" else None
    return topology, broadcast_tree(topology, root, construction, arity)


def shared_by(oracle, edges, peer):
    """How many ranks use each edge, where several do."""
    users = defaultdict(set)
    for edge in edges:
        for used in oracle.paths[edge]:
            users[used].add(edge[peer])
    return {used: len(ranks) for used, ranks in users.items() if len(ranks) > 1}


@constructions
@given(data=st.data())
def test_a_broadcast_reaches_all_and_names_the_edges_where_its_messages_meet(construction, data):
    topology, tree = data.draw(trees(construction))
    verify(topology, tree)
    oracle, count = Oracle(topology), topology.rank_count
    assert sorted(e.destination for e in tree.edges) == sorted(set(range(count)) - {tree.root})
    assert tree.contention_free == free_of_contention(oracle, tree.edges)
    assert dict(tree.contention) == shared_by(oracle, tree.edges, 0)
    assert tree.contention_free or construction not in FREE
    most = max(Counter(e.source for e in tree.edges).values(), default=0)
    assert tree.arity is None or most <= tree.arity
    assert tree.least_height is None or tree.least_height <= tree.height < max(2, count)
    assert Tree.from_json(tree.to_json()) == tree


@constructions
@given(data=st.data())
def test_reduce_is_the_mirror(construction, data):
    topology, tree = data.draw(trees(construction))
    mirror = tree.reversed()
    verify(topology, mirror)
    oracle = Oracle(topology)
    assert mirror == reduce_tree(topology, tree.root, construction, tree.arity)
    assert mirror.reversed() == tree
    assert mirror.edges == tuple(Message(b, a) for a, b in reversed(tree.edges))
    assert mirror.contention_free == free_of_contention(oracle, mirror.edges, peer=1)
    assert mirror.contention_free == tree.contention_free
    assert dict(mirror.contention) == shared_by(oracle, mirror.edges, 1)
    assert Tree.from_json(mirror.to_json()) == mirror


@constructions
@given(data=st.data())
def test_a_tree_knows_the_most_messages_on_an_edge_in_a_step(construction, data):
    topology, tree = data.draw(trees(construction))
    oracle, arrival, users = Oracle(topology), {tree.root: 0}, Counter()
    for parent, messages in itertools.groupby(tree.edges, key=lambda edge: edge.source):
        for step, edge in enumerate(messages, arrival[parent] + 1):
            arrival[edge.destination] = step
            users.update((step, used) for used in oracle.paths[edge])
    assert tree.in_step == max(users.values(), default=0)


@given(clusters, st.data())
def test_no_two_messages_of_a_linear_tree_meet(topology, data):
    tree = broadcast_tree(topology, data.draw(st.integers(0, topology.rank_count - 1)))
    assert tree.height == topology.rank_count - 1
    assert all(a.destination == b.source for a, b in itertools.pairwise(tree.edges))
    assert Oracle(topology).contention_free(tree.edges)


@given(st.integers(1, 40), st.data())
def test_binomial_is_that_of_the_routine(count, data):
    root = data.draw(st.integers(0, count - 1))
    tree = broadcast_tree(make_topology([count], []), root, "binomial")
    places = {(b - root) % count: (a - root) % count for a, b in tree.edges}
    assert places == {place: place & (place - 1) for place in range(1, count)}
    steps = {root: 0}
    for parent, messages in itertools.groupby(tree.edges, key=lambda edge: edge.source):
        sent = [(edge.destination - edge.source) % count for edge in messages]
        assert sent == sorted(sent, reverse=True)
        steps |= {(parent + add) % count: steps[parent] + q for q, add in enumerate(sent, 1)}
    assert max(steps.values()) <= (count - 1).bit_length()
    assert tree.contention_free


def test_binomial_meets_less_where_ranks_are_in_depth_first_order():
    worst = {}
    for order in ("cyclic", "block"):
        topology = load_topology(TOPOLOGIES / f"chain-4x8-{order}.yaml")
        tree = broadcast_tree(topology, 0, "binomial")
        worst[order] = (sum(ranks for _, ranks in tree.contention), tree.in_step)
    assert worst["block"] < worst["cyclic"]
    assert worst["block"][1] == 1


@given(clusters)
def test_in_a_flat_tree_the_root_sends_to_all_in_order(topology):
    tree = broadcast_tree(topology, 0, "flat")
    assert [e.destination for e in tree.edges] == list(range(1, topology.rank_count))
    assert tree.height == min(1, topology.rank_count - 1)


@given(clusters, st.data())
def test_kary_trees_of_arity_1_and_2_are_linear_and_binary(topology, data):
    root = data.draw(st.integers(0, topology.rank_count - 1))
    one, two = (broadcast_tree(topology, root, "kary", arity) for arity in (1, 2))
    assert one.edges == broadcast_tree(topology, root, "linear").edges
    assert two.edges == broadcast_tree(topology, root, "binary").edges


@constructions
@given(topology=clusters, data=st.data())
def test_trees_of_a_group_are_proven(construction, topology, data):
    used = sorted(set(topology.ranks))
    group = restricted_to(
        topology, data.draw(st.lists(st.sampled_from(used), min_size=1, unique=True))
    )
    verify(group, broadcast_tree(group, 0, construction))
    verify(group, reduce_tree(group, group.rank_count - 1, construction))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"root": -1}, "ranks are 0 to 2"),
        ({"root": 3}, "ranks are 0 to 2"),
        ({"construction": "bush"}, "trees are linear, binary"),
        ({"construction": "kary", "arity": 0}, "at least 1 child"),
        ({"construction": "binary", "arity": 3}, "a binary tree cannot have arity 3"),
        ({"construction": "flat", "arity": 2}, "a flat tree cannot have arity 2"),
        ({"construction": "binary", "orders": 0}, f"1 to {ORDERS}"),
        ({"construction": "binary", "orders": ORDERS + 1}, f"1 to {ORDERS}"),
    ],
)
def test_wrong_arguments_are_refused(options, problem):
    for make in (broadcast_tree, reduce_tree):
        with pytest.raises(InputError, match=problem):
            make(make_topology([3], []), **options)


def test_json_of_a_reduce_has_its_contention():
    topology = make_topology([2, 2], [0], ranks=["n0", "n2", "n1", "n3"])
    form = reduce_tree(topology, 0, "binomial").to_json()
    assert form == {
        "collective": "reduce",
        "ranks": ["n0", "n2", "n1", "n3"],
        "tree": "binomial",
        "arity": None,
        "root": 0,
        "edges": [[3, 2], [1, 0], [2, 0]],
        "height": 2,
        "least_height": None,
        "contention_free": False,
        "contention": [{"edge": ["s1", "s0"], "receivers": 2}],
        "receivers_in_step": 2,
    }
