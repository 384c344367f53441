"""The nodes of a call, from messages or from routines' own events, and the slowest rank's way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.inspection.nodes import nodes_of, of_node
from stagegen.inspection.parts import slowest_rank
from stagegen.inspection.series import Call
from stagegen.inspection.stages import ARRIVAL_WAIT, CORE, paths_of
from stagegen.inspection.trace import EventType
from tests.inspection import made
from tests.inspection.reading import US, events, us


def test_ranks_that_exchange_are_roots_side_by_side():
    """As leaders of hosts do: 1 contributes to 0, 3 to 2, and 0 and 2 exchange."""
    call = Call(
        (0.0,) * 4,
        (100 * US,) * 4,
        (
            events(made.received(1, 5), made.sent(2, 6), made.received(2, 50), made.sent(1, 51)),
            events(made.sent(0, 1), made.received(0, 55)),
            events(made.received(3, 7), made.sent(0, 8), made.received(0, 52), made.sent(3, 53)),
            events(made.sent(2, 1), made.received(2, 58)),
        ),
    )
    nodes = nodes_of("allreduce", call)
    assert [nodes[rank].parent for rank in range(4)] == [None, 0, None, 2]
    paths = paths_of(nodes, ("a", "a", "b", "b"))
    core = {
        rank: seconds for rank in range(4) for stage, seconds in paths[rank] if stage.part == CORE
    }
    assert core == {0: us(46), 1: us(46), 2: us(46), 3: us(46)}


def test_a_token_that_crossed_makes_the_receiver_the_root():
    """0 sends the token to 1 while 1's operand is on its way; 1 releases."""
    call = Call(
        (0.0,) * 3,
        (100 * US,) * 3,
        (
            events(made.received(2, 3), made.sent(1, 5), made.received(1, 6), made.received(1, 20)),
            events(made.sent(0, 4), made.received(0, 15), made.sent(0, 16)),
            events(made.sent(0, 1), made.received(0, 30)),
        ),
    )
    call = replace(
        call, events=(call.events[0] + events(made.sent(2, 21)), call.events[1], call.events[2])
    )
    nodes = nodes_of("allreduce", call)
    assert [nodes[rank].parent for rank in range(3)] == [1, None, 0]
    assert nodes[1].ins[of_node(0)] == 15 * US
    assert nodes[0].down == 20 * US


def test_nodes_without_messages_are_known_from_their_own_events():
    """Rank 1 serves node 7 for ranks 0 and 1; rank 0 the root, node 8, for rank 2 and node 7."""
    call = Call(
        (0.0,) * 3,
        (50 * US,) * 3,
        (
            events(
                (EventType.NODE_IN, 2, 8, 3),
                (EventType.NODE_IN, of_node(7), 8, 10),
                (EventType.NODE_OUT, of_node(7), 8, 12),
                (EventType.NODE_OUT, 2, 8, 13),
            ),
            events(
                (EventType.NODE_IN, 0, 7, 2),
                (EventType.NODE_IN, 1, 7, 4),
                (EventType.NODE_UP, 0, 7, 5),
                (EventType.NODE_DOWN, 0, 7, 20),
                (EventType.NODE_OUT, 0, 7, 21),
                (EventType.NODE_OUT, 1, 7, 23),
            ),
            (),
        ),
    )
    nodes = nodes_of("allreduce", call)
    assert nodes[7].parent == nodes[7].giver == 8
    paths = paths_of(nodes, ("a", "a", "a"))
    assert set(paths) == {0, 1, 2}
    told = {(stage.node, stage.what, stage.way): seconds for stage, seconds in paths[0]}
    assert told[7, ARRIVAL_WAIT, "down"] == us(2)
    assert told[8, "latency", "core"] == us(2)


@pytest.mark.parametrize(
    "wrong",
    [
        ((EventType.NODE_IN, of_node(7), 8, 3), (EventType.NODE_IN, of_node(8), 7, 4)),
        ((EventType.NODE_OUT, of_node(7), 7, 3),),
        ((EventType.NODE_IN, of_node(9), 8, 3), (EventType.NODE_IN, 0, 7, 4)),
        ((EventType.NODE_IN, of_node(7), 8, 3), (EventType.NODE_IN, 0, 7, 2)),
        ((EventType.NODE_OUT, of_node(7), 8, 3), (EventType.NODE_OUT, 0, 7, 4)),
    ],
)
def test_nodes_that_are_no_tree_are_none(wrong):
    """Circles of two and of one, a contributor without events, a node that hands on nothing, and
    one that gets nothing.
    """
    call = Call((0.0,) * 2, (50 * US,) * 2, (events((EventType.NODE_IN, 1, 8, 1), *wrong), ()))
    assert nodes_of("allreduce", call) is None


