"""``stagegen reconfigure`` with real jobs on this machine: what it builds, times and traces."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from stagegen.cli import _reconfigure_live
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._reconfigure_live import CALLS, SKIPPED, Bed, repetitions_of
from stagegen.inspection.parts import CALL, typical_parts, typical_stages
from stagegen.parts.trees import algorithm_of
from stagegen.topology import load_topology
from stagegen.trees import make_tree, read_tree, shape_of, tree_yaml
from stagegen.tune.reconfigure_steps import MESSAGES, SHARED, Setup
from tests.cli.here import stagegen
from tests.cli.two_by_two import CLUSTER
from tests.library.schemas import validate


@pytest.fixture
def cluster(tmp_path):
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return file


def bed_of(cluster, collective, size):
    topology = load_topology(cluster)
    launcher, toolchain, _ = launcher_and_toolchain(topology, cluster, "local", None)
    return Bed(topology, cluster.parent / "build", launcher, toolchain, collective, size, 3)


def setup(bed, shape, on_host=MESSAGES):
    return Setup(make_tree(bed.topology, shape_of(shape), shape), on_host)


@pytest.mark.parametrize(
    ("seconds", "least", "wanted"),
    [
        (1e-6, 9, 200),  # the most
        (5e-3, 9, 200),
        (0.02, 9, 50),
        (0.1, 9, 10),
        (0.2, 9, 9),  # the least, however long they take
        (9.0, 3, 3),
        (1e-6, 300, 300),
        (0.0, 9, 200),
    ],
)
def test_short_calls_are_repeated_until_a_launch_lasts_a_second(seconds, least, wanted):
    assert repetitions_of(seconds, least) == wanted


@pytest.mark.mpi
def test_setups_are_timed_in_turn(cluster):
    bed = bed_of(cluster, "allreduce", 4)
    setups = [setup(bed, "nary"), setup(bed, "flat"), setup(bed, "nary", SHARED)]
    with closing(bed.look(setups)) as live:
        looks = live.look()
        launched = live.launch(1, [2, 0])
        assert not live.is_representative
    assert [len(one) >= _reconfigure_live.LOOKS for one in looks] == [True] * 3
    assert [len(one) >= bed.repetitions for one in launched] == [True] * 2
    assert all(seconds > 0 for one in (*looks, *launched) for seconds in one)
    log = (bed.folder / "session" / "measurements.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in log]
    names = ["configured_tree_t0:on_host=1", "configured_tree_t1:on_host=1",
             "configured_tree_t0:on_host=2"]  # fmt: skip
    checks = {one["routine"]: one["wrong"] for one in records if one["kind"] == "check"}
    assert checks == dict.fromkeys(names, 0), "the same tree is one routine"
    _, single, looked, *_, last = [one for one in records if one["kind"] == "measurement"]
    assert (last["launch"], set(last["seconds"])) == (1, {names[2], names[0]})
    (fastest,) = min(single["seconds"].values())
    for one, least in ((looked, _reconfigure_live.LOOKS), (last, bed.repetitions)):
        repetitions = len(one["seconds"][names[0]])
        seconds = repetitions * one["calls"] * len(one["seconds"]) * fastest
        assert repetitions == least or seconds <= _reconfigure_live.LAUNCH_SECONDS


@pytest.mark.mpi
def test_events_show_what_nodes_take_and_where_two_trees_differ(cluster, monkeypatch):
    """The flat tree has no subtree of a host, and the other one has: each has its own calls."""
    monkeypatch.setattr(_reconfigure_live, "EXPLAINING", 1)
    bed = bed_of(cluster, "allreduce", 4)
    nary, flat = setup(bed, "nary"), setup(bed, "flat")
    nodes = bed.nodes(nary)
    assert nodes.measured
    assert nodes.seconds.keys() == {node.name for node in nary.tree.nodes}
    assert all(seconds > 0 for seconds in nodes.seconds.values())
    assert sum(nodes.parts.values()) == pytest.approx(2 * nodes.parts[CALL])
    first, last = bed.explain((nary, flat))
    assert len(first) == len(last) == CALLS - SKIPPED
    stages = typical_stages(first), typical_stages(last)
    assert ["host subtree level 0 down latency" in one for one in stages] == [True, False]
    for calls, of_stages in ((first, stages[0]), (last, stages[1])):
        assert of_stages[CALL] == typical_parts(calls)[CALL] > 0
        assert sum(of_stages.values()) == pytest.approx(2 * of_stages[CALL])


@pytest.mark.mpi
def test_barriers_have_no_size_so_each_tree_has_a_job(cluster, monkeypatch):
    monkeypatch.setattr(_reconfigure_live, "EXPLAINING", 1)
    bed = bed_of(cluster, "barrier", 0)
    first, last = bed.explain((setup(bed, "nary", SHARED), setup(bed, "flat")))
    stages = typical_stages(first), typical_stages(last)
    assert ["host subtree level 0 down latency" in one for one in stages] == [True, False]


@pytest.mark.mpi
def test_a_search_has_its_log_its_tree_and_its_race_and_resumes(cluster):
    topology, folder = load_topology(cluster), cluster.parent / "out"
    file = cluster.parent / "start.tree.yaml"
    start = make_tree(topology, shape_of("nary"), "start")
    file.write_text(tree_yaml(start))
    words = ("reconfigure", "--topology", cluster, "--launcher", "local", "--tree", file,
             "--collective", "barrier", "--steps", 1, "--launches", 1, "--repetitions", 3,
             "--name", "found", "--output", folder)  # fmt: skip
    result = stagegen(*words)
    assert result.returncode == 0, result.stderr
    header, step = map(json.loads, (folder / "steps.jsonl").read_text().splitlines())
    assert (header["launcher"], header["size"]) == ("local", 0)
    assert (step["measured"], step["node_s"].keys()) == (True, {n.name for n in start.nodes})
    assert min(step["node_s"].values()) > 0
    (tried,) = step["tried"]
    assert tried["change"] == "hand over data on hosts by shared memory"
    assert read_tree(folder / "result.tree.yaml", topology) == start.renamed("found")
    race = json.loads((folder / "rule.json").read_text())
    validate("reconfigure-rule", race)
    on_host = SHARED if tried["accepted"] else MESSAGES
    assert list(race["raced_s"]) == [f"{algorithm_of('found')}:on_host={on_host}", "native"]
    assert race["rule"] == (folder / "library" / "decision.json").exists()
    if tried["accepted"]:
        validate("reconfigure-gain", json.loads((folder / "gain.json").read_text()))
    log = (folder / "steps.jsonl").read_text()
    assert stagegen(*words, "--resume").returncode == 0
    assert (folder / "steps.jsonl").read_text() == log, "nothing of the search is measured anew"
