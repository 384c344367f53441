"""Makes trees from the cluster, among them the configurations of the paper by their names.

Bongo, Anshus and Bjørndalen, section 6: each host has a subtree of its ranks, and one host has the
cluster root, a subtree of the hosts. Levels are added to either by a smaller arity (nary8W,
quad8W, binaryquad8W, binary8W; nary4W, binary4W). The cluster root is split over hosts by moving
its lowest level to other hosts (split4W, split4W-2; on NOW). Network links are added by moving the
top of each host's subtree to the host of the cluster root (figure 11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stagegen.errors import InputError
from stagegen.topology import Topology
from stagegen.trees.model import ConfiguredTree, Contributor, Node, ordered


@dataclass(frozen=True)
class TreeShape:
    """How to make a tree.

    Attributes:
        summary: what it looks like.
        host_arity: the most contributors of a node in a host's subtree; None: all ranks, one node.
        root_arity: the same of the cluster root.
        split: how many levels of the cluster root, from the lowest on, are done where their first
            contributor is, and not on the host of the root.
        flat_leaves: whether hosts that do no work of the cluster root have a subtree of one node.
        at_root: whether the top of each host's subtree is done on the host of the cluster root.
        by_host: whether there are subtrees of hosts; else all ranks are alike.
    """

    summary: str
    host_arity: int | None = None
    root_arity: int | None = None
    split: int = 0
    flat_leaves: bool = False
    at_root: bool = False
    by_host: bool = True


_NARY = TreeShape("one node on each host, and one for all hosts")
_QUAD = TreeShape("nodes of at most 4 contributors, on hosts and between them", 4, 4)
_BINARYQUAD = TreeShape("binary on hosts, nodes of at most 4 between them", 2, 4)
_BINARY = TreeShape("binary, on hosts and between them", 2, 2)
_SPLIT = TreeShape("binary; the lowest level between hosts is split over them", 2, 2, 1)
_SPLIT2 = replace(
    _SPLIT, summary="as split; hosts without a part of it have one node", flat_leaves=True
)
_FLAT = TreeShape("one node for all ranks", by_host=False)

SHAPES: Mapping[str, TreeShape] = {
    "flat": _FLAT,
    "nary": _NARY,
    "quad": _QUAD,
    "binaryquad": _BINARYQUAD,
    "binary": _BINARY,
    "split": _SPLIT,
    "split-2": _SPLIT2,
    "linked": replace(_BINARY, summary="binary; hosts' tops are on the root's host", at_root=True),
    "nary8W": _NARY,
    "quad8W": _QUAD,
    "binaryquad8W": _BINARYQUAD,
    "binary8W": _BINARY,
    "linked8W": replace(_BINARY, summary="binary8W with more network links", at_root=True),
    "nary4W": _NARY,
    "binary4W": _BINARY,
    "linked4W": replace(_BINARY, summary="binary4W with more network links", at_root=True),
    "split4W": _SPLIT,
    "split4W-2": _SPLIT2,
    "quadNOW": _QUAD,
    "splitNOW": replace(_QUAD, summary="quad; the lowest level between hosts is split", split=1),
    "binaryNOW": _SPLIT,
    "resplitNOW": replace(_SPLIT, summary="as binaryNOW, split at two levels", split=2),
    "naryBlade": _NARY,
    "splitBlade": TreeShape("one node on each host; between them nodes of 3, split", None, 3, 1),
}
"""By name: the general ones, then those of the paper with its names where it has some."""

#: Letters of a host's name in the name of its node, which has a number and more besides.
_HOST_MOST = 48

_ARITY = re.compile(r"([0-9]{1,4})-ary")


def shape_of(name: str) -> TreeShape:
    """Return the shape of a name: one of :data:`SHAPES`, or ``N-ary``.

    Raises:
        InputError: there is none.
    """
    if name in SHAPES:
        return SHAPES[name]
    arity = _ARITY.fullmatch(name)
    if arity is None or int(arity[1]) < 2:
        known = ", ".join(SHAPES)
        raise InputError(f"unknown shape {name!r}; choose from {known}, or N-ary with N from 2")
    number = int(arity[1])
    return TreeShape(f"nodes of at most {number} contributors", number, number)


def make_tree(
    topology: Topology, shape: TreeShape, name: str, root_host: str = ""
) -> ConfiguredTree:
    """Return the tree of a shape over all ranks.

    Args:
        topology: the cluster.
        shape: of the tree.
        name: of the tree.
        root_host: the host of the cluster root; default: that of rank 0.

    Raises:
        InputError: there is no such host with ranks, or an arity is below 2.
    """
    if topology.rank_count < 2:
        raise InputError("a single rank needs no tree; take a cluster of several ranks")
    if min(shape.host_arity or 2, shape.root_arity or 2) < 2 or shape.split < 0:
        raise InputError("an arity has to be at least 2, and the levels to split at least 0")
    root_host = root_host or topology.ranks[0]
    if root_host not in topology.ranks:
        raise InputError(f"no rank is on a host {root_host!r}; choose one of the topology file")
    if not shape.by_host:
        root = topology.ranks.index(root_host)
        everyone = tuple(range(topology.rank_count))
        return ConfiguredTree(name, (Node("root", root, everyone),), topology.rank_count)
    return ConfiguredTree(
        name, ordered(_Maker(topology, shape, root_host).nodes()), topology.rank_count
    )


class _Maker:
    """Makes the nodes of a tree of hosts' subtrees and a cluster root."""

    def __init__(self, topology: Topology, shape: TreeShape, root_host: str):
        hosts = list(dict.fromkeys(topology.ranks))
        # The host of the root comes first, so that the root's worker is one of its ranks.
        self._hosts = [root_host, *(host for host in hosts if host != root_host)]
        self._ranks = {
            host: [rank for rank, own in enumerate(topology.ranks) if own == host]
            for host in self._hosts
        }
        self._shape, self._root_host = shape, root_host
        self._nodes: dict[str, Node] = {}
        self._turn = 0

    def nodes(self) -> list[Node]:
        width = self._shape.root_arity or len(self._hosts)
        # Hosts with a node of the cluster root: those of its lowest level, if that is split. The
        # last host, if it is alone there, has none.
        working = set(self._hosts[:-1:width] if self._shape.split else ()) | {self._hosts[0]}
        tops: list[tuple[Contributor, int]] = []
        for host in self._hosts:
            plain = self._shape.flat_leaves and host not in working
            tops.append(self._subtree(host, None if plain else self._shape.host_arity))
        level = 0
        while len(tops) > 1:
            tops = self._root_level(tops, level)
            level += 1
        return list(self._nodes.values())

    def _add(self, name: str, worker: int, contributors: Sequence[Contributor]) -> str:
        while name in self._nodes:  # a host may be called as another host's node
            name += "_"
        self._nodes[name] = Node(name, worker, tuple(contributors))
        return name

    def _subtree(self, host: str, arity: int | None) -> tuple[Contributor, int]:
        """Add the nodes of a host; return its top, a node or its only rank, and the worker."""
        below: list[tuple[Contributor, int]] = [(rank, rank) for rank in self._ranks[host]]
        top = _plain(host, self._hosts.index(host))
        level = 0
        while len(below) > 1:
            level += 1
            width = arity or len(below)
            runs = [below[at : at + width] for at in range(0, len(below), width)]
            is_top = len(runs) == 1
            above: list[tuple[Contributor, int]] = []
            for number, run in enumerate(runs):
                if len(run) == 1:
                    above.append(run[0])
                    continue
                name = top if is_top else f"{top}.{level}.{number}"
                worker = run[0][1]
                if is_top and self._shape.at_root and host != self._root_host:
                    worker = self._next_at_root()
                above.append((self._add(name, worker, [one for one, _ in run]), worker))
            below = above
        return below[0]

    def _next_at_root(self) -> int:
        """Return the ranks of the root's host in turn, from the second on."""
        ranks = self._ranks[self._root_host]
        self._turn += 1
        return ranks[self._turn % len(ranks)]

    def _root_level(
        self, below: list[tuple[Contributor, int]], level: int
    ) -> list[tuple[Contributor, int]]:
        """Add a level of the cluster root; return its nodes with their workers."""
        width = self._shape.root_arity or len(below)
        runs = [below[at : at + width] for at in range(0, len(below), width)]
        above: list[tuple[Contributor, int]] = []
        for number, run in enumerate(runs):
            if len(run) == 1:
                above.append(run[0])
                continue
            worker = run[0][1]
            if number and level >= self._shape.split:
                worker = self._next_at_root()
            name = "root" if len(runs) == 1 else f"root.{level + 1}.{number}"
            above.append((self._add(name, worker, [one for one, _ in run]), worker))
        return above


def _plain(host: str, place: int) -> str:
    """Return the name of a host's node: it begins with a letter and is not that of the root.

    Args:
        host: its name.
        place: its number, in which names differ that are too long for a node and are cut.
    """
    short = host if len(host) <= _HOST_MOST else f"{host[:_HOST_MOST]}_{place}"
    return short if short[0].isalpha() and not short.startswith("root") else f"host-{short}"
