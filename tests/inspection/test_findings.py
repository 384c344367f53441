"""What is found in calls whose times are known."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from stagegen.cli import group
from stagegen.data import TEMPLATES
from stagegen.errors import InputError
from stagegen.inspection.findings import tree_findings
from stagegen.inspection.look import looks_at
from stagegen.inspection.nodes import nodes_of, of_node
from stagegen.inspection.parts import parts_of, slowest_rank, typical_parts
from stagegen.inspection.series import Call, Event, series_of
from stagegen.inspection.stages import (
    ARRIVAL_WAIT,
    CORE,
    HOST,
    LEAF,
    MESSAGE,
    NETWORK,
    ROOT,
    paths_of,
    tree_parts,
)
from stagegen.inspection.timeline import (
    OUTSIDE,
    covered,
    link_uses,
    messages_of,
    step_findings,
)
from stagegen.inspection.trace import NO_DATA, Kind, read_trace
from stagegen.report.inspection_page import render_inspection
from stagegen.report.units import format_seconds
from stagegen.trees import make_tree, shape_of
from tests.inspection import made
from tests.strategies import make_topology

US = 1e-6


def trace_of(tmp_path, calls, world=made.TWO_HOSTS, routine="allreduce/tree"):
    return read_trace(made.write(tmp_path / "events", routine, calls, world))


def calls(count, late=None):
    return [made.two_levels(1000.0 * (i + 1), late) for i in range(count)]


def series(tmp_path, made_calls, skip=0, **kinds):
    (found,) = series_of(trace_of(tmp_path, made_calls, **kinds), skip).series
    return found


def us(seconds):
    return pytest.approx(seconds * US, abs=2e-9)


def test_a_trace_of_another_version_is_refused_with_what_to_do(tmp_path):
    file = made.write(tmp_path / "events", "allreduce/tree", calls(1), made.TWO_HOSTS)
    data = file.read_bytes()
    file.write_bytes(data[:8] + b"\1" + data[9:])
    with pytest.raises(InputError, match="its version is 1, and 2 is needed; make the library"):
        read_trace(file)


def test_names_of_routines_are_whole(tmp_path):
    name = f"allreduce/configured_tree_{'n' * 80}"
    assert trace_of(tmp_path, calls(1), routine=name).routines == (name,)


def test_hosts_may_have_names_that_look_like_markup(tmp_path, capsys):
    world = replace(made.TWO_HOSTS, hosts=("[/b]", "[/b]", "[red]", "[red]"))
    file = made.write(tmp_path / "[bold]", "allreduce/tree", calls(2), world)
    group(["inspect", str(file), str(file), "--skip", "0"], standalone_mode=False)
    text = capsys.readouterr().out
    assert all(name in text for name in ("[/b]", "[red]", "[bold]"))


def test_the_first_calls_are_dropped(tmp_path):
    assert len(series(tmp_path, calls(13), skip=10)) == 3


def test_latencies_of_a_tree_with_clocks_that_are_apart(tmp_path):
    found = tree_findings(series(tmp_path, calls(3)))
    root, inner = found.nodes[0], found.nodes[2]
    assert set(found.nodes) == {0, 2}
    assert root.core == [us(3)] * 3
    assert not root.up
    assert not root.down
    assert inner.down == [us(2)] * 3
    assert inner.up == [us(1)] * 3
    # From the last arrival, rank 2's message at 37, and to the first departure, at 40.
    assert root.arrival_waits[of_node(1)] == [us(37 - 6)] * 3
    assert root.arrival_waits[of_node(2)] == [us(0)] * 3
    assert root.arrival_waits[0] == [us(37)] * 3
    assert root.departure_waits[of_node(1)] == [us(6)] * 3
    assert root.departure_waits[of_node(2)] == [us(0)] * 3
    assert found.trips[2, 0] == [us(60)] * 3
    # Of rank 3 from 5 to 71, of the node's own rank from 0 to 73, less from 7 to 70 above.
    assert sorted(inner.wrapper) == [us(3)] * 3 + [us(10)] * 3


def test_stages_of_a_rank_add_up_to_its_call(tmp_path):
    one = series(tmp_path, calls(4, {1: 17.0, 3: 400.0}))
    found = tree_findings(one)
    for rank, stages in found.ranks.items():
        whole = float((one.ended - one.begun)[:, rank].mean())
        assert stages.total(waits=True) == pytest.approx(whole, abs=5e-9)


def test_the_last_row_of_the_stages_is_the_time_of_a_call_on_that_rank(tmp_path, capsys):
    """Rank 3 begins 40 later in the second call, in which the others wait for it."""
    two = [*calls(1), made.two_levels(9000.0, {3: 40.0})]
    file = made.write(tmp_path / "events", "allreduce/tree", two, made.TWO_HOSTS)
    (one,) = series_of(read_trace(file), 0).series
    found = tree_findings(one)
    for rank, least, most in ((2, 73, 113), (3, 77, 77)):
        title, spread = found.ranks[rank].spreads()[-1]
        assert title == "time of a call"
        assert (spread.least, spread.greatest) == (us(least), us(most))
        assert (spread.mean, spread.stdev) == (us((least + most) / 2), us((most - least) / 2))
        titles = [title for title, _ in found.ranks[rank].spreads()]
        assert titles[:-1] == [stage.title for stage in found.ranks[rank].stages]
    page = tmp_path / "page.html"
    words = ["inspect", str(file), "--skip", "0"]
    group([*words, "--html", str(page)], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split()[4:] for line in lines if line.startswith(" time of a call ")]
    fast, slow = (
        [cell for value in (s.mean, s.median, s.stdev, s.least, s.greatest, s.low, s.high)
         for cell in format_seconds(value).split()]
        for s in (rank.spreads()[-1][1] for rank in (found.fastest, found.slowest))
    )  # fmt: skip
    assert rows == [fast, slow]
    assert page.read_text(encoding="utf-8").count('<td class="l">time of a call</td>') == 2
    group([*words, "--json"], standalone_mode=False)
    (told,) = json.loads(capsys.readouterr().out)["series"]
    assert told["tree"]["ranks"][2]["call"]["max_s"] == us(113)


def test_each_part_of_the_tree_has_its_time(tmp_path):
    found = tree_findings(series(tmp_path, calls(3)))
    parts = found.ranks[3].parts()
    assert parts["messages between hosts (proxies)"] == us(60)
    assert parts["messages within hosts"] == us(8)
    assert parts["core"] == us(3)
    # Rank: 1 before it sends, 2 at its end. Node of rank 2: 2 down, 1 up, its departure is first.
    assert parts["host subtree, no arrival wait"] == us(3 + 3)
    assert parts["cluster-root subtree, no arrival wait"] == us(0)
    assert parts["total, no arrival wait"] == us(60 + 8 + 3 + 6)
    assert found.slowest.rank == 3
    assert found.fastest.rank == 0
    assert found.hotspots()[0].title.startswith("message between hosts, rank 2 on b")


@pytest.mark.parametrize("shape", ["nary", "quad", "binaryquad", "binary", "split"])
def test_upper_nodes_on_the_host_of_the_root_are_of_the_cluster_root(shape):
    """4 hosts × 8 ranks: the top of `binary` has contributors on its own host only."""
    topology = make_topology([4], [], slots={f"n{host}": 8 for host in range(4)})
    tree = make_tree(topology, shape_of(shape), shape)
    nodes = made.nodes_of_tree(tree)
    parts = tree_parts(nodes, topology.ranks)
    inner = {node.name: parts[32 + place] for place, node in enumerate(tree.nodes)}
    assert inner == {name: ROOT if name.startswith("root") else HOST for name in inner}
    assert {parts[number] for number in nodes if number < 32} == {LEAF}
    levels = sum(name.startswith("root") for name in _way(tree, 31))
    path = paths_of(nodes, topology.ranks)[31]
    told = {stage.level for stage, _ in path if stage.part == ROOT}
    assert told == set(range(levels))
    by_part = parts_of(path)
    assert by_part["cluster-root subtree, no arrival wait"] == 2 * (levels - 1)
    assert by_part["core"] == 1


def _way(tree, rank):
    """The nodes from a rank to the root."""
    way = [tree.parent[rank].name]
    while way[-1] in tree.parent:
        way.append(tree.parent[way[-1]].name)
    return way


def test_the_host_of_a_node_that_was_moved_is_another_one():
    """In `linked`, the tops of the hosts' subtrees are on the host of the cluster root."""
    topology = make_topology([4], [], slots={f"n{host}": 8 for host in range(4)})
    tree = make_tree(topology, shape_of("linked"), "linked")
    parts = tree_parts(made.nodes_of_tree(tree), topology.ranks)
    inner = {node.name: parts[32 + place] for place, node in enumerate(tree.nodes)}
    assert {inner[name] for name in ("n1", "n2", "n3", "root")} == {ROOT}
    assert inner["n0"] == HOST


