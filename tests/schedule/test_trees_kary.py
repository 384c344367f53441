"""Algorithm 5 for any arity, against all trees that it could choose and all that there are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.schedule import Message, broadcast_tree
from stagegen.schedule.model import least_height
from stagegen.schedule.trees.edges import height_of, in_sending_order
from stagegen.schedule.trees.kary import KaryTrees
from stagegen.schedule.trees.orders import depth_first_orders
from stagegen.schedule.trees.range_max import RangeMax
from tests.schedule.oracle import Oracle
from tests.schedule.tree_oracle import figure_3_28, interval_trees, least_height_of_any
from tests.strategies import (
    examples,
    make_topology,
    oracle_paths,
    small_topologies,
    small_trees,
    topologies,
)

clusters = topologies(max_hosts=16, max_switches=8, max_ranks=18)
arities = pytest.mark.parametrize("arity", [1, 2, 3, 4])


@st.composite
def small_orders(draw):
    """A small cluster and one of its depth-first orders."""
    topology = draw(small_topologies)
    root = draw(st.integers(0, topology.rank_count - 1))
    return topology, draw(st.sampled_from(list(depth_first_orders(topology.tree, root))))


@arities
@examples(60)
@given(case=small_orders())
def test_every_interval_reaches_as_far_as_the_best_tree(arity, case):
    topology, order = case
    trees = interval_trees(Oracle(topology), order.ranks, arity)
    made, last = KaryTrees(order, arity), topology.rank_count - 1
    heights = {
        (i, j): min(height for height, _ in trees(i, j))
        for i, j in itertools.combinations_with_replacement(range(last + 1), 2)
    }
    assert_reaches(made, heights, last)
    assert made.height == heights[0, last]
    assert (made.height, frozenset(made.arcs())) in trees(0, last)


def assert_reaches(made, heights, last):
    for height, reach in enumerate(made.reach_of_height):
        for i in range(last + 1):
            assert reach[i] == max(j for j in range(i, last + 1) if heights[i, j] <= height)


@pytest.mark.parametrize("arity", [2, 3])
@examples(25)
@given(topology=topologies(max_hosts=11, max_switches=6, max_ranks=12), data=st.data())
def test_every_interval_reaches_as_far_as_in_figure_3_28(arity, topology, data):
    order = data.draw(st.sampled_from(list(depth_first_orders(topology.tree, 0))))
    heights = figure_3_28(Oracle(topology), order.ranks, arity)
    assert_reaches(KaryTrees(order, arity), heights, topology.rank_count - 1)


def test_a_part_may_hold_whole_subtrees_after_the_one_it_starts_in():
    # s1 is entered at its first rank; the part that starts at its second goes on in s0.
    topology = make_topology([6, 5], [0])
    ranks = (0, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5)
    order = next(o for o in depth_first_orders(topology.tree, 0) if o.ranks == ranks)
    heights = figure_3_28(Oracle(topology), order.ranks, 3)
    assert_reaches(KaryTrees(order, 3), heights, 10)


@pytest.mark.parametrize("arity", [2, 3])
def test_the_best_order_gives_the_lowest_tree_of_all(arity):
    # Not a theorem: of random clusters of 7 ranks a few have a lower tree in no such order.
    for topology in small_trees(8):
        oracle = Oracle(topology)
        for root in range(topology.rank_count):
            tree = broadcast_tree(topology, root, "kary", arity)
            assert tree.height == least_height_of_any(oracle, root, arity)


@arities
@given(topology=clusters)
def test_no_subtree_is_higher_than_it_must_be(arity, topology):
    for order in depth_first_orders(topology.tree, 0, 2):
        made = KaryTrees(order, arity)
        below = {i: {i} for i in range(topology.rank_count)}
        height = dict.fromkeys(below, 0)
        for parent, child in sorted(made.arcs(), reverse=True):
            below[parent] |= below[child]
            height[parent] = max(height[parent], height[child] + 1)
        for i, held in below.items():
            assert held == set(range(i, max(held) + 1))
            assert made.reach_of_height[height[i]][i] >= max(held)
            assert not height[i] or made.reach_of_height[height[i] - 1][i] < max(held)


@given(clusters, st.data())
def test_orders_are_depth_first(topology, data):
    root = data.draw(st.integers(0, topology.rank_count - 1))
    paths = Oracle(topology).paths
    for order in depth_first_orders(topology.tree, root):
        assert order.ranks[0] == root
        assert sorted(order.ranks) == list(range(topology.rank_count))
        # Around the order every edge is used once in a direction: what is beyond it is together.
        around = zip(order.ranks, (*order.ranks[1:], root), strict=True)
        used = [edge for pair in around if pair in paths for edge in paths[pair]]
        assert len(used) == len(set(used))


def test_orders_of_an_uneven_cluster_are_as_described_and_all_differ():
    # s0 has ranks 0 to 3, s1 behind it 4 to 6, s2 behind it 7, and s3 behind s1 has 8 and 9.
    topology = make_topology([4, 3, 1, 2], [0, 0, 1])
    described = [
        (0, 1, 2, 3, 4, 5, 6, 8, 9, 7),  # as in the file
        (0, 6, 9, 8, 4, 5, 1, 2, 3, 7),  # one rank, then larger before smaller
        (0, 8, 9, 4, 5, 6, 1, 2, 3, 7),  # larger before smaller
        (0, 1, 2, 3, 7, 4, 5, 6, 8, 9),  # smaller before larger
        (0, 7, 9, 8, 6, 5, 4, 3, 2, 1),  # the reverse of the first
    ]
    orders, again = ([o.ranks for o in depth_first_orders(topology.tree, 0)] for _ in range(2))
    assert orders[: len(described)] == described
    assert len(set(orders)) == len(orders) > len(described)
    assert orders == again
    assert [o.ranks for o in depth_first_orders(topology.tree, 0, 2)] == described[:2]


@given(small_orders())
def test_groups_are_the_smallest_subtrees_with_two_neighbours(case):
    topology, order = case
    paths, count = oracle_paths(topology), topology.rank_count
    ranks = order.ranks
    # The subtree of a node is what messages of the root reach over the edge into it; that of
    # the root's neighbour is all.
    into = {edge for p in range(1, count) for edge in paths[ranks[0], ranks[p]][1:]}
    beyond = [{p for p in range(1, count) if e in paths[ranks[0], ranks[p]]} for e in into]
    for place in range(1, count):
        nodes = [set(range(count)), *beyond]
        group = min((node for node in nodes if {place - 1, place} <= node), key=len)
        assert (order.first[place], order.last[place]) == (min(group), max(group))


def test_one_switch_has_complete_trees():
    for count in (1, 2, 3, 7, 8, 15, 16, 40, 63, 64):
        topology = make_topology([count], [])
        tree = broadcast_tree(topology, 0, "binary")
        assert tree.height == tree.least_height == math.ceil(math.log2(count + 1)) - 1
        for arity in (3, 5):
            tree = broadcast_tree(topology, 0, "kary", arity)
            assert tree.height == tree.least_height


def test_a_chain_of_single_hosts_needs_more_than_a_complete_tree():
    # Beyond 15 switches that have one rank each, heights grow with the length of the chain.
    for count, height in ((9, 3), (40, 11), (80, 21)):
        assert (
            broadcast_tree(make_topology([1] * count, range(count - 1)), 0, "binary").height
            == height
        )
    chain = make_topology([1] * 9, range(8))
    assert least_height_of_any(Oracle(chain), 0, 2) == 3


def test_the_first_order_is_that_of_the_linear_tree():
    topology = make_topology([2, 3, 3, 3], [0, 0, 0])
    heights = {
        orders: broadcast_tree(topology, 0, "binary", orders=orders).height for orders in (1, 8)
    }
    trees = interval_trees(Oracle(topology), tuple(range(11)), 2)
    assert heights[1] == min(height for height, _ in trees(0, 10))
    assert heights[8] <= heights[1]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.data())
def test_range_max_is_the_most_of_each_range(values, data):
    table, places = RangeMax(np.array(values)), st.integers(0, len(values))
    pairs = data.draw(st.lists(st.tuples(places, places)))
    starts, stops = (np.array([pair[end] for pair in pairs], dtype=int) for end in (0, 1))
    expected = [max(values[start:stop], default=-1) for start, stop in pairs]
    assert table.query(starts, stops).tolist() == expected


@given(st.integers(1, 40), st.integers(1, 6))
def test_the_least_height_is_that_of_a_complete_tree(count, arity):
    held = [sum(arity**level for level in range(height + 1)) for height in range(count)]
    assert least_height(count, arity) == next(h for h, most in enumerate(held) if most >= count)


@st.composite
def shapes(draw):
    """A tree of up to seven ranks, its arcs in any order."""
    count = draw(st.integers(1, 7))
    arcs = [Message(draw(st.integers(0, child - 1)), child) for child in range(1, count)]
    return draw(st.permutations(arcs))


@given(shapes())
def test_no_order_of_sending_ends_sooner(arcs):
    children = {parent: [c for p, c in arcs if p == parent] for parent, _ in arcs}

    def ends(rank, chosen):
        own = chosen.get(rank, ())
        return max((q + ends(child, chosen) for q, child in enumerate(own, 1)), default=0)

    every = itertools.product(*map(itertools.permutations, children.values()))
    soonest = min(ends(0, dict(zip(children, one, strict=True))) for one in every)
    edges = in_sending_order(0, arcs)
    sent = {parent: [c for p, c in edges if p == parent] for parent in children}
    assert sorted(edges) == sorted(arcs)
    assert ends(0, sent) == soonest
    depth = {0: 0}
    for parent, child in sorted(arcs):
        depth[child] = depth[parent] + 1
    assert height_of(0, edges) == max(depth.values())
