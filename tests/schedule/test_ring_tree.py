"""Logical rings and linear trees of random clusters."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError
from stagegen.schedule import (
    Ring,
    Tree,
    broadcast_tree,
    depth_first_positions,
    depth_first_ranks,
    logical_ring,
)
from stagegen.schedule.verify import verify
from tests.schedule.oracle import Oracle
from tests.strategies import make_topology, topologies


@given(topologies())
def test_ring(topology):
    ring = logical_ring(topology)
    verify(topology, ring)
    assert ring.order[0] == 0
    assert Ring.from_json(ring.to_json()) == ring
    if topology.rank_count > 1:
        pairs = list(zip(ring.order, ring.order[1:] + ring.order[:1], strict=True))
        oracle = Oracle(topology)
        assert oracle.contention_free(pairs)
        # A contention-free ring crosses every link exactly once in each direction.
        assert sum(len(oracle.paths[p]) for p in pairs) == 2 * (len(topology.tree.names) - 1)


@given(topologies(), st.data())
def test_linear_tree(topology, data):
    root = data.draw(st.integers(0, topology.rank_count - 1))
    tree = broadcast_tree(topology, root)
    verify(topology, tree)
    assert tree.height == topology.rank_count - 1
    assert Tree.from_json(tree.to_json()) == tree
    assert Oracle(topology).contention_free(tree.edges)


@given(topologies(), st.data())
def test_positions_and_lemma_11(topology, data):
    start = data.draw(st.integers(0, topology.rank_count - 1))
    order = depth_first_ranks(topology, start)
    positions = depth_first_positions(topology, start)
    assert [order[position] for position in positions] == list(range(topology.rank_count))
    places = st.integers(0, topology.rank_count - 1)
    i, j, k, last = sorted(data.draw(st.tuples(places, places, places, places)))
    if i < j <= k < last:
        pairs = [(order[i], order[j]), (order[k], order[last])]
        assert Oracle(topology).contention_free(pairs)


def test_machines_of_a_switch_come_before_its_switches():
    # s0 has s1 (with s3) and s2; all have two machines, ranks are dealt to the switches in turn.
    ranks = ["n0", "n2", "n4", "n6", "n1", "n3", "n5", "n7"]
    topology = make_topology([2, 2, 2, 2], [0, 0, 1], ranks=ranks)
    assert depth_first_ranks(topology) == (0, 4, 1, 5, 3, 7, 2, 6)
    assert depth_first_ranks(topology, 5) == (5, 1, 0, 4, 2, 6, 3, 7)
    assert logical_ring(topology).max_hops == 4


def test_ranks_of_a_host_stay_together():
    topology = make_topology([2, 1], [0], slots={"n0": 2}, ranks=["n0", "n1", "n2", "n0"])
    assert depth_first_ranks(topology) == (0, 3, 1, 2)
    assert depth_first_ranks(topology, 3) == (3, 0, 1, 2)


def test_rank_out_of_range():
    topology = make_topology([3], [])
    for root in (-1, 3):
        with pytest.raises(InputError, match="ranks are 0 to 2"):
            broadcast_tree(topology, root)


@given(topologies(max_hosts=8, max_switches=6, max_ranks=9))
def test_every_rank_can_be_the_root(topology):
    for root in range(topology.rank_count):
        edges = broadcast_tree(topology, root).edges
        assert all(a.destination == b.source for a, b in itertools.pairwise(edges))
        assert not edges or edges[0].source == root
