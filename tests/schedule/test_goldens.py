"""The worked examples of A. Faraj (2006), chapter 3, number by number."""

from __future__ import annotations

import numpy as np
import pytest

from stagegen.data import TOPOLOGIES
from stagegen.schedule import alltoall_schedule, broadcast_tree, logical_ring, lower_bound
from stagegen.schedule.alltoall.phases.global_phases import GlobalPhases
from stagegen.schedule.alltoall.phases.patterns import broadcast, rotate
from stagegen.schedule.alltoall.phases.root import rooted_view
from stagegen.topology import load_topology
from tests.strategies import make_topology

# Table 3.2: sender and receiver of phases 0 to 23.
TABLE_3_2 = [
    *((0, 0), (1, 1), (2, 2), (3, 3), (4, 0), (5, 1)),
    *((0, 2), (1, 3), (2, 0), (3, 1), (4, 2), (5, 3)),
    *((1, 0), (2, 1), (3, 2), (4, 3), (5, 0), (0, 1)),
    *((1, 2), (2, 3), (3, 0), (4, 1), (5, 2), (0, 3)),
]

# Table 3.4, its columns from left to right; t_{0,x} is rank x, t_{1,x} is 3 + x, t_{2,0} is 5.
TABLE_3_4 = [
    [(0, 4), (3, 5), (5, 1), (1, 0)],
    [(1, 3), (4, 5), (5, 2), (2, 1)],
    [(2, 4), (5, 0), (0, 2)],
    [(0, 3), (3, 2), (2, 0)],
    [(1, 4), (3, 0), (0, 1), (4, 3)],
    [(2, 3), (3, 1), (1, 2)],
    [(0, 5), (4, 0)],
    [(1, 5), (4, 1), (5, 3), (3, 4)],
    [(2, 5), (4, 2), (5, 4)],
]


@pytest.fixture(scope="module")
def example():
    return load_topology(TOPOLOGIES / "fig-3-2.yaml")


def pairs_of(patterns) -> list[tuple[int, int]]:
    return list(zip(*(array.tolist() for array in patterns), strict=True))


def test_rotation_gives_table_3_2():
    assert pairs_of(rotate(np.arange(24), 6, 4)) == TABLE_3_2


def test_each_sender_in_turn_sends_to_all_receivers():
    assert pairs_of(broadcast(np.arange(6), 3)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize("senders", range(1, 9))
@pytest.mark.parametrize("receivers", range(1, 9))
def test_patterns_hold_every_pair_and_lemma_6(senders, receivers):
    every = {(s, r) for s in range(senders) for r in range(receivers)}
    turn = np.arange(senders * receivers)
    assert set(pairs_of(broadcast(turn, receivers))) == every
    for first in range(receivers):
        pairs = pairs_of(rotate(turn, senders, receivers, first))
        assert set(pairs) == every
        assert pairs[0] == (0, first)
        for start in range(0, len(pairs), senders):
            assert {s for s, _ in pairs[start : start + senders]} == set(range(senders))
        for start in range(0, len(pairs), receivers):
            assert {r for _, r in pairs[start : start + receivers]} == set(range(receivers))


def test_equal_subtrees_send_in_the_order_of_table_3_1():
    k = 7
    slots = GlobalPhases((1,) * k)
    assert slots.count == k - 1
    for i in range(k):
        assert [(i + 1 + slots.start(i, j)) % k for j in range(k) if j != i] == [
            j for j in range(k) if j != i
        ]


def test_messages_between_subtrees_start_as_in_figure_3_4():
    slots = GlobalPhases((3, 2, 1))
    assert slots.count == 9
    starts = {(i, j): slots.start(i, j) for i in range(3) for j in range(3) if i != j}
    assert starts == {(0, 1): 0, (0, 2): 6, (1, 2): 0, (1, 0): 3, (2, 0): 0, (2, 1): 7}


def test_the_root_of_figure_3_2_is_s1(example):
    view = rooted_view(example)
    assert view.root == "s1"
    assert view.subtrees == ((0, 1, 2), (3, 4), (5,))
    assert view.bottleneck == 9
    assert rooted_view(example, "s0").subtrees == ((3, 4, 5), (0,), (1,), (2,))


def test_the_schedule_of_figure_3_2_is_table_3_4(example):
    phases = alltoall_schedule(example).phases
    assert [list(map(tuple, phase)) for phase in phases] == TABLE_3_4


def test_syncs_of_figure_3_2_are_those_of_the_contract(example):
    form = alltoall_schedule(example, "sender").to_json()
    assert form["syncs"][0] == {"first": [0, 4], "then": [1, 3], "token": [0, 1]}
    receiver = alltoall_schedule(example, "receiver").to_json()
    assert receiver["syncs"][0] == {"first": [0, 4], "then": [1, 3], "token": [4, 1]}


def test_the_ring_and_the_tree_of_figure_3_2_are_those_made_by_hand(example):
    ring = logical_ring(example)
    assert (ring.order, ring.max_hops) == ((0, 1, 2, 5, 3, 4), 3)
    tree = broadcast_tree(example, root=4)
    assert [tuple(edge) for edge in tree.edges] == [(4, 3), (3, 5), (5, 0), (0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("collective", "size", "milliseconds"),
    [("alltoall", 32768, 839), ("allgather", 65536, 393), ("bcast", 1 << 20, 419)],
)
def test_the_bounds_of_the_benchmark_are_those_made_by_hand(collective, size, milliseconds):
    topology = load_topology(TOPOLOGIES / "chain-4x4-cyclic.yaml")
    bound = lower_bound(topology, collective, size)
    assert round(bound.seconds * 1e3) == milliseconds


@pytest.mark.parametrize(("hosts", "phases"), [([1], 0), ([2], 1), ([1, 1], 1), ([1, 0, 1], 1)])
def test_one_and_two_ranks_need_no_phase_and_one(hosts, phases):
    topology = make_topology(hosts, list(range(len(hosts) - 1)))
    schedule = alltoall_schedule(topology)
    assert len(schedule.phases) == schedule.bound_phases == phases
    assert sum(map(len, schedule.phases)) == sum(hosts) * (sum(hosts) - 1)
