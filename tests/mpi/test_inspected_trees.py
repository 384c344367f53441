"""The nodes in the events of configured trees (TRACE=1), against the trees' files."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain

import numpy as np
import pytest

from stagegen.catalogue import load_catalogue, with_native
from stagegen.cli._reconfigure_live import seconds_by_name
from stagegen.generate import run_make
from stagegen.inspection.findings import tree_findings
from stagegen.inspection.nodes import nodes_of, of_node
from stagegen.inspection.parts import typical_parts
from stagegen.inspection.series import series_of
from stagegen.inspection.stages import ROOT_MESSAGE
from stagegen.inspection.trace import EventType, read_trace
from stagegen.library import write_library
from stagegen.parts.trees import algorithm_of, root_of
from stagegen.trees import ConfiguredTree, Node, make_tree, ordered, shape_of
from tests.mpi import support
from tests.trees.made import random_tree

pytestmark = pytest.mark.mpi

RANKS, SLOTS, CALLS, SKIPPED = 5, 3, 12, 2
TOPOLOGY = support.cluster(RANKS, SLOTS)
MESSAGES, SHARED = "messages", "shared"
LONGEST = "t" * 80

#: Rank 2, which comes late below, is the first contributor of rank 0, which shares memory with it.
BY_HAND = {
    "one": [("root", 0, (2, 1, 4, 3, 0))],
    "two": [
        ("low", 0, (2, 1, 0)),
        ("other", 3, (4, 3)),
        ("root", 0, ("low", "other")),
    ],
    "moved": [
        ("low", 0, (2, 1, 0)),
        ("other", 3, (4, 3)),
        ("root", 4, ("low", "other")),
    ],
}


@lru_cache
def trees() -> Mapping[str, ConfiguredTree]:
    chance = random.Random(8)
    made = [random_tree(chance, RANKS, name) for name in ("t0", "t1", LONGEST)]
    made += [make_tree(TOPOLOGY, shape_of(name), name) for name in ("nary", "binary")]
    made += [
        ConfiguredTree(name, ordered(Node(*node) for node in nodes), RANKS)
        for name, nodes in BY_HAND.items()
    ]
    return {tree.name: tree for tree in made}


@lru_cache
def program(way: str) -> str:
    """The program of calls, with a library of the trees that hand over data on hosts in one way."""
    whole = load_catalogue(added=[root_of(trees().values(), TOPOLOGY)])
    mine = [a for a in whole.algorithms if a.name.startswith("configured_tree_")]
    catalogue = support.part(with_native(whole, mine), whole)
    folder = support.scratch() / f"trees-{way}"
    write_library(folder, TOPOLOGY, catalogue, support.decision(TOPOLOGY, catalogue), {})
    if way == SHARED:
        routines = folder / "src" / "routines.c"
        routines.write_text(routines.read_text().replace("{.on_host = 1}", "{.on_host = 2}"))
    run_make(folder, support.toolchain(), variables=("TRACE=1",))
    made = support.scratch() / f"calls-{way}"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-DCOLL_TRACED", "-pthread"]
    includes = [f"-I{folder / name}" for name in ("include", "src", "check", "events")]
    words = [support.toolchain().mpicc, *flags, *includes, str(support.HERE / "traced.c")]
    subprocess.run([*words, "-o", str(made), str(folder / "libcoll-trace.a")], check=True)
    return str(made)


def series(folder, way, collective, tree, *words, hosts=None, size=4):
    file = folder / "events"
    routine = f"{collective}/{algorithm_of(tree.name)}"
    settings = {"LIBCOLL_FORCE": routine.replace("/", "="), "LIBCOLL_EVENTS": str(file)}
    settings |= support.MEMORY if way == SHARED else {}
    size = 0 if collective == "barrier" else size
    command = [program(way), collective, str(CALLS), str(size), *words]
    done = support.run(RANKS, *command, variables=settings, hosts=hosts)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = [
        one for one in series_of(read_trace(file), SKIPPED).series if one.routine == routine
    ]
    assert len(found) == CALLS - SKIPPED
    return found


def names_of(tree: ConfiguredTree, node) -> set[int]:
    """The contributors of a node by its events: a rank is its own node if it is elsewhere."""
    number = {one.name: RANKS + place for place, one in enumerate(tree.nodes)}
    return {
        of_node(number[one])
        if isinstance(one, str)
        else (one if one == node.worker else of_node(one))
        for one in node.contributors
    }


def stages_add_up(one) -> bool:
    """Whether the stages of each rank take as long as its calls, in the mean."""
    means = (one.ended - one.begun).mean(axis=0)
    return all(
        stages.total(waits=True) == pytest.approx(float(means[rank]), rel=0.05, abs=3e-5)
        for rank, stages in tree_findings(one).ranks.items()
    )


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
@pytest.mark.parametrize("name", ["t0", "t1", LONGEST, "nary", "binary"])
def test_the_nodes_are_those_of_the_file_and_stages_add_up(tmp_path, way, name):
    tree = trees()[name]
    one = series(tmp_path, way, "allreduce", tree)
    for number in range(len(one)):
        call = one.call(number)
        found = nodes_of("allreduce", call)
        for place, node in enumerate(tree.nodes):
            told = found[RANKS + place]
            assert told.rank == node.worker
            assert set(told.ins) == names_of(tree, node)
            above = tree.parent.get(node.name)
            parent = None if above is None else RANKS + tree.nodes.index(above)
            assert told.parent == parent
            assert (told.up is None) == (above is None)
        for rank in range(RANKS):
            (start,) = [n for n in found.values() if rank in n.ins]
            assert start.rank == rank
            assert rank in start.outs
    findings = tree_findings(one)
    assert findings.treeless == 0
    # A rank that loses its processor between two stages has time that is in none: one run of four
    # is not disturbed.
    runs = chain([one], (series(tmp_path, way, "allreduce", tree) for _ in range(3)))
    assert any(stages_add_up(run) for run in runs)
    seconds = findings.node_seconds()
    assert all(seconds.get(RANKS + place, 0) >= 0 for place in range(len(tree.nodes)))
    assert sum(seconds.values()) > 0


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
@pytest.mark.parametrize("size", [1008, 4096, 20000])
def test_nodes_are_those_of_the_file_at_all_sizes(tmp_path, way, size):
    """Up to 1,008 bytes in shared memory, above in messages, above 8 KiB received one by one."""
    tree = trees()["binary"]
    one = series(tmp_path, way, "allreduce", tree, size=size)
    for number in range(len(one)):
        found = nodes_of("allreduce", one.call(number))
        assert found is not None
        for place, node in enumerate(tree.nodes):
            told = found[RANKS + place]
            assert set(told.ins) == set(told.outs) == names_of(tree, node)


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
@pytest.mark.parametrize("collective", ["barrier", "bcast", "reduce"])
def test_other_collectives_have_events_of_the_way_that_they_use(tmp_path, way, collective):
    tree = trees()["nary"]
    one = series(tmp_path, way, collective, tree)
    found = nodes_of(collective, one.call(0))
    ways = {"barrier": ("ins", "outs"), "bcast": ("outs",), "reduce": ("ins",)}[collective]
    for place, node in enumerate(tree.nodes):
        for side in ("ins", "outs"):
            names = set(getattr(found[RANKS + place], side))
            assert names == (names_of(tree, node) if side in ways else set())
    assert tree_findings(one).treeless == 0


#: A tree, and the rank of the call's root: on another host than the tree's root and on its own
#: host; a rank that does no work, and one that does.
ELSEWHERE = [("two", 4), ("two", 2), ("two", 3), ("moved", 0), ("moved", 3), ("t0", 4), ("t1", 0)]
ROOTED = ["reduce", "bcast"]


def rooted(folder, way, collective, tree, root, late=-1):
    words = str(late), str(round(DELAY * 1e6)), str(root)
    one = series(folder, way, collective, tree, *words, hosts=TOPOLOGY.ranks)
    assert one.hosts == TOPOLOGY.ranks
    return one


def root_stage(findings, rank):
    (stage,) = [one for one in findings.ranks[rank].stages if one.what == ROOT_MESSAGE]
    return stage


def adds_up_with_the_roots_message(one, root) -> bool:
    """Whether the stages of the data's way take as long as the data, in the mean.

    In a reduce, it ends with the call of the root; in a bcast, it begins there.
    """
    findings = tree_findings(one)
    ranks = [root] if one.collective == "reduce" else range(RANKS)
    times = {rank: (one.ended[:, rank] - one.begun[:, root]).mean() for rank in ranks}
    return all(
        findings.ranks[rank].total(waits=True) == pytest.approx(float(time), rel=0.05, abs=3e-5)
        for rank, time in times.items()
    )


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
@pytest.mark.parametrize("collective", ROOTED)
@pytest.mark.parametrize(("name", "root"), ELSEWHERE)
def test_a_call_whose_root_is_not_that_of_the_tree_has_the_message_between_them(
    tmp_path, way, collective, name, root
):
    tree = trees()[name]
    if tree.root.worker == root:
        root = (root + 1) % RANKS
    one = rooted(tmp_path, way, collective, tree, root)
    assert one.root == root
    up, side = ("parent", "ins") if collective == "reduce" else ("giver", "outs")
    top, beyond = RANKS + len(tree.nodes) - 1, RANKS + len(tree.nodes)
    for number in range(len(one)):
        found = nodes_of(collective, one.call(number))
        assert [node.number for node in found.values() if getattr(node, up) is None] == [beyond]
        assert [node.number for node in found.values() if node.is_below_calls_root] == [top]
        assert getattr(found[top], up) == beyond
        assert found[top].rank == tree.root.worker
        assert found[beyond].rank == root
        assert of_node(top) in getattr(found[beyond], side)
    runs = chain([one], (rooted(tmp_path, way, collective, tree, root) for _ in range(3)))
    assert any(adds_up_with_the_roots_message(run, root) for run in runs)
    findings = tree_findings(one)
    assert findings.treeless == 0
    for rank, stages in findings.ranks.items():
        own = [stage for stage in stages.stages if stage.what == ROOT_MESSAGE]
        assert [stage.node for stage in own] in ([top], [])
        assert own or collective == "bcast"
        assert (rank == tree.root.worker) <= bool(own)
    stage = root_stage(findings, tree.root.worker)
    between = one.hosts[root] != one.hosts[tree.root.worker]
    end = "to" if collective == "reduce" else "from"
    where = "message between hosts" if between else "message within a host"
    assert stage.title == f"{where} {end} the call's root"


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
@pytest.mark.parametrize("collective", ROOTED)
@pytest.mark.parametrize(("name", "root", "late"), [("one", 4, 4), ("two", 4, 1), ("moved", 0, 0)])
def test_the_slowest_rank_waits_for_the_late_one_though_the_roots_differ(
    tmp_path, way, collective, name, root, late
):
    """In a reduce the root waits for any late rank; in a bcast all wait for the root."""
    late = root if collective == "bcast" else late
    one = rooted(tmp_path, way, collective, trees()[name], root, late)
    parts = typical_parts(tree_findings(one).slowest_ranks)
    assert parts["the call"] > 0.8 * DELAY
    assert parts["arrival waits"] > 0.8 * DELAY
    assert abs(parts["before and after the tree"]) < 0.1 * parts["the call"]


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
@pytest.mark.parametrize(("name", "root"), [("two", 4), ("two", 2), ("moved", 0)])
def test_data_of_a_bcast_waits_for_the_tree_s_root_in_the_message_to_it(tmp_path, way, name, root):
    tree = trees()[name]
    late = tree.root.worker
    one = rooted(tmp_path, way, "bcast", tree, root, late)
    findings = tree_findings(one)
    stage = root_stage(findings, late)
    assert np.median(findings.ranks[late].stages[stage]) > 0.8 * DELAY
    parts = typical_parts(findings.slowest_ranks)
    between = one.hosts[root] != one.hosts[late]
    assert parts["messages between hosts" if between else "messages within hosts"] > 0.8 * DELAY
    assert abs(parts["before and after the tree"]) < 0.1 * parts["the call"]
    top = RANKS + len(tree.nodes) - 1
    seconds = findings.node_seconds()
    assert max(seconds, key=seconds.__getitem__) == top
    assert top + 1 in seconds
    named = seconds_by_name(tree, seconds)
    assert list(named) == [node.name for node in tree.nodes]
    assert named["root"] == seconds[top]


def test_where_all_share_memory_no_message_is_sent(tmp_path):
    """Messages go only between hosts; the rest is known from events of nodes."""
    tree = trees()["nary"]
    one = series(tmp_path, SHARED, "allreduce", tree)
    hosts = TOPOLOGY.ranks
    pairs = {
        (rank, event.a)
        for rank, events in enumerate(one.call(3).events)
        for event in events
        if event.type is EventType.SENT
    }
    assert pairs
    assert all(hosts[rank] != hosts[peer] for rank, peer in pairs)


DELAY = 0.1
"""Seconds; the data of all others is there after much less, also if ranks wait for a processor."""

RUNS = 3
"""A machine may keep any rank from a processor for longer than DELAY, in one call of a run."""


def runs_with_late_rank(folder, way, name, late):
    """What is found at a tree's nodes, by their names, in each of RUNS runs with a late rank."""
    tree = trees()[name]
    for _ in range(RUNS):
        one = series(folder, way, "allreduce", tree, str(late), str(round(DELAY * 1e6)))
        found = tree_findings(one).nodes
        yield {node.name: found[number_of(tree, node.name)] for node in tree.nodes}


