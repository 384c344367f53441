"""Slow and plain ways to the fewest hops of a contention-free ring, and many trees to try."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cache

import networkx as nx

from stagegen.topology import Topology
from tests.strategies import oracle_paths, small_trees


def trees_of_hosts(most_nodes: int, most_hosts: int):
    """Every tree whose leaves are hosts, with at most these numbers of nodes and of hosts."""
    return (tree for tree in small_trees(most_nodes) if tree.rank_count <= most_hosts)


def fewest_hops_of_all_rings(topology: Topology) -> int:
    """Try every order of the ranks, as long as no edge is used twice."""
    switches = {switch.name for switch in topology.switches}
    paths = {pair: frozenset(path) for pair, path in oracle_paths(topology).items()}
    hops = {
        pair: len({node for edge in path for node in edge} & switches)
        for pair, path in paths.items()
    }
    best = math.inf

    def extend(last: int, left: frozenset[int], used: frozenset, most: int) -> None:
        nonlocal best
        for rank in left or {0}:
            pair = last, rank
            if not used & paths[pair] and max(most, hops[pair]) < best:
                if left:
                    extend(rank, left - {rank}, used | paths[pair], max(most, hops[pair]))
                else:
                    best = max(most, hops[pair])

    if topology.rank_count == 1:
        return 0
    extend(0, frozenset(range(1, topology.rank_count)), frozenset(), 0)
    return int(best)


def fewest_hops_by_algorithm_3(topology: Topology) -> int:
    """Algorithm 3 of Faraj (2006), with sets of branches instead of sequences; exponential."""
    graph = nx.Graph()
    graph.add_edges_from(link.ends for link in topology.links)
    used = set(topology.ranks)
    graph.add_edges_from((host.name, host.switch) for host in topology.hosts if host.name in used)
    while spare := [node for node in graph if graph.degree[node] <= 1 and node not in used]:
        graph.remove_nodes_from(spare)
    switches = [node for node in graph if node not in used]
    if not switches:
        return 0

    @cache
    def arrays(node: str, parent: str | None) -> dict[tuple[int, int], int]:
        """The fewest hops within, by the distances of the first and the last machine."""
        if node in used:
            return {(0, 0): 0}
        branches = [arrays(near, node) for near in sorted(graph[node]) if near != parent]
        whole = (1 << len(branches)) - 1
        tables: dict[int, dict[tuple[int, int], int]] = defaultdict(dict)
        tables[0] = {}
        for index, branch in enumerate(branches):
            tables[1 << index] = dict(branch)
        for chosen in range(1, whole):
            for index, branch in enumerate(branches):
                if not chosen >> index & 1:
                    table = tables[chosen | 1 << index]
                    for (first, last), most in tables[chosen].items():
                        for (entry, leave), inside in branch.items():
                            value = max(most, inside, last + entry + 1)
                            ends = first, leave
                            table[ends] = min(value, table.get(ends, value))
        if parent is None:
            return tables[whole]
        return {(f + 1, last + 1): most for (f, last), most in tables[whole].items()}

    root = min(switches)
    return min(max(most, f + last + 1) for (f, last), most in arrays(root, None).items())
