"""The tree that schedules are made for: its leaves are ranks.

A host with one rank is a leaf. A host with several is an inner node with its ranks as leaves,
which share its network link like any other link (section 3.2.2 of Faraj, 2006, needs only a tree
with leaves). Switches and hosts that lead to no rank are left out (section 3.1: a switch that is
a leaf takes no part in communication).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edge = tuple[str, str]
"""A directed edge between two nodes, by their names."""


@dataclass(frozen=True)
class RankTree:
    """A tree of numbered nodes: switches in file order, then hosts, then ranks within hosts.

    Attributes:
        names: of the nodes; the ranks of a host with several are `host:0`, `host:1`, …
        neighbours: of each node, in the order in which a depth-first search visits them:
            hosts and ranks first, by their lowest rank, then switches in the order of links.
        leaf: the node of each rank.
        rank: the rank of each node, -1 for an inner node.
        is_switch: whether a node is a switch.
        parent: of each node when rooted at node 0; -1 for node 0.
        depth: of each node below node 0.
        below: how many ranks are at and below each node when rooted at node 0.
    """

    names: tuple[str, ...]
    neighbours: tuple[tuple[int, ...], ...]
    leaf: tuple[int, ...]
    rank: tuple[int, ...]
    is_switch: tuple[bool, ...]
    parent: tuple[int, ...]
    depth: tuple[int, ...]
    below: tuple[int, ...]

    @property
    def rank_count(self) -> int:
        """How many leaves there are."""
        return len(self.leaf)

    def climb(self, source: int, destination: int) -> tuple[list[int], list[int]]:
        """Return the nodes from each of two ranks up to where their paths meet, inclusive."""
        up, down = [self.leaf[source]], [self.leaf[destination]]
        while up[-1] != down[-1]:
            longer = up if self.depth[up[-1]] >= self.depth[down[-1]] else down
            longer.append(self.parent[longer[-1]])
        return up, down

    def node_path(self, source: int, destination: int) -> list[int]:
        """Return the nodes of the path between two ranks, both leaves included."""
        up, down = self.climb(source, destination)
        return up + down[-2::-1]

    def path(self, source: int, destination: int) -> tuple[Edge, ...]:
        """Return the directed edges of the path between two ranks, by names."""
        nodes = [self.names[node] for node in self.node_path(source, destination)]
        return tuple(pairwise(nodes))

    def hops(self, source: int, destination: int) -> int:
        """Return how many switches are on the path between two ranks."""
        return sum(self.is_switch[node] for node in self.node_path(source, destination))

    def depth_first(self, start: int) -> Iterator[int]:
        """Yield all nodes in depth-first order of arrival, from node `start`."""
        stack = [(start, -1)]
        while stack:
            node, came_from = stack.pop()
            yield node
            stack += [(n, node) for n in reversed(self.neighbours[node]) if n != came_from]

    def ranks_beyond(self, node: int, neighbour: int) -> int:
        """Return how many ranks are on the neighbour's side of a link."""
        if self.parent[neighbour] == node:
            return self.below[neighbour]
        return self.rank_count - self.below[node]

    def load(self, node: int, neighbour: int) -> int:
        """Return how many messages of an alltoall use a link in each direction."""
        beyond = self.ranks_beyond(node, neighbour)
        return beyond * (self.rank_count - beyond)

    def links(self) -> Iterator[tuple[int, int]]:
        """Yield every link once, as (node nearer to node 0, node further away)."""
        for node, parent in enumerate(self.parent):
            if parent >= 0:
                yield parent, node


def build_rank_tree(
    switches: Sequence[str],
    hosts: Sequence[Edge],
    links: Sequence[Edge],
    ranks: Sequence[str],
) -> RankTree:
    """Build the tree whose leaves are the ranks.

    Args:
        switches: names in file order.
        hosts: (host, its switch) in file order.
        links: (switch, switch) in file order; with the hosts' links they form a tree.
        ranks: the host of each rank.
    """
    ranks_of: dict[str, list[int]] = {}
    for rank, host in enumerate(ranks):
        ranks_of.setdefault(host, []).append(rank)
    adjacency: dict[str, list[str]] = {name: [] for name in switches}
    adjacency |= {host: [] for host, _ in hosts}
    leaf_names = [""] * len(ranks)
    for host, own in ranks_of.items():
        for slot, rank in enumerate(own):
            leaf_names[rank] = host if len(own) == 1 else f"{host}:{slot}"
            if len(own) > 1:
                adjacency[leaf_names[rank]] = [host]
                adjacency[host].append(leaf_names[rank])
    used = [(host, switch) for host, switch in hosts if host in ranks_of]
    for host, switch in sorted(used, key=lambda pair: ranks_of[pair[0]][0]):
        adjacency[switch].append(host)
        adjacency[host].append(switch)
    for one, other in links:
        adjacency[one].append(other)
        adjacency[other].append(one)
    _prune(adjacency, set(leaf_names))
    return _number(adjacency, leaf_names, set(switches))


def _prune(adjacency: dict[str, list[str]], keep: set[str]) -> None:
    """Remove switches and hosts with at most one link until none is left."""
    waiting = [name for name, near in adjacency.items() if len(near) <= 1 and name not in keep]
    while waiting:
        for neighbour in adjacency.pop(waiting.pop()):
            near = adjacency[neighbour]
            # Only the removed node is no longer in `adjacency`.
            near[:] = [name for name in near if name in adjacency]
            if len(near) == 1 and neighbour not in keep:
                waiting.append(neighbour)


def _number(adjacency: dict[str, list[str]], leaf_names: list[str], switches: set[str]) -> RankTree:
    """Number the nodes and root the tree at node 0."""
    names = tuple(adjacency)
    number = {name: index for index, name in enumerate(names)}
    neighbours = tuple(tuple(number[n] for n in adjacency[name]) for name in names)
    rank = [-1] * len(names)
    for index, name in enumerate(leaf_names):
        rank[number[name]] = index
    parent, depth = [-1] * len(names), [0] * len(names)
    order = [0]
    for node in order:
        for neighbour in neighbours[node]:
            if neighbour != parent[node]:
                parent[neighbour], depth[neighbour] = node, depth[node] + 1
                order.append(neighbour)
    below = [int(r >= 0) for r in rank]
    for node in reversed(order[1:]):
        below[parent[node]] += below[node]
    return RankTree(
        names=names,
        neighbours=neighbours,
        leaf=tuple(number[name] for name in leaf_names),
        rank=tuple(rank),
        is_switch=tuple(name in switches for name in names),
        parent=tuple(parent),
        depth=tuple(depth),
        below=tuple(below),
    )