def number_of(tree: ConfiguredTree, name: str) -> int:
    return RANKS + [node.name for node in tree.nodes].index(name)


def places_of(node, contributor) -> list[int]:
    """The places at which a contributor arrived; one, if it is the same in every call."""
    return sorted(node.arrival_places[contributor])


def waits(node, name):
    return np.median(node.arrival_waits[name])


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
def test_a_late_rank_arrives_last_though_it_is_the_first_of_its_node(tmp_path, way):
    late = of_node(2)
    for found in runs_with_late_rank(tmp_path, way, "one", 2):
        root = found["root"]
        assert set(root.contributors) == {late, of_node(1), of_node(4), of_node(3), 0}
        for name in root.contributors:
            assert waits(root, name) > 0.8 * DELAY if name != late else waits(root, name) == 0
        if places_of(root, late) == [4]:
            return
    pytest.fail(f"in each of {RUNS} runs, the late rank was not the last in some call")


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
def test_a_message_arrives_when_it_comes_while_its_rank_waits_at_a_node_below(tmp_path, way):
    ours, theirs = (of_node(number_of(trees()["two"], name)) for name in ("low", "other"))
    for found in runs_with_late_rank(tmp_path, way, "two", 2):
        low, root = found["low"], found["root"]
        assert waits(root, theirs) > 0.8 * DELAY
        assert waits(root, ours) == 0
        if places_of(low, of_node(2)) == [2] and places_of(root, theirs) == [0]:
            return
    pytest.fail(f"in each of {RUNS} runs, an order was another one in some call")


@pytest.mark.parametrize("way", [MESSAGES, SHARED])
def test_the_rank_of_a_node_that_is_late_itself_arrives_last(tmp_path, way):
    """Messages wait for it outside of what it sees; what is written into memory has its time."""
    found = next(runs_with_late_rank(tmp_path, way, "one", 0))
    root = found["root"]
    places = root.arrival_places[0]
    assert places[4] == max(places.values())
    for name in (1, 2) if way == SHARED else ():
        assert waits(root, of_node(name)) > 0.8 * DELAY