def test_the_operand_that_came_last_went_through_the_cluster_root():
    """8 hosts × 4 ranks, binary: two levels below the root of the tree are between hosts."""
    topology = make_topology([8], [], slots={f"n{host}": 4 for host in range(8)})
    nodes = made.nodes_of_tree(make_tree(topology, shape_of("binary"), "binary"))
    for node in nodes.values():
        node.outs, node.down, node.giver = {}, None, None
    call = Call((0.0,) * 32, (20.0, *(1.0,) * 31), ((),) * 32)
    found = slowest_rank(call, nodes, paths_of(nodes, topology.ranks), topology.ranks)
    assert found.parts()["cluster-root subtree"] == 2.0


def test_parts_of_the_slowest_rank_are_those_of_calls_between_the_quartiles(tmp_path):
    """In calls in which rank 3 is late, it is not the slowest, but rank 2, which waits for it."""
    late = [made.two_levels(1e5 * (i + 1), {3: 40.0 * i if i < 6 else 9e4}) for i in range(8)]
    found = tree_findings(series(tmp_path, late))
    assert [one.seconds for one in found.slowest_ranks[:2]] == [us(77), us(73 + 40)]
    for one in found.slowest_ranks:
        *parts, (name, whole) = one.parts().items()
        assert (name, whole) == ("the call", one.seconds)
        assert sum(seconds for _, seconds in parts) == pytest.approx(whole)
        assert all(seconds > -1e-9 for _, seconds in parts)
    typical = typical_parts(found.slowest_ranks)
    wait = 40 * (2 + 3 + 4 + 5) / 4
    assert typical["the call"] == us(73 + wait)
    assert typical["arrival waits"] == us(5 + wait)
    assert typical["messages between hosts"] == us(60)
    assert typical["before and after the tree"] == us(0)


