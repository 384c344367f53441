"""Linear trees of random clusters."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError
from stagegen.schedule import Tree, broadcast_tree
from stagegen.schedule.verify import verify
from tests.schedule.oracle import Oracle
from tests.strategies import make_topology, topologies


@given(topologies(), st.data())
def test_linear_tree(topology, data):
    root = data.draw(st.integers(0, topology.rank_count - 1))
    tree = broadcast_tree(topology, root)
    verify(topology, tree)
    assert tree.height == topology.rank_count - 1
    assert Tree.from_json(tree.to_json()) == tree
    assert Oracle(topology).contention_free(tree.edges)


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
