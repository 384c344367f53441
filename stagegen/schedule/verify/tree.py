"""Checks trees for broadcast and reduce; for :mod:`stagegen.schedule.verify`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from stagegen.errors import ScheduleError
from stagegen.schedule.model import Message, Tree
from stagegen.schedule.verify.paths import Network, require, require_rank, require_same_ranks
from stagegen.schedule.verify.proof import Proof
from stagegen.topology import Edge, Topology

_SHARED_BY = {"bcast": "of different senders", "reduce": "to different receivers"}


def verify_tree(topology: Topology, tree: Tree) -> Proof:
    """Check that a tree reaches all ranks, its height, its arity, and where messages meet.

    Raises:
        ScheduleError: a property does not hold.
    """
    require_same_ranks(topology, tree.ranks)
    require(tree.collective in _SHARED_BY, f"tree: unknown collective {tree.collective!r}")
    network, count = Network(topology), topology.rank_count
    require_rank(tree.root, count, "tree")
    parent = _parents(tree, count)
    height = _height(tree.root, parent, count)
    require(height == tree.height, f"tree: the height is {height}, not {tree.height}")
    _check_contention(network, tree)
    _check_arity(tree, parent.values())
    _check_steps(network, tree)
    return Proof(
        collective=tree.collective,
        ranks=count,
        phases=None,
        bound_phases=None,
        syncs=None,
        checked=tuple(_findings(tree)),
    )


def _findings(tree: Tree) -> Iterator[str]:
    """Yield the properties that hold, in words."""
    way = f"in at most {tree.height} steps"
    if tree.collective == "bcast":
        yield f"the tree reaches every rank from rank {tree.root}, {way}"
    else:
        yield f"the tree leads from every rank to rank {tree.root}, {way}"
    if tree.arity is not None:
        children = "child" if tree.arity == 1 else "children"
        least = _least_height(len(tree.ranks), tree.arity)
        yield f"no rank has more than {tree.arity} {children}; {least} steps are the least then"
    no = "no network edge" if tree.contention_free else "network edges"
    yield f"messages {_SHARED_BY[tree.collective]} share {no}"


def _least_height(count: int, arity: int) -> int:
    """Return the height of a complete tree with room for `count` ranks."""
    height, level, room = 0, 1, 1
    while room < count:
        height, level = height + 1, level * arity
        room += level
    return height


def _parents(tree: Tree, count: int) -> dict[int, int]:
    """Return the parent of every rank but the root; each must have exactly one."""
    outward = tree.collective == "bcast"
    parent: dict[int, int] = {}
    for edge in tree.edges:
        for rank in edge:
            require_rank(rank, count, f"tree edge {edge}")
        upper, lower = edge if outward else (edge.destination, edge.source)
        leads = "into" if outward else "away from"
        require(lower != tree.root, f"tree edge {edge}: leads {leads} the root")
        require(lower not in parent, f"tree edge {edge}: rank {lower} has a second parent")
        parent[lower] = upper
    return parent


def _height(root: int, parent: dict[int, int], count: int) -> int:
    """Check that a path joins every rank and the root; return the longest path's length."""
    depth = {root: 0}
    for rank in range(count):
        way = [rank]
        while way[-1] not in depth:
            require(way[-1] in parent, f"tree: rank {way[-1]} has no parent")
            way.append(parent[way[-1]])
            require(len(way) <= count, f"tree: rank {rank} is on a cycle")
        for node in way[-2::-1]:
            depth[node] = depth[parent[node]] + 1
    return max(depth.values())


def _check_arity(tree: Tree, parents: Iterable[int]) -> None:
    for rank, children in Counter(parents).items():
        require(
            tree.arity is None or children <= tree.arity,
            f"tree: rank {rank} has {children} children, more than the arity {tree.arity}",
        )


def _check_contention(network: Network, tree: Tree) -> None:
    """Compare where messages of two senders (to two receivers) meet with the tree's own list."""
    peer = 0 if tree.collective == "bcast" else 1
    first: dict[Edge, Message] = {}
    meeting: dict[Edge, set[int]] = {}
    clash = None
    for message in tree.edges:
        for used in network.path(message):
            other = first.setdefault(used, message)
            if other[peer] != message[peer]:
                meeting.setdefault(used, {other[peer]}).add(message[peer])
                clash = clash or f"{other} and {message} share the edge {used[0]}→{used[1]}"
    require(
        (clash is None) == tree.contention_free,
        "tree: contention_free is wrong" + (f": {clash}" if clash else ""),
    )
    found = {edge: len(ranks) for edge, ranks in meeting.items()}
    told = dict(tree.contention)
    for edge in found.keys() | told.keys():
        if found.get(edge, 1) != told.get(edge, 1):
            raise ScheduleError(
                f"tree: the edge {edge[0]}→{edge[1]} is shared by {found.get(edge, 1)} ranks, "
                f"not by {told.get(edge, 1)}"
            )
    require(len(told) == len(tree.contention), "tree: an edge is listed twice as shared")


def _check_steps(network: Network, tree: Tree) -> None:
    """Compare the most ranks that share an edge in one step with the tree's own number."""
    if tree.contention_free:
        # One sender has one message in a step, and no two senders share an edge.
        most = min(1, len(tree.edges))
    else:
        most = max(_uses_in_steps(network, tree).values())
    require(most == tree.in_step, f"tree: {most} ranks share an edge in a step, not {tree.in_step}")


def _uses_in_steps(network: Network, tree: Tree) -> Counter[tuple[int, Edge]]:
    """Play an atomic broadcast, or a reduce from its end, and count the messages on edges."""
    outward = tree.collective == "bcast"
    below: dict[int, list[tuple[int, Message]]] = {}
    for message in tree.edges if outward else tree.edges[::-1]:
        upper, lower = message if outward else (message.destination, message.source)
        below.setdefault(upper, []).append((lower, message))
    uses: Counter[tuple[int, Edge]] = Counter()
    waiting = deque([(tree.root, 0)])
    while waiting:
        rank, arrived = waiting.popleft()
        for step, (lower, message) in enumerate(below.get(rank, ()), arrived + 1):
            waiting.append((lower, step))
            uses.update((step, edge) for edge in network.path(message))
    return uses
