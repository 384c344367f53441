"""Random clusters for property tests, and oracles that are slow but plainly right."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import networkx as nx
from hypothesis import settings
from hypothesis import strategies as st

from stagegen.topology import Host, Link, RankMap, Switch, Topology

GIGABIT = 10**9
#: How many examples a property test has if neither it nor the profile sets a number.
USUAL = 100


def examples(count: int) -> settings:
    """Give a property test this many examples. A profile with fewer examples scales them down."""
    return settings(max_examples=max(1, count * settings.default.max_examples // USUAL))


def make_topology(
    hosts_per_switch: list[int],
    parents: list[int],
    ranks: list[str] | None = None,
    slots: dict[str, int] | None = None,
    rates: dict[str, int] | None = None,
    uplinks: list[float] | None = None,
) -> Topology:
    """A tree in which switch i > 0 hangs on switch `parents[i - 1]`; hosts are n0, n1, …

    Hosts have 1 Gbit/s unless `rates` says otherwise; `uplinks` are the links' rates in Gbit/s.
    """
    names = iter(f"n{number}" for number in itertools.count())
    switches = [
        Switch(f"s{i}", tuple(itertools.islice(names, count)))
        for i, count in enumerate(hosts_per_switch)
    ]
    hosts = [
        Host(name, switch.name, (rates or {}).get(name, GIGABIT), 5e-5, (slots or {}).get(name, 1))
        for switch in switches
        for name in switch.hosts
    ]
    links = [
        Link((f"s{p}", f"s{i}"), round(GIGABIT * rate), 5e-5)
        for i, (p, rate) in enumerate(zip(parents, uplinks or [1] * len(parents), strict=True), 1)
    ]
    block = tuple(host.name for host in hosts for _ in range(host.slots))
    rank_map = RankMap("block", block) if ranks is None else RankMap("list", tuple(ranks))
    return Topology("random", tuple(switches), tuple(hosts), tuple(links), rank_map)


@st.composite
def topologies(draw, max_hosts: int = 40, max_switches: int = 12, max_ranks: int = 44) -> Topology:
    """Trees of 1–12 switches and 1–40 hosts: uneven, some switches bare, some hosts shared."""
    switch_count = draw(st.integers(1, max_switches))
    parents = [draw(st.integers(0, i - 1)) for i in range(1, switch_count)]
    host_count = draw(st.integers(1, max_hosts))
    # Few of the switches get most of the hosts, so that bare and crowded ones are common.
    choice = st.sampled_from(draw(st.lists(st.integers(0, switch_count - 1), min_size=1)))
    places = Counter(draw(st.lists(choice, min_size=host_count, max_size=host_count)))
    counts = [places[i] for i in range(switch_count)]
    names = [f"n{i}" for i in range(host_count)]
    slots = {}
    if draw(st.booleans()):
        shared = draw(st.lists(st.sampled_from(names), max_size=4, unique=True))
        slots = {name: draw(st.integers(2, 3)) for name in shared}
        while sum(slots.values()) + host_count - len(slots) > max_ranks:
            slots.popitem()
    ranks = None
    if draw(st.booleans()):
        block = [name for name in names for _ in range(slots.get(name, 1))]
        ranks = draw(st.permutations(block))
        if draw(st.booleans()):
            ranks = ranks[: draw(st.integers(1, len(ranks)))]
    return make_topology(counts, parents, ranks, slots)


@st.composite
def fast_topologies(draw, max_hosts: int = 40, max_switches: int = 8) -> Topology:
    """Random trees whose links carry 1 to 20 messages of a phase, some as two cables.

    Some hosts have links that are faster than that of rank 0, some several ranks.
    """
    topology = draw(topologies(max_hosts, max_switches, max_hosts))
    speed = st.sampled_from((1, 1, 2, 2.5, 3, 4, 5, 8, 10))
    hosts = tuple(
        host
        if host.name == topology.ranks[0]
        else replace(host, bandwidth=round(GIGABIT * draw(st.sampled_from((1, 1, 2.5, 10)))))
        for host in topology.hosts
    )
    links = tuple(
        replace(link, bandwidth=round(GIGABIT * draw(speed)), count=draw(st.integers(1, 2)))
        for link in topology.links
    )
    return replace(topology, hosts=hosts, links=links)


small_topologies = topologies(max_hosts=6, max_switches=5, max_ranks=7)


def small_trees(most_nodes: int = 9):
    """Every tree of up to `most_nodes` nodes, its leaves hosts and its inner nodes switches."""
    for nodes in range(3, most_nodes + 1):
        for shape in nx.nonisomorphic_trees(nodes):
            inner = [node for node in shape if shape.degree[node] > 1]
            order = list(nx.dfs_preorder_nodes(shape.subgraph(inner), inner[0]))
            number = {node: i for i, node in enumerate(order)}
            above = dict(nx.dfs_predecessors(shape.subgraph(inner), inner[0]))
            counts = [sum(shape.degree[n] == 1 for n in shape[node]) for node in order]
            yield make_topology(counts, [number[above[node]] for node in order[1:]])


def network_graph(topology: Topology) -> tuple[nx.Graph, list[str]]:
    """The whole network with bare switches and unused hosts, and the node of each rank."""
    graph = nx.Graph()
    graph.add_edges_from(link.ends for link in topology.links)
    graph.add_edges_from((host.name, host.switch) for host in topology.hosts)
    used = Counter(topology.ranks)
    leaves, seen = [], Counter()
    for host in topology.ranks:
        leaf = host if used[host] == 1 else f"{host}:{seen[host]}"
        seen[host] += 1
        graph.add_edge(leaf, host)
        leaves.append(leaf)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph, leaves


def oracle_paths(topology: Topology) -> dict[tuple[int, int], list[tuple[str, str]]]:
    """The directed edges between every two ranks, by NetworkX."""
    graph, leaves = network_graph(topology)
    every = dict(nx.all_pairs_shortest_path(graph))
    return {
        (u, v): list(itertools.pairwise(every[leaves[u]][leaves[v]]))
        for u in range(len(leaves))
        for v in range(len(leaves))
        if u != v
    }
