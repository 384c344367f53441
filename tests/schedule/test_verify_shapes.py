"""The checker rejects damaged rings and trees, and nothing else."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stagegen.errors import ScheduleError
from stagegen.schedule import Message, broadcast_tree, logical_ring
from stagegen.schedule.alltoall.schedule import alltoall_schedule
from stagegen.schedule.verify import verify
from stagegen.topology import load_topology
from tests.schedule.oracle import Oracle
from tests.strategies import make_topology, small_topologies

several = small_topologies.filter(lambda topology: topology.rank_count >= 3)


def rejected(topology, schedule) -> bool:
    try:
        verify(topology, schedule)
    except ScheduleError:
        return True
    return False


@given(several, st.data())
def test_swapped_ring_neighbours_are_judged_as_by_the_oracle(topology, data):
    """Neighbours on one switch may change places; the oracle knows."""
    ring = logical_ring(topology)
    order = list(ring.order)
    place = data.draw(st.integers(0, len(order) - 1))
    order[place - 1], order[place] = order[place], order[place - 1]
    pairs = list(zip(order, order[1:] + order[:1], strict=True))
    oracle = Oracle(topology)
    hops = max(topology.hops(*pair) for pair in pairs)
    damaged = replace(ring, order=tuple(order))
    harmless = oracle.contention_free(pairs) and hops == ring.max_hops
    assert rejected(topology, damaged) == (not harmless)


def test_a_host_may_have_any_name(tmp_path):
    """The checker tells the branches of the root apart by the names of their nodes."""
    file = tmp_path / "t.yaml"
    file.write_text(
        "name: t\ndefaults: {bandwidth: 1Gbit, latency: 50us}\n"
        "switches: {s0: {hosts: [a]}, s1: {hosts: [above, b, c]}, s2: {hosts: [d]}}\n"
        "links: [{ends: [s0, s1]}, {ends: [s1, s2]}]\n"
    )
    topology = load_topology(file)
    verify(topology, alltoall_schedule(topology))


def test_swapped_neighbours_of_different_switches_are_rejected():
    topology = make_topology([3, 3], [0])
    ring = logical_ring(topology)
    with pytest.raises(ScheduleError, match="share the edge"):
        verify(topology, replace(ring, order=(0, 1, 3, 2, 4, 5)))


def test_other_claims_of_a_ring_are_checked():
    topology = make_topology([3, 3], [0])
    ring = logical_ring(topology)
    damaged = {
        "rank 2 is missing": replace(ring, order=(0, 1, 3, 4, 5)),
        "rank 1 comes more than once": replace(ring, order=(0, 1, 1, 3, 4, 5)),
        "no rank 6": replace(ring, order=(0, 1, 2, 3, 4, 6)),
        "the most hops are 2, not 1": replace(ring, max_hops=1),
    }
    for problem, wrong in damaged.items():
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, wrong)


@given(several, st.data())
def test_a_tree_with_another_parent_is_judged_as_by_the_oracle(topology, data):
    tree = broadcast_tree(topology, data.draw(st.integers(0, topology.rank_count - 1)))
    edges = list(tree.edges)
    place = data.draw(st.integers(0, len(edges) - 1))
    parent = data.draw(st.integers(0, topology.rank_count - 1))
    child = edges[place].destination
    assume(parent not in (child, edges[place].source))
    edges[place] = Message(parent, child)
    oracle = Oracle(topology)
    below = {tree.root: 0}
    for _ in edges:
        below |= {e.destination: below[e.source] + 1 for e in edges if e.source in below}
    harmless = (
        len(below) == topology.rank_count
        and max(below.values()) == tree.height
        and not any(
            oracle.clash(a, b) for a, b in itertools.combinations(edges, 2) if a.source != b.source
        )
    )
    assert rejected(topology, replace(tree, edges=tuple(edges))) == (not harmless)


def test_other_claims_of_a_tree_are_checked():
    topology = make_topology([2, 2], [0])
    tree = broadcast_tree(topology, 0)
    first, second, third = tree.edges
    damaged = {
        "rank 3 has no parent": replace(tree, edges=(first, second)),
        "second parent": replace(tree, edges=(*tree.edges, Message(0, 3))),
        "leads into the root": replace(tree, edges=(*tree.edges, Message(3, 0))),
        "on a cycle": replace(tree, edges=(first, Message(3, 2), third)),
        "no rank 4": replace(tree, edges=(*tree.edges, Message(3, 4))),
        "no rank 7": replace(tree, root=7),
        "the height is 3, not 2": replace(tree, height=2),
        "contention_free is wrong": replace(tree, contention_free=False),
        "0→2 and 1→3 share the edge s0→s1": replace(
            tree, edges=(first, Message(0, 2), Message(1, 3)), height=2
        ),
    }
    for problem, wrong in damaged.items():
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, wrong)