def test_messages_as_halves_and_by_clocks(tmp_path):
    """Clocks that are compared well tell the same as halves, where both ways take alike."""
    uneven = [replace(one) for one in calls(1)]
    found = series(tmp_path, uneven)
    nodes = nodes_of("allreduce", found.call(0))
    halves = dict(paths_of(nodes, found.hosts)[2])
    shown = dict(paths_of(nodes, found.hosts, by_clocks=True)[2])
    ways = [stage for stage in halves if stage.part == NETWORK and stage.what == MESSAGE]
    assert len(ways) == 2
    assert sum(halves[way] for way in ways) == us(60)
    assert sum(shown[way] for way in ways) == us(60)
    assert [shown[way] for way in ways] == [us(30), us(30)]


def test_a_late_rank_is_found_as_arrival_waits_of_the_others(tmp_path):
    found = tree_findings(series(tmp_path, calls(5, {1: 500.0})))
    waits = {
        rank: sum(one.mean(stage) for stage in one.stages if stage.what == ARRIVAL_WAIT)
        for rank, one in found.ranks.items()
    }
    assert waits[1] == us(0)
    assert all(waits[rank] > 400 * US for rank in (0, 2, 3))
    assert found.nodes[0].arrival_places[of_node(1)] == {2: 5}


def test_order_of_arrivals_and_departures(tmp_path):
    table = tree_findings(series(tmp_path, calls(4))).nodes[0].order_table()
    # Arrivals at the root: itself, 1, 2. Departures: 2, 1, itself.
    assert table == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    mixed = [*calls(3), *(replace(one) for one in calls(1, {1: 500.0}))]
    shares = tree_findings(series(tmp_path, mixed)).nodes[0].order_table()
    assert [sum(row) for row in shares] == [1, 1, 1]
    assert shares[0] == [0, 0, 1]
    assert shares[1] == [0.25, 0.75, 0]


