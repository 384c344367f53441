"""Changes of a tree by one step, as Bongo, Anshus and Bjørndalen make them by hand (section 6).

A level is added to a node or removed (figure 9); a node moves to another rank or host, which also
splits the cluster root over hosts (figure 15), or adds and removes network links (figure 11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from stagegen.topology import Topology
from stagegen.trees.cost import hotspots
from stagegen.trees.model import ConfiguredTree, Contributor, Node, ordered


@dataclass(frozen=True)
class Move:
    """A change.

    Attributes:
        what: in words, such as ``move root.1.1 from rank 0 to rank 4``.
        node: the node that it is about.
        tree: the tree after it.
    """

    what: str
    node: str
    tree: ConfiguredTree


def moves(
    topology: Topology, tree: ConfiguredTree, seconds: Mapping[str, float]
) -> tuple[Move, ...]:
    """Return the changes of a tree, those of the hottest nodes first.

    Nodes on the longest way up come before the others, each by the time that it takes. No two of
    the changes make the same tree, and none leaves it as it is.

    Args:
        topology: the cluster.
        tree: to change.
        seconds: of each node's work, measured or of :func:`stagegen.trees.cost.node_seconds`.
    """
    hot = {one.node for one in hotspots(tree, seconds)}
    nodes = sorted(tree.nodes, key=lambda node: (node.name not in hot, -seconds[node.name]))
    found: dict[tuple[Node, ...], Move] = {}
    for node in nodes:
        for move in _of_node(topology, tree, node):
            if move.tree.nodes != tree.nodes:
                found.setdefault(move.tree.nodes, move)
    return tuple(found.values())


def _of_node(topology: Topology, tree: ConfiguredTree, node: Node) -> Iterator[Move]:
    yield from _moved(topology, tree, node)
    if len(node.contributors) > 3:
        yield Move(f"add a level below {node.name}", node.name, with_level(tree, node))
    if node.name != tree.root.name:
        what = f"remove the level {node.name}"
        yield Move(what, node.name, without_level(tree, node))


def _moved(topology: Topology, tree: ConfiguredTree, node: Node) -> Iterator[Move]:
    """Yield moves to ranks that contribute, to the parent's, and to idle ranks of either host."""
    busy = {one.worker for one in tree.nodes}
    above = tree.parent.get(node.name)
    near = [tree.worker_of(one) for one in node.contributors]
    ends = [*near, *([] if above is None else [above.worker])]
    hosts = dict.fromkeys(topology.ranks[rank] for rank in (node.worker, *ends))
    idle = [
        next((r for r, own in enumerate(topology.ranks) if own == host and r not in busy), None)
        for host in hosts
    ]
    for rank in dict.fromkeys((*ends, *(one for one in idle if one is not None))):
        if rank != node.worker:
            what = f"move {node.name} from rank {node.worker} to rank {rank}"
            yield Move(what, node.name, changed(tree, replace(node, worker=rank)))


def changed(tree: ConfiguredTree, *nodes: Node, without: str = "") -> ConfiguredTree:
    """Return a tree with nodes added, or in place of those of their names, and one left out."""
    by_name = {**tree.by_name, **{node.name: node for node in nodes}}
    by_name.pop(without, None)
    return replace(tree, nodes=ordered(by_name.values()))


def with_level(tree: ConfiguredTree, node: Node) -> ConfiguredTree:
    """Return the tree with two nodes between a node and its contributors, half of them each.

    The work of the new nodes is done where their first contributor is.
    """
    middle = (len(node.contributors) + 1) // 2
    halves = node.contributors[:middle], node.contributors[middle:]
    names = [_free(tree, f"{node.name}.{side}") for side in ("a", "b")]
    added = [
        Node(name, tree.worker_of(half[0]), half) for name, half in zip(names, halves, strict=True)
    ]
    return changed(tree, *added, replace(node, contributors=tuple(names)))


def without_level(tree: ConfiguredTree, node: Node) -> ConfiguredTree:
    """Return the tree in which a node's contributors contribute to its parent; not for the root."""
    above = tree.parent[node.name]
    contributors: list[Contributor] = []
    for one in above.contributors:
        contributors += node.contributors if one == node.name else (one,)
    return changed(tree, replace(above, contributors=tuple(contributors)), without=node.name)


def _free(tree: ConfiguredTree, name: str) -> str:
    name = name[-70:].lstrip("0123456789._-") or "level"
    while name in tree.by_name:
        name += "_"
    return name
