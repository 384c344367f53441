"""The time of a call by stages of each rank's path (Bongo et al., §4, Tables 2 and 3).

The path of a rank goes down from the rank through the nodes to the root, the core, and up again.
Its stages: the arrival wait and the down latency of each node, the messages between nodes, the
core, the up latency and the departure wait of each node. The stages of a rank add up to the time
of its call.

Down latency counts from the last arrival, up latency to the first departure. A message between
nodes of two ranks has stamps of two clocks, so the paper halves what the way there and back takes
together; this needs no synchronised clocks. ``by_clocks`` takes the ways as the clocks show them.

The root of a reduce or a bcast may be another rank than that of the routine's tree. Then it is a
node above that one, and the message between the two is a stage of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stagegen.inspection.nodes import Node, of_node

DOWN, CORE, UP = "down", "core", "up"
ARRIVAL_WAIT, LATENCY, DEPARTURE_WAIT, MESSAGE, ROOT_MESSAGE = (
    "arrival wait",
    "latency",
    "departure wait",
    "message",
    "message of the call's root",
)
#: Parts of the tree: the rank itself; nodes that are on one host with all ranks below; others.
LEAF, HOST, ROOT = "leaf", "host", "root"
#: Messages between nodes: within a host; between hosts, the paper's proxies.
INSIDE, NETWORK = "inside", "network"


@dataclass(frozen=True)
class Stage:
    """A stage of a path.

    Attributes:
        way: down to the root, the core, or up again.
        part: of the tree, one of :data:`LEAF` to :data:`NETWORK`, or :data:`CORE`.
        level: the node's place among those of its part on the path, from the rank on.
        what: wait, latency or message; :data:`ROOT_MESSAGE` is that between the roots of the tree
            and of the call.
        node: the node, or the lower one of a message.
    """

    way: str
    part: str
    level: int
    what: str
    node: int

    @property
    def is_wait_for_others(self) -> bool:
        """Whether it is an arrival wait: it is the load's, not the tree's (§4)."""
        return self.what == ARRIVAL_WAIT

    @property
    def is_message(self) -> bool:
        """Whether it is between two nodes."""
        return self.what in (MESSAGE, ROOT_MESSAGE)

    @property
    def title(self) -> str:
        """In words, without the node."""
        if self.part == CORE:
            return "core"
        if self.is_message:
            where = "message between hosts" if self.part == NETWORK else "message within a host"
            if self.what == ROOT_MESSAGE:
                return f"{where} {'to' if self.way == DOWN else 'from'} the call's root"
            return f"{where} {self.level}, {self.way}"
        names = {LEAF: "rank", HOST: "host subtree", ROOT: "cluster-root subtree"}
        level = "" if self.part == LEAF else f" level {self.level}"
        way = f" {self.way}" if self.what == LATENCY else ""
        return f"{names[self.part]}{level}{way} {self.what}"


Path = tuple[tuple[Stage, float], ...]


def paths_of(
    nodes: Mapping[int, Node], hosts: Sequence[str], by_clocks: bool = False
) -> dict[int, Path]:
    """Return the stages of each rank's path in a call, with their seconds.

    Args:
        nodes: of the call.
        hosts: of the ranks.
        by_clocks: take messages' times as the clocks show them, not as halves.
    """
    parts = tree_parts(nodes, hosts)
    found = {}
    for rank in range(len(hosts)):
        starts = [n for n in nodes.values() if rank in n.ins or rank in n.outs]
        if starts:
            found[rank] = _path(rank, starts[0], nodes, hosts, parts, by_clocks)
    return found


def tree_parts(nodes: Mapping[int, Node], hosts: Sequence[str]) -> dict[int, str]:
    """Return the part of the tree that each node is of.

    A node of the cluster root may have nodes of its own host as contributors. So the ranks below
    it count, down to the lowest ones, by the routine's way to the root and by its way back.
    """
    below: dict[int, set[str]] = defaultdict(set)
    for way in ("parent", "giver"):
        for node in nodes.values():
            names = node.ins if way == "parent" else node.outs
            own = {hosts[node.rank], *(hosts[name] for name in names if name >= 0)}
            for above in _line(node, nodes, way):
                below[above.number] |= own
    return {
        number: LEAF if _is_leaf(node, len(hosts)) else ROOT if len(below[number]) > 1 else HOST
        for number, node in nodes.items()
    }


def _is_leaf(node: Node, ranks: int) -> bool:
    """Whether it is a rank; an inner node of a tree file has a number above those of the ranks."""
    names = {*node.ins, *node.outs}
    return node.number < ranks and len(names) == 1 and not any(name < 0 for name in names)


def _line(start: Node, nodes: Mapping[int, Node], way: str) -> list[Node]:
    line, at = [start], getattr(start, way)
    while at is not None:
        line.append(nodes[at])
        at = getattr(nodes[at], way)
    return line


def _path(
    rank: int,
    start: Node,
    nodes: Mapping[int, Node],
    hosts: Sequence[str],
    parts: Mapping[int, str],
    by_clocks: bool,
) -> Path:
    down: list[tuple[Stage, float]] = []
    up: list[tuple[Stage, float]] = []
    there, back = _line(start, nodes, "parent"), _line(start, nodes, "giver")
    # A half of a way that is gone in one direction only would be missing in the sum.
    by_clocks = by_clocks or [one.number for one in there] != [one.number for one in back]
    for way, line, found in ((DOWN, there, down), (UP, back, up)):
        levels: dict[str, int] = {}
        name = rank
        for place, node in enumerate(line):
            part = parts[node.number]
            level = levels.get(part, 0)
            levels[part] = level + 1
            found.extend(_at_node(way, part, level, name, node))
            name = of_node(node.number)
            if place + 1 < len(line):
                above = line[place + 1]
                part = INSIDE if hosts[node.rank] == hosts[above.rank] else NETWORK
                step = levels.get(part, 0)
                levels[part] = step + 1
                seconds = _message(way, node, above, by_clocks)
                stage = Stage(way, part, step, what_to_above(node), node.number)
                found.append((stage, seconds))
    root = there[-1]
    core = []
    if root.ins and root.outs:
        core = [(Stage(CORE, CORE, 0, LATENCY, root.number), root.first_out - root.last_in)]
    return (*down, *core, *reversed(up))


def _at_node(way: str, part: str, level: int, name: int, node: Node) -> list[tuple[Stage, float]]:
    """Return the stages of a node, from below to above."""

    def stage(what: str) -> Stage:
        return Stage(way, part, level, what, node.number)

    found = []
    if way == DOWN and name in node.ins:
        if len(node.ins) > 1:
            found.append((stage(ARRIVAL_WAIT), node.last_in - node.ins[name]))
        if node.up is not None:
            found.append((stage(LATENCY), node.up - node.last_in))
    if way == UP and name in node.outs:
        if len(node.outs) > 1:
            found.append((stage(DEPARTURE_WAIT), node.outs[name] - node.first_out))
        if node.down is not None:
            found.append((stage(LATENCY), node.first_out - node.down))
    return found


def what_to_above(node: Node) -> str:
    """Return what a message between a node and the one above it is."""
    return ROOT_MESSAGE if node.is_below_calls_root else MESSAGE


def round_trip(lower: Node, upper: Node) -> float | None:
    """Return what a message there and one back take together (a proxy's wrapper latency)."""
    name = of_node(lower.number)
    if lower.up is None or lower.down is None or name not in upper.ins or name not in upper.outs:
        return None
    return (lower.down - lower.up) - (upper.outs[name] - upper.ins[name])


def _message(way: str, lower: Node, upper: Node, by_clocks: bool) -> float:
    both = None if by_clocks else round_trip(lower, upper)
    if both is not None:
        return both / 2
    name = of_node(lower.number)
    if way == DOWN:
        return upper.ins[name] - (lower.up or 0.0)
    return (lower.down or 0.0) - upper.outs[name]