def test_the_time_map_enters_the_core_at_0(tmp_path):
    found = tree_findings(series(tmp_path, calls(2)))
    points = found.ranks[3].timemap()
    assert (pytest.approx(0.0, abs=2e-9), 1.0) in points
    assert points[0] == (us(-(1 + 4 + 2 + 30)), 0.0)
    assert points[-1] == (us(3 + 30 + 1 + 4 + 2), 0.0)
    assert found.ranks[0].timemap()[:2] == [(0.0, 0.0), (0.0, 1.0)]
    assert points[-1][0] - points[0][0] == pytest.approx(found.ranks[3].total(waits=False))


def events(*told):
    return tuple(Event(kind, a, b, at * US) for kind, a, b, at in told)


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


def test_nodes_without_messages_tell_themselves():
    """Rank 1 serves node 7 for ranks 0 and 1; rank 0 the root, node 8, for rank 2 and node 7."""
    call = Call(
        (0.0,) * 3,
        (50 * US,) * 3,
        (
            events(
                (Kind.NODE_IN, 2, 8, 3),
                (Kind.NODE_IN, of_node(7), 8, 10),
                (Kind.NODE_OUT, of_node(7), 8, 12),
                (Kind.NODE_OUT, 2, 8, 13),
            ),
            events(
                (Kind.NODE_IN, 0, 7, 2),
                (Kind.NODE_IN, 1, 7, 4),
                (Kind.NODE_UP, 0, 7, 5),
                (Kind.NODE_DOWN, 0, 7, 20),
                (Kind.NODE_OUT, 0, 7, 21),
                (Kind.NODE_OUT, 1, 7, 23),
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
        ((Kind.NODE_IN, of_node(7), 8, 3), (Kind.NODE_IN, of_node(8), 7, 4)),
        ((Kind.NODE_OUT, of_node(7), 7, 3),),
        ((Kind.NODE_IN, of_node(9), 8, 3), (Kind.NODE_IN, 0, 7, 4)),
        ((Kind.NODE_IN, of_node(7), 8, 3), (Kind.NODE_IN, 0, 7, 2)),
        ((Kind.NODE_OUT, of_node(7), 8, 3), (Kind.NODE_OUT, 0, 7, 4)),
    ],
)
def test_nodes_that_are_no_tree_are_none(wrong):
    """Circles of two and of one, a contributor that nobody told, a node that hands on nothing, and
    one that gets nothing.
    """
    call = Call((0.0,) * 2, (50 * US,) * 2, (events((Kind.NODE_IN, 1, 8, 1), *wrong), ()))
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
            (Kind.NODE_IN, 0, 3, 1),
            (Kind.NODE_IN, of_node(2), 3, 6),
            (Kind.NODE_IN, of_node(1), 3, 20),
            (Kind.NODE_UP, 1, 3, 22),
        ),
        events((Kind.NODE_IN, 1, 1, 15), (Kind.NODE_UP, 0, 1, 16)),
        events((Kind.NODE_IN, 2, 2, 1), (Kind.NODE_UP, 0, 2, 2), (Kind.NODE_IN, of_node(3), 4, 45)),
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
        events((Kind.NODE_IN, 0, 0, 1), (Kind.NODE_UP, 0, 0, 2), (Kind.NODE_IN, of_node(3), 4, 30)),
        events((Kind.NODE_IN, of_node(0), 3, 8), (Kind.NODE_IN, 1, 3, 1), (Kind.NODE_UP, 0, 3, 9)),
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


