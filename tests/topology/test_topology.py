"""What a loaded topology says of itself: ranks, tree, paths, hash, and its own file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given

from stagegen.data import TOPOLOGIES
from stagegen.errors import InputError
from stagegen.topology import Group, Site, load_topology, restricted_to, topology_yaml
from tests.strategies import make_topology, oracle_paths, topologies

SHIPPED = sorted(TOPOLOGIES.glob("*.yaml"))
EXPECTED_RANKS = {
    "chain-4x4-cyclic": 16,
    "chain-4x4-groups": 16,
    "chain-4x8-block": 32,
    "chain-4x8-cyclic": 32,
    "cluster-24-a": 24,
    "cluster-24-b": 24,
    "fig-3-2": 6,
    "four-switch-16": 16,
    "quickstart": 8,
    "single-16": 16,
    "slots-4x2x2": 16,
    "slow-uplink-16": 16,
    "three-level-48": 48,
    "two-level-32-uplink4": 32,
    "two-sites-20": 20,
    "two-sites-6": 6,
    "two-switch-16": 16,
}

WITH_SLOTS = """\
name: with-slots
switches:
  s0: {hosts: [a, b]}
  s1: {hosts: [c]}
  bare: {}
links: [{ends: [s0, s1]}, {ends: [s1, bare]}]
hosts: {a: {slots: 2}, c: {slots: 3}}
"""

WITH_CYCLE = """\
name: with-cycle
switches: {s0: {hosts: [a]}, s1: {hosts: [b]}, s2: {hosts: [c]}, s3: {hosts: [d]}}
links:
  - {ends: [s3, s2], latency: 1ms}
  - {ends: [s0, s2]}
  - {ends: [s1, s0], bandwidth: 10Gbit, count: 2}
  - {ends: [s1, s2]}
  - {ends: [s3, s1]}
spanning_tree: {root: s0}
"""


def load(tmp_path: Path, text: str):
    (tmp_path / "t.yaml").write_text(text)
    return load_topology(tmp_path / "t.yaml")


def test_shipped_files_are_all_here():
    assert {path.stem for path in SHIPPED} == set(EXPECTED_RANKS)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_file_has_its_ranks_and_a_form_that_loads_back(path, tmp_path):
    topology = load_topology(path)
    assert topology.name == path.stem
    assert topology.rank_count == EXPECTED_RANKS[path.stem]
    assert path.read_text().startswith("#"), "says where the cluster comes from"
    assert load(tmp_path, topology_yaml(topology)) == topology


def test_block_keeps_slots_of_a_host_together(tmp_path):
    assert load(tmp_path, WITH_SLOTS).ranks == ("a", "a", "b", "c", "c", "c")


def test_cyclic_deals_to_switches_then_second_slots(tmp_path):
    topology = load(tmp_path, WITH_SLOTS + "ranks: cyclic\n")
    assert topology.ranks == ("a", "c", "b", "a", "c", "c")


def test_cyclic_on_the_benchmark_takes_a_host_of_each_switch_in_turn():
    topology = load_topology(TOPOLOGIES / "chain-4x4-cyclic.yaml")
    assert topology.ranks[:6] == ("n0", "n4", "n8", "n12", "n1", "n5")


def test_a_list_may_leave_hosts_and_slots_unused(tmp_path):
    topology = load(tmp_path, WITH_SLOTS + 'ranks: [c, "a"]\n')
    assert topology.ranks == ("c", "a")
    assert topology.path(0, 1) == (("c", "s1"), ("s1", "s0"), ("s0", "a"))
    assert set(topology.tree.names) == {"s0", "s1", "a", "c"}


def test_ranks_of_one_host_are_leaves_under_it(tmp_path):
    topology = load(tmp_path, WITH_SLOTS)
    assert topology.path(1, 2) == (("a:1", "a"), ("a", "s0"), ("s0", "b"))
    assert topology.path(4, 3) == (("c:1", "c"), ("c", "c:0"))
    assert (topology.hops(0, 1), topology.hops(0, 2), topology.hops(0, 3)) == (0, 1, 2)


def test_the_example_has_the_path_of_section_3_1():
    topology = load_topology(TOPOLOGIES / "fig-3-2.yaml")
    assert topology.path(0, 3) == (("n0", "s0"), ("s0", "s1"), ("s1", "s3"), ("s3", "n3"))
    assert topology.hops(0, 3) == 3


def test_spanning_tree_is_breadth_first_in_the_order_of_links(tmp_path):
    topology = load(tmp_path, WITH_CYCLE)
    assert [link.ends for link in topology.links] == [("s3", "s2"), ("s0", "s2"), ("s1", "s0")]
    assert [link.ends for link in topology.blocked] == [("s1", "s2"), ("s3", "s1")]
    assert topology.rates["s0", "s1"] == 20 * 10**9
    again = load(tmp_path, topology_yaml(topology))
    assert again == topology
    assert again.hash == topology.hash


def test_bare_numbers_defaults_and_ranges_in_hosts_are_read(tmp_path):
    topology = load(
        tmp_path,
        'name: x\nswitches: {s0: {hosts: ["n[00-02]", z]}}\n'
        'hosts: {"n[01-02]": {bandwidth: 1000, latency: 2ms}}\n',
    )
    hosts = topology.host_by_name
    assert [hosts[name].bandwidth for name in ("n00", "n01", "n02", "z")] == [
        10**9,
        1000,
        1000,
        10**9,
    ]
    assert hosts["n02"].latency == 0.002


def test_the_hash_depends_on_all_but_the_name_and_the_launcher():
    topology = make_topology([2, 2], [0])
    other_name = replace(topology, name="other", launcher="lab")
    reordered = make_topology([2, 2], [0], ranks=["n1", "n0", "n2", "n3"])
    faster = make_topology([2, 2], [0], rates={"n1": 5})
    same_by_list = make_topology([2, 2], [0], ranks=["n0", "n1", "n2", "n3"])
    assert topology.hash == other_name.hash == same_by_list.hash
    grouped = replace(topology, groups=(Group("left", ("n0", "n1")),))
    renamed = replace(topology, groups=(Group("right", ("n0", "n1")),))
    sited = replace(topology, sites=(Site("a", ("s0",)), Site("b", ("s1",))))
    hashes = (t.hash for t in (topology, reordered, faster, grouped, renamed, sited))
    assert len(set(hashes)) == 6


def test_groups_are_lists_or_host_lists(tmp_path):
    text = WITH_SLOTS + 'groups: {one-each: [c, a], "0": "a,b", solo: [c]}\n'
    topology = load(tmp_path, text)
    assert topology.groups == (
        Group("one-each", ("c", "a")),
        Group("0", ("a", "b")),
        Group("solo", ("c",)),
    )
    assert topology.to_json()["groups"][1] == {"name": "0", "hosts": ("a", "b")}
    assert load(tmp_path, topology_yaml(topology)) == topology
    assert load(tmp_path, WITH_SLOTS + "groups:\n").groups == ()
    assert restricted_to(topology, ["a", "b"]).groups == ()


def test_sites_are_groups_of_switches(tmp_path):
    text = """\
