"""What is found in calls whose times are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.errors import InputError
from stagegen.inspection.findings import tree_findings
from stagegen.inspection.nodes import nodes_of, of_node
from stagegen.inspection.parts import parts_of, slowest_rank, typical_parts
from stagegen.inspection.series import Call
from stagegen.inspection.stages import (
    ARRIVAL_WAIT,
    HOST,
    LEAF,
    MESSAGE,
    NETWORK,
    ROOT,
    paths_of,
    tree_parts,
)
from stagegen.inspection.trace import read_trace
from stagegen.trees import make_tree, shape_of
from tests.inspection import made
from tests.inspection.reading import US, calls, series, us
from tests.strategies import make_topology

ENDS = ("fastest", "slowest")


def test_a_trace_of_another_version_is_refused_with_what_to_do(tmp_path):
    file = made.write(tmp_path / "events", "allreduce/tree", calls(1), made.TWO_HOSTS)
    data = file.read_bytes()
    file.write_bytes(data[:8] + b"\1" + data[9:])
    with pytest.raises(InputError, match="its version is 1, and 2 is needed; make the library"):
        read_trace(file)


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


def test_halves_and_good_clocks_give_equal_ways_the_same_time(tmp_path):
    """If both ways take equally long, good clocks give the same as half of there and back."""
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


def test_a_table_holds_the_order_of_arrivals_and_departures(tmp_path):
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
        [(type_, (a + 2) % 4, b, at) for type_, a, b, at in back.events[(rank + 2) % 4]]
        for rank in range(4)
    ]
    ends = [back.ended[(rank + 2) % 4] for rank in range(4)]
    other = made.MadeCall(back.begun, ends, swapped)
    found = tree_findings(series(tmp_path, [other, there, other, there, there]))
    assert found.ranks[0].between == found.ranks[1].between == [1, 0, 1, 0, 0]
    assert [found.ranks[rank].messages for rank in range(4)] == [0, 0, 1, 1]
