"""The root of an alltoall schedule, and the subtrees around it.

Source: A. Faraj, *Automatic Empirical Techniques for Developing Efficient MPI Collective
Communication Routines* (2006), section 3.2.2.1. A root (1) is on a bottleneck link and (2) has
at most half of the ranks in each of its subtrees.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagegen.errors import InputError
from stagegen.topology import RankTree, Topology


@dataclass(frozen=True)
class RootedView:
    """The network as the root sees it (the two levels of Fig. 3.3).

    Attributes:
        root: the name of the root.
        subtrees: the ranks in each subtree, ascending; larger subtrees come first, of equally
            large ones the one with the lowest rank.
        bottleneck: the load of the alltoall on the most loaded link.
    """

    root: str
    subtrees: tuple[tuple[int, ...], ...]
    bottleneck: int


def bottleneck_load(tree: RankTree) -> int:
    """Return how many messages of an alltoall use the most loaded edge; 0 for a single rank."""
    return max((tree.load(*link) for link in tree.links()), default=0)


def root_candidates(tree: RankTree) -> list[int]:
    """Return the inner nodes that meet both conditions of a root, in the order of nodes.

    The process of section 3.2.2.1 always ends in such a node, and the schedule needs no more
    than the two conditions.
    """
    bottleneck = bottleneck_load(tree)
    found = []
    for node, neighbours in enumerate(tree.neighbours):
        loads = [tree.load(node, neighbour) for neighbour in neighbours]
        sizes = [tree.ranks_beyond(node, neighbour) for neighbour in neighbours]
        inner = tree.rank[node] < 0
        if inner and max(loads) == bottleneck and 2 * max(sizes) <= tree.rank_count:
            found.append(node)
    return found


def default_root(tree: RankTree) -> int:
    """Return the default root.

    Among the candidates at which the process of section 3.2.2.1 can end (three or more subtrees),
    it is the one whose furthest rank is nearest, and among several of these the first in the order
    of nodes, which is the file's. For two ranks any candidate will do.
    """
    candidates = root_candidates(tree)
    branching = [node for node in candidates if len(tree.neighbours[node]) > 2]
    return min(branching or candidates, key=lambda node: (_height(tree, node), node))


def _height(tree: RankTree, node: int) -> int:
    """Return how many links away the furthest node is."""
    far, level, seen = -1, [node], {node}
    while level:
        far += 1
        level = [n for here in level for n in tree.neighbours[here] if n not in seen]
        seen.update(level)
    return far


def rooted_view(topology: Topology, root: str | None = None) -> RootedView:
    """Choose the root and sort its subtrees.

    Args:
        topology: any cluster.
        root: the name of the switch to take as the root, where several qualify.

    Raises:
        InputError: the asked-for root does not qualify; names the nodes that do.
    """
    tree = topology.tree
    if topology.rank_count == 1:
        return _single_rank(topology, root)
    if root is None:
        node = default_root(tree)
    else:
        names = [tree.names[candidate] for candidate in root_candidates(tree)]
        if root not in names:
            raise InputError(
                f"{root} cannot be the root of the alltoall schedule; "
                f"choose from {', '.join(names)} (on a bottleneck link, "
                "and no subtree with more than half of the ranks)"
            )
        node = tree.names.index(root)
    subtrees = [_ranks_beyond(tree, node, neighbour) for neighbour in tree.neighbours[node]]
    subtrees.sort(key=lambda ranks: (-len(ranks), ranks[0]))
    return RootedView(tree.names[node], tuple(subtrees), bottleneck_load(tree))


def _single_rank(topology: Topology, root: str | None) -> RootedView:
    """Return the view of a topology with one rank: its switch, and nothing to schedule."""
    switch = topology.host_by_name[topology.ranks[0]].switch
    if root not in (None, switch):
        raise InputError(f"{root} cannot be the root of the schedule; choose {switch}")
    return RootedView(switch, ((0,),), 0)


def _ranks_beyond(tree: RankTree, node: int, neighbour: int) -> tuple[int, ...]:
    """Return the ranks on the neighbour's side of a link, ascending."""
    ranks, stack = [], [(neighbour, node)]
    while stack:
        here, came_from = stack.pop()
        if tree.rank[here] >= 0:
            ranks.append(tree.rank[here])
        stack += [(n, here) for n in tree.neighbours[here] if n != came_from]
    return tuple(sorted(ranks))
