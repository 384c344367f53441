"""The switch tree as a drawing, with room for arrows between ranks below it."""

from __future__ import annotations

from dataclasses import dataclass

from stagegen.report.pictures.canvas import Canvas, text_width
from stagegen.report.pictures.colours import INK, LINE, SOFT
from stagegen.report.pictures.layout import Layout
from stagegen.topology import RankTree, Topology

LEVEL = 0.52
HEAD = 0.68
"""For the title and the uppermost switch's name; each further line needs LINE_HEIGHT."""
LINE_HEIGHT = 0.16
SIDE = 0.35
LABEL = 7.5
_NUMBERS_MOST = 128
_WIDEST = 30.0


@dataclass(frozen=True)
class Network:
    """A switch tree with a size.

    Attributes:
        topology: the cluster.
        layout: of its tree.
        arrows: the height of the room for arrows below the ranks.
        name_length: letters of the longest name of a host; 0 where they are left out.
        lines: of text below the title.
    """

    topology: Topology
    layout: Layout
    arrows: float
    name_length: int
    lines: int

    @property
    def tree(self) -> RankTree:
        """The tree that is drawn."""
        return self.topology.tree

    @property
    def step(self) -> float:
        """The distance from one rank to the next."""
        count = len(self.layout.order)
        wanted = max([0.26, *map(self._step_for, range(len(self.tree.names)))])
        return min(wanted, 0.7, (_WIDEST - 2 * SIDE) / count)

    def _step_for(self, node: int) -> float:
        """Return how far apart ranks must be for the name of an inner node to fit above it."""
        first, last = self.layout.spans[node]
        wide = text_width(self.tree.names[node], LABEL) + 0.2
        return 0.0 if self.tree.rank[node] >= 0 else wide / (last - first + 1)

    @property
    def width(self) -> float:
        """The width of the sheet."""
        return max(2 * SIDE + self.step * len(self.layout.order), 6.4)

    @property
    def radius(self) -> float:
        """The radius of a rank's circle."""
        return min(0.115, 0.42 * self.step)

    @property
    def names_height(self) -> float:
        """The height of the names of hosts above the ranks."""
        return 0.25 + self.name_length * 6.5 * 0.62 / 72

    @property
    def base(self) -> float:
        """The height of the ranks on the sheet."""
        return self.arrows + 0.35

    @property
    def inner_levels(self) -> int:
        """How many levels of switches, and of hosts with several ranks, there are."""
        ranks = self.tree.rank
        return 1 + max(
            (lv for lv, r in zip(self.layout.level, ranks, strict=True) if r < 0), default=-1
        )

    @property
    def height(self) -> float:
        """The height of the sheet."""
        return (
            self.base
            + self.names_height
            + LEVEL * self.inner_levels
            + HEAD
            + LINE_HEIGHT * self.lines
        )

    def x(self, place: float) -> float:
        """Return where a place from left to right is on the sheet."""
        slack = self.width - 2 * SIDE - self.step * len(self.layout.order)
        return SIDE + slack / 2 + self.step * (place + 0.5)

    def y(self, node: int) -> float:
        """Return the height of a node on the sheet."""
        if self.tree.rank[node] >= 0:
            return self.base
        from_below = self.inner_levels - 1 - self.layout.level[node]
        return self.base + self.names_height + LEVEL * (0.35 + from_below)


def network_of(topology: Topology, layout: Layout, arrows: float, lines: int) -> Network:
    """Return the network with a size; hosts' names are left out where they would be too small."""
    longest = max(map(len, topology.ranks))
    names = longest if topology.rank_count <= _NUMBERS_MOST else 0
    return Network(topology, layout, arrows, names, lines)


def draw_network(canvas: Canvas, network: Network, ink: dict[int, str]) -> None:
    """Draw switches, hosts and links.

    Args:
        canvas: the canvas to draw on.
        network: the network to draw.
        ink: colours of the links that stand out, by the node at their lower end.
    """
    tree, layout = network.tree, network.layout
    for node, above in enumerate(layout.above):
        if above >= 0:
            x = network.x(layout.centre(node))
            style = {"color": ink[node], "linewidth": 2.2} if node in ink else {"color": LINE}
            canvas.line((x, x), (network.y(node), network.y(above)), zorder=1, **style)
    for node, rank in enumerate(tree.rank):
        if rank < 0:
            _draw_inner(canvas, network, node)
        else:
            _draw_rank(canvas, network, node)


def _draw_inner(canvas: Canvas, network: Network, node: int) -> None:
    """Draw a switch, or a host with several ranks, as a bar over all that is below it."""
    layout, tree = network.layout, network.tree
    below = [n for n in tree.neighbours[node] if n != layout.above[node]]
    at = [network.x(layout.centre(n)) for n in below] or [network.x(layout.centre(node))]
    left, right = min(at) - 0.07, max(at) + 0.07
    colour, width = (INK, 4.5) if tree.is_switch[node] else (SOFT, 3.0)
    y = network.y(node)
    canvas.line((left, right), (y, y), color=colour, linewidth=width, zorder=2)
    # The name begins beyond the link upwards if it would cross it otherwise.
    link, name = network.x(layout.centre(node)), tree.names[node]
    crossed = layout.above[node] >= 0 and link < left + text_width(name, LABEL)
    x = link + 0.06 if crossed else left
    canvas.text(x, y + 0.07, name, LABEL, color=colour, weight="bold", zorder=5)


def _draw_rank(canvas: Canvas, network: Network, node: int) -> None:
    tree, layout = network.tree, network.layout
    x, y, rank = network.x(layout.centre(node)), network.base, tree.rank[node]
    canvas.circle(x, y, network.radius, "white", edgecolor=INK, linewidth=0.8)
    size = min(7.0, network.radius * 72 * 0.95)
    if len(layout.order) <= _NUMBERS_MOST:
        canvas.text(x, y, str(rank), size, ha="center", va="center_baseline", zorder=5)
    if network.name_length and ":" not in tree.names[node]:
        style = {"rotation": 90, "color": SOFT, "va": "bottom", "ha": "right"}
        canvas.text(x - 0.02, y + network.radius + 0.07, tree.names[node], 6.5, **style)


def left_out(topology: Topology) -> str:
    """Return a sentence about the ranks' texts that are left out; empty if none are."""
    if topology.rank_count <= _NUMBERS_MOST:
        return ""
    return f" Names and numbers of the {topology.rank_count} ranks are left out."
