"""Changes of a tree by one step, as Bongo, Anshus and Bjørndalen make them by hand (section 6).

A level is added to a node or removed (figure 9); a node moves to another rank or host, which also
splits the cluster root over hosts (figure 15), or adds and removes network links (figure 11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stagegen.topology import Topology
from stagegen.trees.cost import hotspots
from stagegen.trees.model import ConfiguredTree, Contributor, Node, ordered

#: A level is added below nodes with more contributors than this.
_WIDE = 3

#: Of a node or level, so many changes come before those of cooler ones; the others come last. Many
#: of them do the same at another rank.
_FIRST = 4

_Made = tuple[str, ConfiguredTree]
"""A change in words, and the tree after it."""


@dataclass(frozen=True)
class Move:
    """A change.

    Attributes:
        what: in words, such as ``move root.1.1 from rank 0 to rank 4``.
        node: the node that it is about; of a level, the hottest one.
        tree: the tree after it.
    """

    what: str
    node: str
    tree: ConfiguredTree


def moves(
    topology: Topology, tree: ConfiguredTree, seconds: Mapping[str, float]
) -> tuple[Move, ...]:
    """Return the changes of a tree, those of the hottest nodes first.

    - Nodes on the longest way up come before the others; among them, those that take more time.
    - Of each node, the first few changes come there. The rest come at the end.
    - The nodes of a level that are alike also change together, as in the paper. Their times are
      added up. Such a change is told to be about the hottest of them.
    - No two of the changes make the same tree, and none leaves it as it is.

    Args:
        topology: the cluster.
        tree: to change.
        seconds: of each node's work, measured or of :func:`stagegen.trees.cost.node_seconds`.
    """
    hot = {one.node for one in hotspots(tree, seconds)}
    subjects = [*_levels(topology, tree), *((node,) for node in reversed(tree.nodes))]

    def order(nodes: Sequence[Node]) -> tuple[bool, float]:
        return all(one.name not in hot for one in nodes), -sum(seconds[one.name] for one in nodes)

    hottest_first = sorted(subjects, key=order)
    made = [list(_of_subject(topology, tree, nodes, seconds)) for nodes in hottest_first]
    found: dict[tuple[Node, ...], Move] = {}
    for move in (*(m for few in made for m in few[:_FIRST]), *(m for few in made for m in few)):
        if move.tree.nodes != tree.nodes:
            found.setdefault(move.tree.nodes, move)
    return tuple(found.values())


def _of_subject(
    topology: Topology, tree: ConfiguredTree, nodes: Sequence[Node], seconds: Mapping[str, float]
) -> Iterator[Move]:
    hottest = max(nodes, key=lambda one: seconds[one.name])
    made = _of_node(topology, tree, hottest) if len(nodes) == 1 else _of_level(tree, nodes)
    for what, after in made:
        yield Move(what, hottest.name, after)


def _levels(topology: Topology, tree: ConfiguredTree) -> list[tuple[Node, ...]]:
    """Return the levels with several nodes: those within hosts apart from those between them."""
    hosts = topology.ranks
    levels: dict[tuple[int, bool], list[Node]] = {}
    for node in tree.nodes:
        near = all(hosts[tree.worker_of(one)] == hosts[node.worker] for one in node.contributors)
        levels.setdefault((tree.depth[node.name], near), []).append(node)
    return [tuple(nodes) for nodes in levels.values() if len(nodes) > 1]


def _of_level(tree: ConfiguredTree, nodes: Sequence[Node]) -> Iterator[_Made]:
    """Yield changes of several nodes at once."""
    names = f"{nodes[0].name} to {nodes[-1].name}, {len(nodes)} nodes of a level"
    wide = [node for node in nodes if len(node.contributors) > _WIDE]
    if len(wide) > 1:
        yield f"add a level below {names}", _one_by_one(tree, wide, with_level)
    yield f"remove {names}", _one_by_one(tree, nodes, without_level)
    for what, place in (("a contributor", _at_contributor), ("the node above", _at_parent)):
        moved = [replace(node, worker=place(tree, node)) for node in nodes]
        yield f"move {names}, to the rank of {what}", changed(tree, *moved)


def _one_by_one(
    tree: ConfiguredTree,
    nodes: Sequence[Node],
    change: Callable[[ConfiguredTree, Node], ConfiguredTree],
) -> ConfiguredTree:
    for node in nodes:
        tree = change(tree, tree.by_name[node.name])
    return tree


def _at_contributor(tree: ConfiguredTree, node: Node) -> int:
    """Return the rank of the first contributor that is not the node's own."""
    others = (tree.worker_of(one) for one in node.contributors)
    return next((rank for rank in others if rank != node.worker), node.worker)


def _at_parent(tree: ConfiguredTree, node: Node) -> int:
    return tree.parent[node.name].worker


def _of_node(topology: Topology, tree: ConfiguredTree, node: Node) -> Iterator[_Made]:
    if len(node.contributors) > _WIDE:
        yield f"add a level below {node.name}", with_level(tree, node)
    if node.name != tree.root.name:
        yield f"remove the level {node.name}", without_level(tree, node)
    yield from _moved(topology, tree, node)


def _moved(topology: Topology, tree: ConfiguredTree, node: Node) -> Iterator[_Made]:
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
            yield what, changed(tree, replace(node, worker=rank))


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
