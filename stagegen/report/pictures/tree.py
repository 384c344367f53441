"""A broadcast or reduce tree on the switch tree: arrows coloured by step, shared links marked."""

from __future__ import annotations

from collections.abc import Mapping

from stagegen.report.pictures.arrows import Arrows, room_for
from stagegen.report.pictures.canvas import Canvas
from stagegen.report.pictures.colours import ALARM, INK
from stagegen.report.pictures.layout import lay_out
from stagegen.report.pictures.network import Network, draw_network, left_out, network_of
from stagegen.schedule import Tree
from stagegen.topology import RankTree, Topology

_WAYS = {"bcast": ("Broadcast", "from"), "reduce": ("Reduce", "to")}


def tree_picture(topology: Topology, tree: Tree) -> Canvas:
    """Return the picture of a tree."""
    children = _children(tree)
    order, depth = _visit(tree.root, children)
    levels = {message: max(map(depth.__getitem__, message)) for message in tree.edges}
    layout = lay_out(topology.tree, order, _place_of(topology.tree, tree.root))
    network = network_of(topology, layout, room_for(layout.place, levels), 2)
    canvas = Canvas(network.width, network.height)
    shared = _shared_links(topology.tree, layout.above, tree)
    draw_network(canvas, network, dict.fromkeys(shared, ALARM))
    for node, count in shared.items():
        _mark(canvas, network, node, count)
    _mark_root(canvas, network, tree.root)
    Arrows(levels, ("level 1", "level {}")).draw(canvas, network)
    name, way = _WAYS[tree.collective]
    canvas.title(
        f"{name} tree ({tree.construction}) {way} rank {tree.root} on {topology.name}",
        _height(tree) + left_out(topology),
        _contention(tree),
    )
    return canvas


def _place_of(network: RankTree, rank: int) -> int:
    """Return a rank's switch, or its host if that has several ranks, or itself if it is alone."""
    return (network.neighbours[network.leaf[rank]] or (network.leaf[rank],))[0]


def _height(tree: Tree) -> str:
    if tree.least_height is None:
        return f"Height {tree.height}."
    return f"Height {tree.height} (on any network at least {tree.least_height})."


def _children(tree: Tree) -> dict[int, list[int]]:
    """Return the children of every rank that has some, in sending order."""
    children: dict[int, list[int]] = {}
    for one, other in tree.edges:
        parent, child = (other, one) if tree.collective == "reduce" else (one, other)
        children.setdefault(parent, []).append(child)
    return children


def _visit(root: int, children: Mapping[int, list[int]]) -> tuple[list[int], dict[int, int]]:
    """Return the ranks in depth-first order, and how far below the root they are."""
    order, depth, stack = [], {root: 0}, [root]
    while stack:
        rank = stack.pop()
        order.append(rank)
        below = children.get(rank, [])
        depth.update(dict.fromkeys(below, depth[rank] + 1))
        stack += reversed(below)
    return order, depth


def _shared_links(network: RankTree, above: tuple[int, ...], tree: Tree) -> dict[int, int]:
    """Return, by the node at the lower end, how many senders share a link, in either direction."""
    number = {name: node for node, name in enumerate(network.names)}
    shared: dict[int, int] = {}
    for (one, other), count in tree.contention:
        node = number[one] if above[number[one]] == number[other] else number[other]
        shared[node] = max(count, shared.get(node, 0))
    return shared


def _mark(canvas: Canvas, network: Network, node: int, count: int) -> None:
    """Write beside a link how many senders share it."""
    x = network.x(network.layout.centre(node)) + 0.05
    y = network.y(network.layout.above[node]) - 0.2
    canvas.text(x, y, f"×{count}", 8, color=ALARM, weight="bold", zorder=6)


def _mark_root(canvas: Canvas, network: Network, root: int) -> None:
    x = network.x(network.layout.place[root])
    canvas.circle(x, network.base, network.radius + 0.035, "none", edgecolor=INK, linewidth=1.6)


def _contention(tree: Tree) -> str:
    if tree.contention_free:
        return "Free of contention: no link has messages of two " + tree.peers + " in a direction."
    worst = tree.contention[0]
    return (
        f"Contention: {len(tree.contention)} edges have messages of several {tree.peers}, "
        f"the worst {worst.edge[0]}→{worst.edge[1]} of {worst.ranks} (×: how many, on a link)."
    )
