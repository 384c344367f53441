"""A configured tree: its inner nodes, their contributors, and the ranks that do their work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

Contributor = int | str
"""A rank, by its number, or a node, by its name."""

NODES_MOST = 8192
"""The most nodes of a tree: each has a message tag of its own."""

LEVELS_MOST = 256
"""The most levels of a tree."""


@dataclass(frozen=True)
class Node:
    """An inner node of a tree.

    Attributes:
        name: unique in the tree.
        worker: the rank that does its work: it combines what comes, and hands the result down.
        contributors: ranks and nodes below it, in the order of serving them; at least one.
    """

    name: str
    worker: int
    contributors: tuple[Contributor, ...]


@dataclass(frozen=True)
class ConfiguredTree:
    """A tree over all ranks, whose leaves are the ranks.

    Attributes:
        name: of the tree.
        nodes: in the order of :func:`ordered`: all contributors of a node come before it, and the
            root is the last one.
        ranks: how many ranks there are; each contributes to exactly one node.
    """

    name: str
    nodes: tuple[Node, ...]
    ranks: int

    @property
    def root(self) -> Node:
        """The node that contributes to none."""
        return self.nodes[-1]

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by their names."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def parent(self) -> Mapping[Contributor, Node]:
        """The node that each rank, and each node but the root, contributes to."""
        return {one: node for node in self.nodes for one in node.contributors}

    @cached_property
    def depth(self) -> Mapping[str, int]:
        """How many nodes are above each node; 0 for the root."""
        depth: dict[str, int] = {}
        for node in reversed(self.nodes):
            above = self.parent.get(node.name)
            depth[node.name] = 0 if above is None else depth[above.name] + 1
        return depth

    @property
    def height(self) -> int:
        """The most nodes between a rank and the result, both ends included: 1 for a flat tree."""
        return 1 + max(self.depth.values())

    def worker_of(self, contributor: Contributor) -> int:
        """Return the rank that hands over a contributor's data: itself, or a node's worker."""
        return contributor if isinstance(contributor, int) else self.by_name[contributor].worker

    @cached_property
    def up(self) -> tuple[tuple[Contributor, Node], ...]:
        """The contributions that are messages, (contributor, node), in the order of the nodes."""
        return tuple(
            (one, node)
            for node in self.nodes
            for one in node.contributors
            if self.worker_of(one) != node.worker
        )

    @cached_property
    def down(self) -> tuple[tuple[int, int], ...]:
        """The messages of the result, (from, to): every rank but the root's worker gets one.

        From the root down, a node's worker sends to each contributor that has no result yet.
        """
        has = {self.root.worker}
        messages: list[tuple[int, int]] = []
        for node in reversed(self.nodes):
            for one in node.contributors:
                rank = self.worker_of(one)
                if rank not in has:
                    has.add(rank)
                    messages.append((node.worker, rank))
        return tuple(messages)

    @cached_property
    def rows(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Each node as its worker and its contributors, in numbers: node k is ``ranks + k``."""
        number = {node.name: self.ranks + place for place, node in enumerate(self.nodes)}
        return tuple(
            (
                node.worker,
                tuple(one if isinstance(one, int) else number[one] for one in node.contributors),
            )
            for node in self.nodes
        )

    def renamed(self, name: str) -> ConfiguredTree:
        """Return the same tree with another name."""
        return replace(self, name=name)


def ordered(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return nodes from the deepest to the root, those of one depth in the order of their parents.

    The order follows from the tree alone, not from the order in which the nodes are given.

    Args:
        nodes: of one tree, which has a root and no circle.
    """
    by_name = {node.name: node for node in nodes}
    below = {one for node in by_name.values() for one in node.contributors}
    found: list[Node] = [node for node in by_name.values() if node.name not in below]
    for node in found:
        found += [by_name[one] for one in node.contributors if isinstance(one, str)]
    return tuple(reversed(found))


def spans(ranks: Sequence[int]) -> list[str]:
    """Return runs of ascending ranks as ``first-last``, single ranks as they are."""
    runs: list[tuple[int, int]] = []
    for rank in ranks:
        if runs and runs[-1][1] == rank - 1:
            runs[-1] = runs[-1][0], rank
        else:
            runs.append((rank, rank))
    return [str(first) if first == last else f"{first}-{last}" for first, last in runs]
