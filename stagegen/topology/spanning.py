"""Checks that the switches form a tree, or takes a spanning tree out of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import networkx as nx

Ends = tuple[str, str]


def unreachable(switches: Sequence[str], links: Sequence[Ends]) -> list[str]:
    """Return the switches that cannot be reached from the first one, in file order."""
    graph = nx.Graph()
    graph.add_nodes_from(switches)
    graph.add_edges_from(links)
    reached = nx.node_connected_component(graph, switches[0])
    return [switch for switch in switches if switch not in reached]


def first_cycle(switches: Sequence[str], links: Sequence[Ends]) -> tuple[int, list[Ends]] | None:
    """Return the first link that closes a cycle, and the links of that cycle.

    Args:
        switches: all switches.
        links: their links, in the order in which to examine them.

    Returns:
        The index of the closing link and the cycle's links, the closing one last; None where
        the links form a forest.
    """
    forest, component = nx.Graph(), nx.utils.UnionFind(switches)
    forest.add_nodes_from(switches)
    for index, (one, other) in enumerate(links):
        if component[one] == component[other]:
            around = nx.shortest_path(forest, other, one)
            return index, [*pairwise(around), (one, other)]
        component.union(one, other)
        forest.add_edge(one, other)
    return None


def breadth_first_links(root: str, links: Sequence[Ends]) -> set[int]:
    """Return the indices of the links of the breadth-first tree from a switch.

    Ethernet's spanning tree protocol yields this tree when all links cost the same. The
    neighbours of a switch are visited in the order of `links`.
    """
    graph = nx.Graph()
    graph.add_node(root)
    for index, (one, other) in enumerate(links):
        graph.add_edge(one, other, index=index)
    return {graph.edges[edge]["index"] for edge in nx.bfs_edges(graph, root)}
