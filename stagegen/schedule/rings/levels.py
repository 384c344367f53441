"""Which ends of a switch's branches can meet, judged by their sums.

:mod:`stagegen.schedule.rings.branch_ends` defines ends, inner ends and tight levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Ends = tuple[int, int]
"""Two ends of a branch, the smaller one first."""
Options = tuple[Ends, ...]
"""Pairs of ends that a branch can have; no pair matches or beats another at both ends."""


def pareto(ends: Iterable[Ends]) -> Options:
    """Return the pairs of ends that no other pair matches at both ends, sorted."""
    best: list[Ends] = []
    for small, large in sorted(set(ends)):
        if not best or large < best[-1][1]:
            best.append((small, large))
    return tuple(best)


class State(NamedTuple):
    """The choices so far, as far as they matter to the rest.

    Attributes:
        slack: for each level t, how many more inner ends are ≤ D-t than ≥ t.
        pieces: for each node of :class:`Levels` the least node that branches join it
            with; -1 where there is no end.
        outer: the sizes of the outer ends, ascending.
    """

    slack: tuple[int, ...]
    pieces: tuple[int, ...]
    outer: tuple[int, ...]


@dataclass(frozen=True)
class Levels:
    """The levels t at which numbers of ends are compared, from the highest down.

    An end v belongs to the node max(v, D-v). Nodes above D/2 are levels; D/2 itself is a
    node without a level, as its ends may meet any ends that are not larger.
    """

    limit: int
    nodes: tuple[int, ...]

    @classmethod
    def of(cls, limit: int, groups: Iterable[Options]) -> Levels:
        """Return the levels at which the ends that branches can have make a difference."""
        sizes = {size for options in groups for ends in options for size in ends}
        return cls(limit, tuple(sorted({max(v, limit - v) for v in sizes}, reverse=True)))

    @cached_property
    def count(self) -> int:
        """How many of the nodes are levels."""
        return sum(2 * node > self.limit for node in self.nodes)

    def node(self, size: int) -> int:
        """Return the index of the node that an end belongs to."""
        return self.nodes.index(max(size, self.limit - size))

    def gain(self, inner: Sequence[int]) -> tuple[int, ...]:
        """Return what inner ends add to the slack of each level."""
        total = [0] * self.count
        for size in inner:
            for level in range(self.node(size), self.count):
                total[level] += 1 if 2 * size < self.limit else -1
        return tuple(total)

    def connected(self, state: State) -> bool:
        """Return whether condition (2) holds."""
        pieces = [i if piece < 0 else piece for i, piece in enumerate(state.pieces)]
        for upper in range(len(pieces) - 1):
            if state.slack[upper] > 0:
                pieces = _joined(pieces, upper, upper + 1)
        return len({new for new, old in zip(pieces, state.pieces, strict=True) if old >= 0}) <= 1

    def added(self, state: State, inner: Sequence[int], count: int) -> State:
        """Return the state after `count` more branches with these inner ends."""
        gain = self.gain(inner)
        pieces = list(state.pieces)
        nodes = [self.node(size) for size in inner]
        for node in nodes:
            if pieces[node] < 0:
                pieces[node] = node
        pieces = _joined(pieces, nodes[0], nodes[-1])
        slack = tuple(s + count * g for s, g in zip(state.slack, gain, strict=True))
        return state._replace(slack=slack, pieces=tuple(pieces))


def _joined(pieces: Sequence[int], one: int, other: int) -> list[int]:
    low, high = sorted((pieces[one], pieces[other]))
    return [low if piece == high else piece for piece in pieces]