def test_rings_and_segments_have_no_tree():
    around = Call(
        (0.0,) * 3,
        (40 * US,) * 3,
        tuple(
            events(
                made.sent((rank + 1) % 3, 1),
                made.received((rank - 1) % 3, 5),
                made.sent((rank + 1) % 3, 6),
                made.received((rank - 1) % 3, 9),
            )
            for rank in range(3)
        ),
    )
    assert nodes_of("allreduce", around) is None
    found = messages_of(around)
    assert [(one.step, one.sender) for one in found] == [(k, r) for k in range(2) for r in range(3)]
    assert {round((one.end - one.start) / US) for one in found} == {4, 3}


def test_phases_on_links_and_their_idle_time():
    topology = make_topology([2, 2], [0])
    hosts = topology.ranks
    first = (Kind.STARTED, 2, 0, 0), (Kind.ARRIVED, 0, 0, 10)
    second = (Kind.STARTED, 3, 1, 30), (Kind.ARRIVED, 1, 1, 40)
    call = Call(
        (0.0,) * 4,
        (40 * US,) * 4,
        (events(first[0]), events(second[0]), events(first[1]), events(second[1])),
    )
    assert [(one.sender, one.receiver, one.step) for one in messages_of(call)] == [
        (0, 2, 0),
        (1, 3, 1),
    ]
    busiest, *others = link_uses(call, hosts, topology)
    assert busiest.messages == 2
    assert busiest.idle == pytest.approx(0.5)
    assert all(use.messages == 1 for use in others)
    assert all(use.idle == pytest.approx(0.75) for use in others)


@pytest.mark.parametrize(
    ("hosts", "stranger"),
    [
        (("a", "b"), ""),
        (("A.cluster.local", "10.0.0.2"), ""),
        (("a", "elsewhere"), "no host elsewhere; messages from and to it count on no link"),
    ],
)
def test_hosts_of_the_events_are_found_as_the_library_finds_its_own(
    tmp_path, capsys, hosts, stranger
):
    topology = tmp_path / "two.yaml"
    topology.write_text(
        "name: two\ndefaults: {bandwidth: 1Gbit}\nswitches:\n  s0: {hosts: [a, b]}\n"
        "hosts:\n  a: {slots: 2}\n  b: {slots: 2, address: 10.0.0.2}\n"
    )
    one = made.MadeCall([0.0] * 4, [100.0] * 4, BY_LEADERS)
    world = replace(made.TWO_HOSTS, hosts=tuple(hosts[number] for number in (0, 0, 1, 1)))
    made.write(tmp_path / "events", "alltoall/hierarchical", [one], world)
    words = ["inspect", "--skip", "0", "--topology", topology, tmp_path / "events"]
    group([str(word) for word in words], standalone_mode=False)
    told = capsys.readouterr()
    assert ("a → s0" in told.out) == (not stranger)
    assert stranger in told.err
    assert bool(told.err) == bool(stranger)


#: A gather on each host, a phase of three segments between hosts with a token back, and a scatter.
#: Ranks 0 and 1 are on one host. The last segment leaves after the others have arrived.
BY_LEADERS = (
    (
        made.received(1, 10),
        (Kind.STARTED, 2, 0, 20), made.sent(2, 20), made.sent(2, 25), made.sent(2, 52),
        (Kind.RECEIVED, 2, 3, 60), (Kind.ARRIVED, 2, 0, 70), made.received(2, 70),
        made.sent(1, 90),
    ),
    (made.sent(0, 5), made.received(0, 100)),
    (
        made.received(3, 15),
        (Kind.STARTED, 0, 0, 30), made.sent(0, 30),
        made.received(0, 40), made.received(0, 50), (Kind.ARRIVED, 0, 0, 50),
        (Kind.SENT, 0, 3, 50), made.received(0, 58), made.sent(3, 80),
    ),
    (made.sent(2, 0), made.received(2, 85)),
)  # fmt: skip


def test_messages_outside_of_phases_count_once_and_tokens_do_not():
    call = Call((0.0,) * 4, (100 * US,) * 4, tuple(events(*own) for own in BY_LEADERS))
    found = messages_of(call)
    assert [(one.sender, one.receiver, one.step) for one in found] == [
        (3, 2, OUTSIDE),
        (1, 0, OUTSIDE),
        (0, 2, 0),
        (2, 0, 0),
        (2, 3, OUTSIDE),
        (0, 1, OUTSIDE),
    ]
    assert [(us(one.start / US), us(one.end / US)) for one in found][2] == (us(20), us(50))


