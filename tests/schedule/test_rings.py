"""Logical rings of random clusters, of every construction."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stagegen.errors import NotFoundError, ScheduleError
from stagegen.schedule import (
    RING_CONSTRUCTIONS,
    Ring,
    depth_first_positions,
    depth_first_ranks,
    logical_ring,
)
from stagegen.schedule.verify import verify
from stagegen.topology import restricted_to
from tests.schedule.oracle import Oracle
from tests.schedule.ring_oracle import fewest_hops_of_all_rings, trees_of_hosts
from tests.strategies import make_topology, small_topologies, topologies

constructions = pytest.mark.parametrize("construction", RING_CONSTRUCTIONS)


def ring_or_none(topology, construction):
    try:
        return logical_ring(topology, construction)
    except NotFoundError:
        assert construction == "lr2"
        return None


def neighbours(ring):
    return list(zip(ring.order, ring.order[1:] + ring.order[:1], strict=True))


@constructions
@given(topology=topologies())
def test_a_ring_passes_every_link_once_in_each_direction(construction, topology):
    ring = ring_or_none(topology, construction)
    assume(ring is not None)
    verify(topology, ring)
    assert ring.order[0] == 0
    assert Ring.from_json(ring.to_json()) == ring
    assert logical_ring(topology, construction) == ring
    if topology.rank_count > 1:
        pairs = neighbours(ring)
        oracle = Oracle(topology)
        assert oracle.contention_free(pairs)
        # A contention-free ring crosses every link exactly once in each direction.
        assert sum(len(oracle.paths[p]) for p in pairs) == 2 * (len(topology.tree.names) - 1)


@given(topologies(), st.data())
def test_positions_are_those_of_the_order_and_lemma_11_holds(topology, data):
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


@constructions
def test_ranks_of_a_host_stay_together(construction):
    topology = make_topology([2, 1], [0], slots={"n0": 2}, ranks=["n0", "n1", "n2", "n0"])
    order = logical_ring(topology, construction).order
    assert abs(order.index(0) - order.index(3)) in (1, 3)


def test_ranks_of_a_host_follow_each_other_in_depth_first_order():
    topology = make_topology([2, 1], [0], slots={"n0": 2}, ranks=["n0", "n1", "n2", "n0"])
    assert depth_first_ranks(topology) == (0, 3, 1, 2)
    assert depth_first_ranks(topology, 3) == (3, 0, 1, 2)


@constructions
@pytest.mark.parametrize(
    ("hosts", "slots", "hops"),
    [([1], 1, 0), ([1], 3, 0), ([2], 1, 1), ([5], 2, 1), ([1, 1], 1, 2), ([1, 1], 2, 2)],
)
def test_rings_of_the_smallest_clusters_have_so_many_hops(construction, hosts, slots, hops):
    switches = len(hosts)
    slots_of = {f"n{i}": slots for i in range(sum(hosts))}
    topology = make_topology(hosts, list(range(switches - 1)), slots=slots_of)
    ring = logical_ring(topology, construction)
    assert ring.max_hops == hops
    verify(topology, ring)


@constructions
def test_switches_that_lead_to_no_rank_do_not_count(construction):
    # s0 and s1 have two machines each; of s2, s3 and s4 on s0 the group uses nothing.
    topology = make_topology([2, 2, 1, 1, 0], [0, 0, 0, 0])
    group = restricted_to(topology, ["n0", "n1", "n2", "n3"])
    assert logical_ring(group, construction).max_hops == 2


def test_a_row_of_switches_needs_two_hops_only():
    # Four switches in a row with two machines each: from the last machine back to the first,
    # LR1 passes all of them.
    topology = make_topology([2, 2, 2, 2], [0, 1, 2])
    assert {lr: logical_ring(topology, lr).max_hops for lr in RING_CONSTRUCTIONS} == {
        "lr1": 4,
        "lr2": 2,
        "lr3": 2,
    }


@pytest.mark.parametrize(
    ("hosts", "parents", "message"),
    [
        ([1, 2, 2], [0, 0], "switch s0 has 1 machine, but 2 neighbour switches"),
        ([2, 0, 2], [0, 1], "switch s1 has 0 machines, but 2 neighbour switches"),
        ([3, 0, 1, 1], [0, 1, 1], "switch s1 has 0 machines, but 3 neighbour switches"),
    ],
)
def test_lr2_names_the_switch_that_breaks_theorem_3(hosts, parents, message):
    with pytest.raises(NotFoundError, match=re.escape(message)):
        logical_ring(make_topology(hosts, parents), "lr2")


def test_a_ring_of_another_construction_is_found_out():
    topology = make_topology([2, 2, 2, 2], [0, 1, 2])
    ring = logical_ring(topology)
    with pytest.raises(ScheduleError, match="lr2 has 4 hops, not 2 at most"):
        verify(topology, replace(ring, construction="lr2"))
    with pytest.raises(ScheduleError, match="unknown construction 'lr9'"):
        verify(topology, replace(ring, construction="lr9"))
    assert (
        verify(topology, replace(ring, construction="lr3")).checked[-1].startswith("not shown here")
    )


def check_against_all_rings(topology):
    best = fewest_hops_of_all_rings(topology)
    two_hop, optimal = ring_or_none(topology, "lr2"), logical_ring(topology, "lr3")
    assert optimal.max_hops == best
    assert (two_hop is not None) == (best <= 2)
    for ring in filter(None, (two_hop, optimal)):
        verify(topology, ring)


@pytest.mark.parametrize("most_nodes", [11, pytest.param(15, marks=pytest.mark.slow)])
def test_every_small_tree_has_the_best_of_all_its_rings(most_nodes):
    """LR3 is the least of all contention-free rings; LR2 refuses iff none has two hops."""
    trees = 0
    for topology in trees_of_hosts(most_nodes, most_hosts=7):
        check_against_all_rings(topology)
        trees += 1
    assert trees > 400


@given(small_topologies)
def test_shared_hosts_and_bare_switches_have_the_best_of_all_rings(topology):
    check_against_all_rings(topology)


def test_a_message_of_a_ring_of_a_hundred_thousand_hosts_passes_at_most_five_switches():
    """How the work to make such a ring grows is counted in `test_scale.py`."""
    leaf_switches = 2500
    middle = [0] * 50
    leaves = [1 + i // 50 for i in range(leaf_switches)]
    topology = make_topology([0] + [0] * 50 + [40] * leaf_switches, middle + leaves)
    ring = logical_ring(topology)
    assert ring.max_hops == 5
    verify(topology, ring)