@pytest.mark.parametrize("collective", ["reduce", "bcast"])
def test_bcast_and_reduce_are_trees_of_one_way(collective):
    """Rank 0 is the root of 1 and 2."""
    up = (
        events(made.received(1, 10), made.received(2, 20)),
        events(made.sent(0, 1)),
        events(made.sent(0, 2)),
    )
    down = (
        events(made.sent(1, 10), made.sent(2, 20)),
        events(made.received(0, 15)),
        events(made.received(0, 30)),
    )
    call = Call((0.0,) * 3, (40 * US,) * 3, up if collective == "reduce" else down)
    nodes = nodes_of(collective, call)
    way = "parent" if collective == "reduce" else "giver"
    assert [getattr(nodes[rank], way) for rank in range(3)] == [None, 0, 0]
    assert bool(nodes[0].ins) == (collective == "reduce")


def test_the_slowest_rank_of_a_reduce_waited_for_the_operand_that_came_last():
    """Rank 2, on another host, begins 5 later than rank 0, the root, and sends at 7."""
    told = (
        events(made.received(1, 10), made.received(2, 37)),
        events(made.sent(0, 1)),
        events(made.sent(0, 7)),
    )
    call = Call((0.0, 0.0, 5 * US), (40 * US, 2 * US, 8 * US), told)
    nodes, hosts = nodes_of("reduce", call), ("a", "a", "b")
    found = slowest_rank(call, nodes, paths_of(nodes, hosts), hosts)
    assert {name: seconds for name, seconds in found.parts().items() if seconds} == {
        "arrival waits": us(5),
        "ranks and host subtrees": us(2),
        "messages between hosts": us(30),
        "before and after the tree": us(3),
        "the call": us(40),
    }


def test_the_call_s_root_of_a_reduce_waited_for_the_message_from_the_tree_s_root():
    """Rank 2, the call's root, contributes to node 3 of rank 0, whose other operand comes at 20."""
    told = (
        events(
            (EventType.NODE_IN, 0, 3, 1),
            (EventType.NODE_IN, of_node(2), 3, 6),
            (EventType.NODE_IN, of_node(1), 3, 20),
            (EventType.NODE_UP, 1, 3, 22),
        ),
        events((EventType.NODE_IN, 1, 1, 15), (EventType.NODE_UP, 0, 1, 16)),
        events(
            (EventType.NODE_IN, 2, 2, 1),
            (EventType.NODE_UP, 0, 2, 2),
            (EventType.NODE_IN, of_node(3), 4, 45),
        ),
    )
    call = Call((0.0, 14 * US, 0.0), (24 * US, 17 * US, 46 * US), told)
    nodes, hosts = nodes_of("reduce", call), ("a", "a", "b")
    assert nodes[3].parent == 4
    found = slowest_rank(call, nodes, paths_of(nodes, hosts), hosts)
    assert {name: seconds for name, seconds in found.parts().items() if seconds} == {
        "arrival waits": us(14),
        "ranks and host subtrees": us(1),
        "messages within hosts": us(4),
        "cluster-root subtree": us(2),
        "messages between hosts": us(23),
        "before and after the tree": us(2),
        "the call": us(46),
    }
    assert found.stages[-1][0].title == "message between hosts to the call's root"


def test_the_slowest_rank_of_a_reduce_may_do_work_that_is_not_on_its_own_operand_s_way():
    """Rank 0 is a leaf of node 3 of rank 1, and does the work of node 4 above it."""
    told = (
        events(
            (EventType.NODE_IN, 0, 0, 1),
            (EventType.NODE_UP, 0, 0, 2),
            (EventType.NODE_IN, of_node(3), 4, 30),
        ),
        events(
            (EventType.NODE_IN, of_node(0), 3, 8),
            (EventType.NODE_IN, 1, 3, 1),
            (EventType.NODE_UP, 0, 3, 9),
        ),
    )
    call = Call((0.0, 0.0), (31 * US, 10 * US), told)
    nodes, hosts = nodes_of("reduce", call), ("a", "b")
    parts = slowest_rank(call, nodes, paths_of(nodes, hosts), hosts).parts()
    assert parts["messages between hosts"] == us(6 + 21)
    assert parts["before and after the tree"] == us(2)


def test_the_slowest_rank_of_a_bcast_waited_for_the_root():
    """Rank 0, the root, begins 4 later than rank 2, on another host, and sends at 10."""
    told = (
        events(made.sent(1, 10), made.sent(2, 10)),
        events(made.received(0, 15)),
        events(made.received(0, 30)),
    )
    call = Call((4 * US, 6 * US, 0.0), (12 * US, 16 * US, 32 * US), told)
    nodes, hosts = nodes_of("bcast", call), ("a", "a", "b")
    found = slowest_rank(call, nodes, paths_of(nodes, hosts), hosts)
    parts = found.parts()
    assert parts["arrival waits"] == us(4)
    assert parts["messages between hosts"] == us(20)
    assert parts["the call"] == us(32)
