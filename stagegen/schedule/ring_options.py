"""What the two ends of a switch's branches can be together, for a limit on where they meet.

The ends of a branch are numbers of switches: from its link to its first and to its last machine.
A branch that has several *options* for its two ends must be given one; two of all ends are
*outer* ends, which the switch's own parent sees; all others are *inner* ends and meet in pairs,
each pair summing to at most the limit D.

An order of the branches exists iff (1) for every t > D/2 there are at least as many inner ends
≤ D-t as ≥ t, and (2) the graph of layers and branches below is connected. Call t *tight* if both
numbers are equal and not 0. Ends on the two sides of a tight t cannot meet, so the tight t cut the
ends into layers; two layers are joined by a branch with an inner end in each. The proof is in
``docs/theory.md``, the construction in :mod:`stagegen.schedule.ring_chain`.

The search adds branch after branch and keeps what conditions (1) and (2) need to know of those
added: how much the smaller ends are ahead at every t, and which of the ends are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Ends = tuple[int, int]
"""Two ends of a branch, the smaller one first."""
Options = tuple[Ends, ...]
"""Ends that a branch can have, none of them as good or better at both ends than another."""


class Step(NamedTuple):
    """What a state was made by; steps are linked from the last one to the first.

    Attributes:
        before: the step before it.
        options: those of the branches that were added.
        ends: what was chosen of them.
        outer: which of the two ends are outer ends; empty for a branch between others.
        count: how many branches were added.
    """

    before: Step | None
    options: Options
    ends: Ends
    outer: tuple[int, ...]
    count: int


class State(NamedTuple):
    """What has been chosen so far, as far as it matters to the rest.

    Attributes:
        slack: for each level t, how many more inner ends are ≤ D-t than ≥ t.
        pieces: for each node of :class:`_Levels` the least node that it is joined with by
            branches; -1 where there is no end.
        outer: the sizes of the outer ends, ascending.
    """

    slack: tuple[int, ...]
    pieces: tuple[int, ...]
    outer: tuple[int, ...]


_States = dict[State, Step | None]


@dataclass(frozen=True)
class _Levels:
    """The levels t at which numbers of ends are compared, from the highest down.

    An end v belongs to the node max(v, D-v). Nodes above D/2 are levels; D/2 itself is a
    node without a level, as its ends may meet any that are not larger.
    """

    limit: int
    nodes: tuple[int, ...]

    @classmethod
    def of(cls, limit: int, groups: Iterable[Options]) -> _Levels:
        sizes = {size for options in groups for ends in options for size in ends}
        return cls(limit, tuple(sorted({max(v, limit - v) for v in sizes}, reverse=True)))

    @cached_property
    def count(self) -> int:
        """How many of the nodes are levels."""
        return sum(2 * node > self.limit for node in self.nodes)

    def node(self, size: int) -> int:
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


def _joined(pieces: Sequence[int], one: int, other: int) -> list[int]:
    low, high = sorted((pieces[one], pieces[other]))
    return [low if piece == high else piece for piece in pieces]


def switch_options(groups: Mapping[Options, int], limit: int, closed: bool) -> dict[Ends, Step]:
    """Return the ends that a switch's branches can have together, and how.

    Cost: as many states per branch as there are different slacks and pieces, at most
    (4k+1)^m times the partitions of m+1 nodes for k branches and m ≤ ⌈D/2⌉ levels, less what
    is dominated. Branches without a choice count as one.

    Args:
        groups: how many branches have each of the options.
        limit: the most that two ends may sum to where they meet.
        closed: whether all ends are inner ends and the order is a circle.

    Returns:
        For each of the best pairs of outer ends the last step to it; (0, 0) where closed.
    """
    if not closed and sum(groups.values()) == 1:
        (options,) = groups
        return {ends: Step(None, options, ends, (0, 1), 1) for ends in options}
    levels = _Levels.of(limit, groups)
    start = State((0,) * levels.count, (-1,) * len(levels.nodes), ())
    states: _States = {start: None}
    later = _Later.after(levels, groups)
    for (options, count), rest in zip(groups.items(), later, strict=True):
        states = rest.pruned(_with_group(levels, states, options, count, 0 if closed else 2))
    found = {
        (state.outer[0], state.outer[1]) if state.outer else (0, 0): step
        for state, step in states.items()
        if step is not None and len(state.outer) == (0 if closed else 2)
        if levels.connected(state)
    }
    return {ends: found[ends] for ends in pareto(found)}


def pareto(ends: Iterable[Ends]) -> Options:
    """Return those pairs of ends than which no other is as good at both ends, sorted."""
    best: list[Ends] = []
    for small, large in sorted(set(ends)):
        if not best or large < best[-1][1]:
            best.append((small, large))
    return tuple(best)


@dataclass(frozen=True)
class _Later:
    """What branches that are added later can still change.

    Attributes:
        most: how much they can add to the slack of each level, at most.
        least: the same, at least.
    """

    most: tuple[int, ...]
    least: tuple[int, ...]

    @classmethod
    def after(cls, levels: _Levels, groups: Mapping[Options, int]) -> list[_Later]:
        """Return it for what comes after each of the groups."""
        most = least = (0,) * levels.count
        result: list[_Later] = []
        for options, count in reversed(groups.items()):
            result.append(cls(most, least))
            inner = [part for ends in options for part in (ends, ends[:1], ends[1:])]
            gains = list(zip(*map(levels.gain, inner), strict=True))
            most = tuple(m + count * max(g) for m, g in zip(most, gains, strict=True))
            least = tuple(m + count * min(g) for m, g in zip(least, gains, strict=True))
        return result[::-1]

    def pruned(self, states: _States) -> _States:
        """Leave out states that cannot end well, and those that another one dominates.

        More slack is never worse: it leaves fewer levels tight. So slack beyond what later
        branches can use up is cut off, and of states with the same pieces only the best remain.
        """
        enough = [1 - least for least in self.least]
        sorts: dict[object, _States] = {}
        for state, step in states.items():
            if all(s + m >= 0 for s, m in zip(state.slack, self.most, strict=True)):
                slack = tuple(map(min, state.slack, enough))
                kind = sorts.setdefault((state.pieces, len(state.outer)), {})
                kind.setdefault(state._replace(slack=slack), step)
        return {state: kind[state] for kind in sorts.values() for state in _undominated(kind)}


def _undominated(states: Iterable[State]) -> list[State]:
    """Return the states than which none has as much slack and as small outer ends."""
    ordered = sorted(states, key=_merit, reverse=True)
    best: list[tuple[int, ...]] = []
    kept = []
    for state in ordered:
        merit = _merit(state)
        if not any(all(map(int.__ge__, other, merit)) for other in best):
            best.append(merit)
            kept.append(state)
    return kept


def _merit(state: State) -> tuple[int, ...]:
    return (*state.slack, *(-size for size in state.outer))


def _with_group(
    levels: _Levels, states: _States, options: Options, count: int, outer: int
) -> _States:
    """Add all branches of a group; up to `outer` branches of the whole switch have outer ends."""
    result: _States = {}
    for used in range(min(outer, count) + 1):
        result |= _with_inner(levels, states, options, count - used)
        states = dict(_with_outer(levels, states, options, outer))
    return result


def _with_inner(levels: _Levels, states: _States, options: Options, count: int) -> _States:
    """Add `count` branches that stand between others."""
    at_once = count if len(options) == 1 else 1
    for _ in range(0, count, at_once or 1):
        states = {
            _added(levels, state, ends, at_once): Step(step, options, ends, (), at_once)
            for state, step in states.items()
            for ends in options
        }
    return states


def _with_outer(
    levels: _Levels, states: _States, options: Options, outer: int
) -> Iterator[tuple[State, Step]]:
    """Add one branch with an outer end, where there are fewer than `outer` yet."""
    for state, step in states.items():
        if len(state.outer) < outer:
            for ends in options:
                for side in (0, 1):
                    ours = tuple(sorted((*state.outer, ends[side])))
                    state_after = _added(levels, state, (ends[1 - side],), 1)
                    yield state_after._replace(outer=ours), Step(step, options, ends, (side,), 1)


def _added(levels: _Levels, state: State, inner: Sequence[int], count: int) -> State:
    """Return the state after `count` more branches with these inner ends."""
    gain = levels.gain(inner)
    pieces = list(state.pieces)
    nodes = [levels.node(size) for size in inner]
    for node in nodes:
        if pieces[node] < 0:
            pieces[node] = node
    pieces = _joined(pieces, nodes[0], nodes[-1])
    slack = tuple(s + count * g for s, g in zip(state.slack, gain, strict=True))
    return state._replace(slack=slack, pieces=tuple(pieces))