name: two-sites
switches:
  a: {hosts: [n0, n1]}
  b: {hosts: n2}
  core: {}
  c: {hosts: n3}
links: [{ends: [a, core]}, {ends: [core, b]}, {ends: [core, c]}]
"""
    topology = load(tmp_path, text + "sites: {north: [c], south: [a, b]}\n")
    assert topology.sites == (Site("north", ("c",)), Site("south", ("a", "b")))
    assert topology.site_numbers == {"n0": 1, "n1": 1, "n2": 1, "n3": 0}
    assert load(tmp_path, topology_yaml(topology)) == topology
    assert restricted_to(topology, ["n0", "n3"]).sites == topology.sites
    whole = load(tmp_path, text)
    assert whole.sites == load(tmp_path, text + "sites:\n").sites == ()
    assert set(whole.site_numbers.values()) == {0}
    with pytest.raises(InputError, match="switch b has hosts and is in no site; add it to one"):
        load(tmp_path, text + "sites: {north: [c], south: [a]}\n")


@given(topologies())
def test_paths_are_those_of_the_network(topology):
    for (u, v), path in oracle_paths(topology).items():
        assert list(topology.path(u, v)) == path
        switches = {node for edge in path for node in edge} & {s.name for s in topology.switches}
        assert topology.hops(u, v) == len(switches)


@given(topologies())
def test_tree_is_pruned_to_ranks_as_leaves(topology):
    tree = topology.tree
    leaves = {node for node, near in enumerate(tree.neighbours) if len(near) <= 1}
    assert leaves == set(tree.leaf)
    graph = nx.Graph(list(tree.links()))
    assert len(tree.names) == 1 or nx.is_tree(graph)
    assert sorted(tree.depth_first(tree.leaf[0])) == list(range(len(tree.names)))


@given(topologies())
def test_loads_are_counts_of_messages(topology):
    counts: dict[tuple[str, str], int] = {}
    for path in oracle_paths(topology).values():
        for edge in path:
            counts[edge] = counts.get(edge, 0) + 1
    tree = topology.tree
    names = tree.names
    loads = {(names[a], names[b]): tree.load(a, b) for a, b in tree.links()}
    loads |= {(b, a): load for (a, b), load in loads.items()}
    assert loads == counts


@given(topologies())
def test_yaml_loads_back(tmp_path_factory, topology):
    path = tmp_path_factory.getbasetemp() / "back.yaml"
    path.write_text(topology_yaml(topology))
    again = load_topology(path)
    assert again == topology
    assert topology_yaml(again) == topology_yaml(topology)
    assert json.loads(json.dumps(topology.to_json()))["ranks"] == list(topology.ranks)