def test_messages_of_other_parts_of_a_composition_are_outside_of_phases():
    """A message before the phases and one after them, between ranks that have one in a phase."""
    told = (
        (made.sent(1, 5), (Kind.PART, 3, 1, 10), (Kind.STARTED, 1, 0, 20), made.sent(1, 20),
         (Kind.PART, -1, 1, 40), made.sent(1, 50)),
        (made.received(0, 8), made.received(0, 30), (Kind.ARRIVED, 0, 0, 30),
         made.received(0, 60)),
    )  # fmt: skip
    call = Call((0.0,) * 2, (100 * US,) * 2, tuple(events(*own) for own in told))
    assert [one.step for one in messages_of(call)] == [OUTSIDE, 0, OUTSIDE]


def test_what_is_outside_of_phases_is_no_idle_time(tmp_path, capsys):
    one = made.MadeCall([0.0] * 4, [100.0] * 4, BY_LEADERS)
    name = "alltoall/hierarchical"
    found = step_findings(series(tmp_path, [one], routine=name))
    assert found.has_phases
    # Rank 0: 5 to 10, 20 to 70, 90 to 100. Rank 2: 0 to 15, 20 to 70, 80 to 85.
    assert found.idle == pytest.approx((0.35, 0.85, 0.30, 0.80), abs=1e-6)
    assert [(step.title, step.messages) for step in found.steps] == [("outside", 4), ("0", 2)]
    assert [step["step"] for step in found.to_json()["steps"]] == [None, 0]
    file = made.write(tmp_path / "events", name, [one], made.TWO_HOSTS)
    page = tmp_path / "page.html"
    words = ["inspect", str(file), "--skip", "0", "--html", str(page)]
    group(words, standalone_mode=False)
    assert re.search(r"^ outside +4 ", capsys.readouterr().out, re.MULTILINE)
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count("<title>outside of phases: rank ") == 2 * 4
    assert "<tr><td>outside</td><td>4</td>" in drawn


def test_tags_of_messages_without_data_are_those_of_the_library():
    header = (TEMPLATES / "libcoll/coll.h").read_text(encoding="utf-8")
    tags = dict(re.findall(r"COLL_TAG_(\w+) = (\d+)", header))
    assert (int(tags["TOKEN"]), int(tags["DUMMY"])) == NO_DATA


def test_idle_time_of_a_link_is_named_as_what_it_is(tmp_path):
    """The first message begins after 10 of 100 µs, and the last one ends after 50."""
    told = ((made.sent(2, 10), made.sent(2, 40)), (), (made.received(0, 20), made.received(0, 50)))
    one = made.MadeCall([0.0] * 4, [100.0] * 4, (*told, ()))
    topology = make_topology([2], [], slots={"n0": 2, "n1": 2})
    world = replace(made.TWO_HOSTS, hosts=topology.ranks)
    file = made.write(tmp_path / "events", "alltoall/ring", [one], world)
    drawn = render_inspection(looks_at(file, skip=0, topology=topology))
    told = "n0 → s0: idle 50% of the time from the first message to the last</title>"
    assert drawn.count(told) == 2


def test_covered_time_is_the_union():
    assert covered([(0, 4), (2, 3), (3, 5), (7, 8)]) == 6
    assert covered([]) == 0


def test_text_json_and_page_of_two_files(tmp_path, capsys):
    files = []
    for name, late in (("one", None), ("two", {1: 300.0})):
        files.append(
            str(made.write(tmp_path / name, "allreduce/tree", calls(14, late), made.TWO_HOSTS))
        )
    page = tmp_path / "page.html"
    group(["inspect", *files, "--html", str(page)], standalone_mode=False)
    text = capsys.readouterr().out
    assert "slowest rank (3)" in text
    assert "message between hosts 0, down" in text
    group(["inspect", *files, "--json"], standalone_mode=False)
    form = json.loads(capsys.readouterr().out)
    assert [one["file"] for one in form["series"]] == ["one", "two"]
    assert all(one["calls"] == 4 for one in form["series"])
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count("<svg") == 2 + 1 + 2
    for words in PAGE:
        assert drawn.count(words) == 2, words
    assert render_inspection(looks_at(tmp_path / "one")) == render_inspection(
        looks_at(tmp_path / "one")
    )


