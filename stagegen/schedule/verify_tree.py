"""Checks broadcast trees; for :mod:`stagegen.schedule.verify`."""

from __future__ import annotations

from stagegen.schedule.model import Message
from stagegen.schedule.proof import Proof
from stagegen.schedule.shapes import Tree
from stagegen.schedule.verify_paths import Network, require, require_rank, require_same_ranks
from stagegen.topology import Topology


def verify_tree(topology: Topology, tree: Tree) -> Proof:
    """Check a broadcast tree.

    Raises:
        ScheduleError: a property does not hold.
    """
    require_same_ranks(topology, tree.ranks)
    network, count = Network(topology), topology.rank_count
    require_rank(tree.root, count, "tree")
    depth = _check_spanning(tree, count)
    height = max(depth.values())
    require(height == tree.height, f"tree: the height is {height}, not {tree.height}")
    clash = _contention_of_senders(network, tree)
    require(
        (clash is None) == tree.contention_free,
        "tree: contention_free is wrong" + (f": {clash}" if clash else ""),
    )
    return Proof(
        collective="bcast",
        ranks=count,
        phases=None,
        bound_phases=None,
        syncs=None,
        checked=(
            f"the tree reaches every rank from rank {tree.root}, in at most {height} steps",
            "messages of different senders share no network edge"
            if clash is None
            else "messages of different senders share network edges",
        ),
    )


def _check_spanning(tree: Tree, count: int) -> dict[int, int]:
    """Check that every rank but the root has one parent and a way from the root."""
    parent: dict[int, int] = {}
    for edge in tree.edges:
        for rank in edge:
            require_rank(rank, count, f"tree edge {edge}")
        require(edge.destination != tree.root, f"tree edge {edge}: leads into the root")
        require(
            edge.destination not in parent,
            f"tree edge {edge}: rank {edge.destination} has a second parent",
        )
        parent[edge.destination] = edge.source
    depth = {tree.root: 0}
    for rank in range(count):
        way = [rank]
        while way[-1] not in depth:
            require(way[-1] in parent, f"tree: rank {way[-1]} has no parent")
            way.append(parent[way[-1]])
            require(len(way) <= count, f"tree: rank {rank} is on a cycle")
        for node in way[-2::-1]:
            depth[node] = depth[parent[node]] + 1
    return depth


def _contention_of_senders(network: Network, tree: Tree) -> str | None:
    """Return in words where messages of two senders meet; one sender sends in turn."""
    user: dict[tuple[str, str], Message] = {}
    for edge in tree.edges:
        for used in network.path(edge):
            first = user.setdefault(used, edge)
            if first.source != edge.source:
                return f"{first} and {edge} share the edge {used[0]}→{used[1]}"
    return None
