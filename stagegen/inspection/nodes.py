"""The inner nodes of a call's tree, with the time stamps of Bongo et al. (§4, Fig. 6).

A routine of messages does not tell its tree. But each message has a sender, a receiver and times:

- A rank that sends one message before the last one that it receives hands its operand to the
  receiver, its parent. The last one that it receives is the result.
- What it receives before is of its contributors; what it sends afterwards goes to those that
  get the result from it.
- Ranks that send each other messages at the same time exchange. They are roots of trees, side by
  side, and the exchange is the core.

So the tree is that of the call, even if a token moved its root. A routine without messages tells
its nodes (``COLL_EVENT_NODE_IN`` and so on).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from stagegen.catalogue.collective import load_collectives
from stagegen.inspection.series import Call, Event
from stagegen.inspection.trace import EventType

#: What ``COLL_EVENT_NODE_UP`` and ``_DOWN`` tell where the node above is outside of the tree.
_AT_CALLS_ROOT = 1


@lru_cache
def _one_way() -> tuple[frozenset[str], frozenset[str]]:
    """Return the collectives whose data goes to the root only, and those that have it from it."""
    described = load_collectives()
    return (
        frozenset(one.name for one in described if one.to_root),
        frozenset(one.name for one in described if one.from_root),
    )


def of_node(number: int) -> int:
    """Return the name of a node as a contributor; those of ranks are their numbers."""
    return -1 - number


@dataclass
class Node:
    """An inner node in one call, or a leaf with a rank of its own; seconds.

    Attributes:
        number: its name.
        rank: which rank does its work.
        ins: when the data of each contributor was there (t1).
        outs: when each contributor could have the result (t4).
        up: when it handed on what all had (t2); None at a root.
        down: when it got the result (t3); None at a root.
        parent: the node that it hands on to.
        giver: the node that it gets the result from: the parent, unless the routine's two ways have
            trees of their own.
        is_below_calls_root: whether the node above is the call's root, outside of the routine's
            tree.
    """

    number: int
    rank: int
    ins: dict[int, float] = field(default_factory=dict)
    outs: dict[int, float] = field(default_factory=dict)
    up: float | None = None
    down: float | None = None
    parent: int | None = None
    giver: int | None = None
    is_below_calls_root: bool = False

    @property
    def last_in(self) -> float:
        """When the last contributor arrived."""
        return max(self.ins.values())

    @property
    def first_out(self) -> float:
        """When the first contributor departed."""
        return min(self.outs.values())


@dataclass(frozen=True)
class _Step:
    sends: bool
    peer: int
    at: float


def nodes_of(collective: str, call: Call) -> dict[int, Node] | None:
    """Return the nodes of a call by their numbers; None if its messages are not those of a tree."""
    told = _told(call)
    if told:
        return told if _is_whole(told) else None
    steps = [_steps(rank, events) for rank, events in enumerate(call.events)]
    _drop_exchanges(steps)
    to_root, from_root = _one_way()
    nodes = {}
    for rank, own in enumerate(steps):
        node = _node(collective, rank, own)
        if node is None:
            return None
        if collective not in from_root:
            node.ins[rank] = call.begun[rank]
        if collective not in to_root:
            node.outs[rank] = call.ended[rank]
        nodes[rank] = node
    return nodes if _is_tree(nodes) else None


def _told(call: Call) -> dict[int, Node]:
    """Return the nodes that routines tell themselves."""
    nodes: dict[int, Node] = {}
    for rank, events in enumerate(call.events):
        for event in events:
            if event.type < EventType.NODE_IN:
                continue
            node = nodes.setdefault(event.b, Node(event.b, rank))
            if event.type is EventType.NODE_IN:
                node.ins[event.a] = event.at
            elif event.type is EventType.NODE_OUT:
                node.outs[event.a] = event.at
            elif event.type is EventType.NODE_UP:
                node.up = event.at
            else:
                node.down = event.at
            if event.type in (EventType.NODE_UP, EventType.NODE_DOWN) and event.a == _AT_CALLS_ROOT:
                node.is_below_calls_root = True
    for node in nodes.values():
        for name in {*node.ins, *node.outs}:
            child = nodes.get(-1 - name)
            if child is not None:
                child.parent = node.number if name in node.ins else child.parent
                child.giver = node.number if name in node.outs else child.giver
    return nodes


def _is_whole(told: Mapping[int, Node]) -> bool:
    """Whether all contributors that are nodes were told, and every way ends at a root.

    A node below another one must have told when it handed on, and when it got the result.
    """
    names = {name for node in told.values() for name in (*node.ins, *node.outs)}
    if any(name < 0 and -1 - name not in told for name in names):
        return False
    if any(
        (node.parent is not None and node.up is None)
        or (node.giver is not None and node.down is None)
        for node in told.values()
    ):
        return False
    return all(_ends(told, start, "parent") and _ends(told, start, "giver") for start in told)


def _steps(rank: int, events: Sequence[Event]) -> list[_Step]:
    return [
        _Step(event.type is EventType.SENT, event.a, event.at)
        for event in events
        if event.type in (EventType.SENT, EventType.RECEIVED) and event.a != rank
    ]


def _drop_exchanges(steps: list[list[_Step]]) -> None:
    """Leave out messages of two ranks that both send before they receive, each time."""

    def words(rank: int, peer: int) -> str:
        return "".join("S" if one.sends else "R" for one in steps[rank] if one.peer == peer)

    pairs = {(rank, one.peer) for rank, own in enumerate(steps) for one in own}
    exchange = set()
    for rank, peer in pairs:
        word = words(rank, peer)
        if word == words(peer, rank) == "SR" * (len(word) // 2):
            exchange.add((rank, peer))
    for rank, own in enumerate(steps):
        steps[rank] = [one for one in own if (rank, one.peer) not in exchange]


def _node(collective: str, rank: int, steps: Sequence[_Step]) -> Node | None:
    node = Node(rank, rank)
    sends = [one for one in steps if one.sends]
    receives = [one for one in steps if not one.sends]
    to_root, from_root = _one_way()
    if collective in to_root:
        return _filled(node, receives, sends, [], [])
    if collective in from_root:
        return _filled(node, [], [], receives, sends)
    last = max((i for i, one in enumerate(steps) if not one.sends), default=-1)
    before = [one for one in steps[: max(last, 0)] if one.sends]
    if not before:
        return _filled(node, receives, [], [], sends)
    result, after = steps[last], [one for one in steps[last:] if one.sends]
    if any(one.peer == result.peer for one in after):
        # A token came while the operand went the other way: this rank became the root.
        earlier = [one for one in receives if one.peer != result.peer]
        return _filled(node, [*earlier, result], [], [], after)
    earlier = [one for one in receives[:-1] if one.peer != result.peer]
    return _filled(node, earlier, before, [result], after)


def _filled(
    node: Node,
    ins: Sequence[_Step],
    ups: Sequence[_Step],
    downs: Sequence[_Step],
    outs: Sequence[_Step],
) -> Node | None:
    """Return the node; None if a rank sends or receives several pieces."""
    if len(ups) > 1 or len(downs) > 1:
        return None
    for ways, steps in ((node.ins, ins), (node.outs, outs)):
        for one in steps:
            if of_node(one.peer) in ways:
                return None
            ways[of_node(one.peer)] = one.at
    if ups:
        node.up, node.parent = ups[0].at, ups[0].peer
    if downs:
        node.down, node.giver = downs[0].at, downs[0].peer
    return node


def _is_tree(nodes: dict[int, Node]) -> bool:
    """Whether both ends of every edge say so, and every way ends at a root."""
    children = 0
    for node in nodes.values():
        name = of_node(node.number)
        if node.parent is not None and name not in nodes[node.parent].ins:
            return False
        if node.giver is not None and name not in nodes[node.giver].outs:
            return False
        children += sum(one < 0 for one in (*node.ins, *node.outs))
    told = sum((n.parent is not None) + (n.giver is not None) for n in nodes.values())
    if not children or told != children:
        return False
    return all(_ends(nodes, start, "parent") and _ends(nodes, start, "giver") for start in nodes)


def _ends(nodes: Mapping[int, Node], start: int, way: str) -> bool:
    """Tell whether the way from a node, by parents or givers, ends and is no circle."""
    seen: set[int] = set()
    at: int | None = start
    while at is not None:
        if at in seen:
            return False
        seen.add(at)
        at = getattr(nodes[at], way)
    return True