def test_text_and_page_have_the_orders_of_each_contributor(tmp_path, capsys):
    """In one of four calls, rank 1 comes after the node of rank 2."""
    mixed = [*calls(3), made.two_levels(9000.0, {1: 500.0})]
    file = str(made.write(tmp_path / "events", "allreduce/tree", mixed, made.TWO_HOSTS))
    page = tmp_path / "page.html"
    group(["inspect", file, "--skip", "0", "--html", str(page)], standalone_mode=False)
    text = " ".join(capsys.readouterr().out.split())
    drawn = re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))
    for word, rows in ORDERS.items():
        assert f"order of {word}s at the node of rank 0 contributor 1. {word[:3]}" in text
        told = " ".join(f"{name} {' '.join(f'{share}%' for share in row)}" for name, row in rows)
        assert told in text
        head = "".join(f"<th>{place}. {word}</th>" for place in (1, 2, 3))
        assert f'<th class="l">contributor</th>{head}' in drawn
        for name, row in rows:
            cells = re.search(rf'<th class="l">{name}</th>((?:<td[^<]*</td>)+)', drawn)
            assert cells is not None
            drawn = drawn[: cells.start()] + drawn[cells.end() :]
            assert re.findall(r">([\d.]+) %<", cells[1]) == row
    assert "<summary>Node of rank 0 on a, 3 contributors</summary>" in drawn
    assert "<summary>Node of rank 2 on b, 2 contributors</summary>" in drawn


#: Of the root: shares in percent by places.
ORDERS = {
    "arrival": [
        ("rank 0", ["100.0", "0.0", "0.0"]),
        ("rank 1", ["0.0", "75.0", "25.0"]),
        ("node of rank 2", ["0.0", "25.0", "75.0"]),
    ],
    "departure": [
        ("node of rank 2", ["100.0", "0.0", "0.0"]),
        ("rank 1", ["0.0", "100.0", "0.0"]),
        ("rank 0", ["0.0", "0.0", "100.0"]),
    ],
}


def test_a_wide_node_has_as_many_places_in_the_text_as_fit(tmp_path, capsys):
    ranks = range(1, 30)
    root = (*(made.received(r, 10 + r) for r in ranks), *(made.sent(r, 90 + r) for r in ranks))
    others = ((made.sent(0, 1), made.received(0, 200)) for _ in ranks)
    wide = made.MadeCall([0.0] * 30, [300.0] * 30, [root, *others])
    world = made.World(("a",) * 30, (0.0,) * 30)
    file = str(made.write(tmp_path / "events", "allreduce/star", [wide], world))
    group(["inspect", file, "--skip", "0"], standalone_mode=False)
    text = capsys.readouterr().out
    assert text.count("… of 30 places and 30 rows: see --json") == 3
    assert text.count("12. dep") == 2
    assert "13. dep" not in text
    (second,) = re.findall(r"^ 2\. arrival +(.*?) *$", text, re.MULTILINE)
    assert second.split() == ["100.0%"] + ["0.0%"] * 11


@pytest.mark.parametrize(("name", "title"), [(3, "rank 3"), (of_node(3), "rank 3")])
def test_a_rank_that_is_a_node_of_its_own_is_called_a_rank(tmp_path, name, title):
    found = tree_findings(series(tmp_path, calls(1)))
    assert found.contributor_title(name) == title
    assert found.contributor_title(of_node(9)) == "node 9"
    numbered = replace(found, nodes={9: found.nodes[2]})
    assert numbered.contributor_title(of_node(9)) == "node 9 of rank 2"


def test_the_time_of_a_node_is_that_of_ranks_whose_path_goes_through_it(tmp_path):
    """Ranks 2 and 3 pass node 2: both its latencies of 2 and 1; rank 2 ends 2 later there, and rank
    3 has messages of 4 and 4.
    """
    found = tree_findings(series(tmp_path, calls(3)))
    seconds = found.node_seconds()
    assert seconds[2] == pytest.approx(us((3 + 2 + 3 + 8) / 2))
    assert max(seconds, key=seconds.__getitem__) == 0


@pytest.mark.parametrize("late", [{}, {3: 40.0}, {0: 40.0}])
def test_down_path_and_up_path_add_up_to_the_total(tmp_path, late):
    """The core belongs to the down-path, as in the columns of Table 3 of Bongo et al."""
    found = tree_findings(series(tmp_path, [made.two_levels(1000.0, late)]))
    for one in found.ranks.values():
        parts = one.parts()
        up, core = parts["up-path"], parts["core"]
        assert parts["down-path, with arrival wait"] + up == pytest.approx(
            parts["total, with arrival wait"]
        )
        assert parts["down-path, no arrival wait"] + up == pytest.approx(
            parts["total, no arrival wait"]
        )
        assert core == pytest.approx(us(3))
    rank3 = found.ranks[3].parts()
    assert rank3["down-path, no arrival wait"] == pytest.approx(us(1 + 4 + 2 + 30 + 3))
    assert rank3["up-path"] == pytest.approx(us(30 + 1 + 4 + 2))


def test_ranks_are_told_apart_by_messages_between_hosts(tmp_path):
    found = tree_findings(series(tmp_path, calls(3)))
    ends = found.by_messages()
    assert list(ends) == [f"{n} message{s}, {e}" for n, s in ((0, "s"), (1, "")) for e in ENDS]
    assert {ends[name].rank for name in ends if name.startswith("0")} == {0, 1}
    assert {ends[name].rank for name in ends if name.startswith("1")} == {2, 3}
    for count in ("0 messages", "1 message"):
        fastest, slowest = (ends[f"{count}, {end}"].total(waits=False) for end in ENDS)
        assert fastest <= slowest


def a_bcast():
    """From rank 0 on one host to rank 2 on the other, and from each to the other rank there."""
    told = (
        (made.sent(2, 10), made.sent(1, 12)),
        (made.received(0, 20),),
        (made.received(0, 40), made.sent(3, 41)),
        (made.received(2, 45),),
    )
    return made.MadeCall([0.0] * 4, [15.0, 22.0, 43.0, 47.0], told)


def test_messages_of_a_bcast_between_hosts_are_on_the_way_from_the_root(tmp_path):
    found = tree_findings(series(tmp_path, [a_bcast()], routine="bcast/tree"))
    ends = found.by_messages()
    assert {ends[name].rank for name in ends if name.startswith("0")} == {0, 1}
    assert {ends[name].rank for name in ends if name.startswith("1")} == {2, 3}


def test_a_rank_whose_way_differs_by_call_counts_as_in_most_calls(tmp_path):
    """In two of five calls, the host of ranks 2 and 3 has the root."""
    there, back = made.two_levels(1000.0), made.two_levels(0.0)
    swapped = [
        [(kind, (a + 2) % 4, b, at) for kind, a, b, at in back.events[(rank + 2) % 4]]
        for rank in range(4)
    ]
    ends = [back.ended[(rank + 2) % 4] for rank in range(4)]
    other = made.MadeCall(back.begun, ends, swapped)
    found = tree_findings(series(tmp_path, [other, there, other, there, there]))
    assert found.ranks[0].between == found.ranks[1].between == [1, 0, 1, 0, 0]
    assert [found.ranks[rank].messages for rank in range(4)] == [0, 0, 1, 1]


ENDS = ("fastest", "slowest")

#: What the page has of each file, as the text has: Tables 1 to 4, nodes, hotspots.
PAGE = (
    "Order of arrivals and departures at the node of rank 0",
    "Stages of the fastest rank, 0",
    "Stages of the slowest rank, 3",
    "Parts of the tree",
    "By messages between hosts on the way<",
    "<th>1 message, slowest (3)</th>",
    "<th>wrapper</th>",
    "Hotspots",
)
