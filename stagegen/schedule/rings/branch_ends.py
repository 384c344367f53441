"""The pairs of outer ends that a switch's branches allow, for a limit on the ends that meet.

The ends of a branch are numbers of switches: from its link to its first and to its last machine.
Where a branch has several *options* for its two ends, one must be chosen. Two of all ends are
*outer* ends, which the switch's own parent sees; all others are *inner* ends and meet in pairs,
each with a sum of at most the limit D.

An order of the branches exists iff (1) for every t > D/2 there are at least as many inner ends
≤ D-t as ≥ t, and (2) the graph of layers and branches below is connected. Call t *tight* if both
numbers are equal and not 0. Ends on the two sides of a tight t cannot meet, so the tight t cut the
ends into layers; two layers are joined by a branch with an inner end in each. The proof is in
``docs/theory.md``, the construction in :mod:`stagegen.schedule.rings.chain`.

The search adds branch after branch and keeps only what conditions (1) and (2) need: how
much the smaller ends are ahead at every t, and which of the ends are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stagegen.schedule.rings.levels import Ends, Levels, Options, State, pareto


class Step(NamedTuple):
    """The step that made a state; steps are linked from the last one to the first.

    Attributes:
        before: the step before it.
        options: of the added branches.
        ends: the option that was chosen.
        outer: which of the two ends are outer ends; empty for a branch between others.
        branches: how many branches were added.
    """

    before: Step | None
    options: Options
    ends: Ends
    outer: tuple[int, ...]
    branches: int


_States = dict[State, Step | None]


def switch_options(groups: Mapping[Options, int], limit: int, closed: bool) -> dict[Ends, Step]:
    """Return the outer ends that a switch's branches can have, and how to reach them.

    Cost: as many states per branch as there are different slacks and pieces, at most
    (4k+1)^m times the partitions of m+1 nodes for k branches and m ≤ ⌈D/2⌉ levels, less
    the dominated ones. Branches without a choice count as one.

    Args:
        groups: how many branches have the same options.
        limit: the largest allowed sum of two ends that meet.
        closed: whether all ends are inner ends and the order is a circle.

    Returns:
        For each of the best pairs of outer ends, the last step to it; the pair (0, 0) if closed.
    """
    if not closed and sum(groups.values()) == 1:
        (options,) = groups
        return {ends: Step(None, options, ends, (0, 1), 1) for ends in options}
    outer = 0 if closed else 2
    levels = Levels.of(limit, groups)
    parts = list(_parts(groups))
    start = State((0,) * levels.count, (-1,) * len(levels.nodes), ())
    states: _States = {start: None}
    for (options, count), later in zip(parts, _Later.after(levels, parts), strict=True):
        states = later.pruned(_with_part(levels, states, options, count, outer))
    found = {
        (state.outer[0], state.outer[1]) if state.outer else (0, 0): step
        for state, step in states.items()
        if step is not None and len(state.outer) == outer and levels.connected(state)
    }
    return {ends: found[ends] for ends in pareto(found)}


def _parts(groups: Mapping[Options, int]) -> Iterator[tuple[Options, int]]:
    """Yield the branches to add at once: those without a choice together, others one by one."""
    for options, count in groups.items():
        if len(options) == 1:
            yield options, count
        else:
            yield from [(options, 1)] * count


@dataclass(frozen=True)
class _Later:
    """The effect that branches added later can still have.

    Attributes:
        most: the most that they can add to the slack of each level.
        least: the least that they add to it.
    """

    most: tuple[int, ...]
    least: tuple[int, ...]

    @classmethod
    def after(cls, levels: Levels, parts: Sequence[tuple[Options, int]]) -> list[_Later]:
        """Return the effect of the branches that come after each of the parts."""
        most = least = (0,) * levels.count
        result: list[_Later] = []
        for options, count in reversed(parts):
            result.append(cls(most, least))
            inner = [part for ends in options for part in (ends, ends[:1], ends[1:])]
            gains = list(zip(*map(levels.gain, inner), strict=True))
            most = tuple(m + count * max(g) for m, g in zip(most, gains, strict=True))
            least = tuple(m + count * min(g) for m, g in zip(least, gains, strict=True))
        return result[::-1]

    def pruned(self, states: _States) -> _States:
        """Drop states that cannot succeed, and states that another one dominates.

        More slack is never worse: it leaves fewer levels tight. So slack beyond what later
        branches can use up is cut off, and of states with the same pieces only the best remain.
        """
        enough = [1 - least for least in self.least]
        alike: dict[object, _States] = {}
        for state, step in states.items():
            if all(s + m >= 0 for s, m in zip(state.slack, self.most, strict=True)):
                slack = tuple(map(min, state.slack, enough))
                same = alike.setdefault((state.pieces, len(state.outer)), {})
                same.setdefault(state._replace(slack=slack), step)
        return {state: same[state] for same in alike.values() for state in _undominated(same)}


def _undominated(states: Iterable[State]) -> list[State]:
    """Return the states that no other one matches in both slack and small outer ends."""
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


def _with_part(
    levels: Levels, states: _States, options: Options, count: int, outer: int
) -> _States:
    """Add branches; up to `outer` branches of the whole switch have outer ends."""
    result: _States = {}
    for used in range(min(outer, count) + 1):
        result |= _with_inner(levels, states, options, count - used)
        states = dict(_with_outer(levels, states, options, outer))
    return result


def _with_inner(levels: Levels, states: _States, options: Options, count: int) -> _States:
    """Add `count` branches with the same ends that stand between others."""
    if count == 0:
        return states
    return {
        levels.added(state, ends, count): Step(step, options, ends, (), count)
        for state, step in states.items()
        for ends in options
    }


def _with_outer(
    levels: Levels, states: _States, options: Options, outer: int
) -> Iterator[tuple[State, Step]]:
    """Add one branch with an outer end, where there are fewer than `outer` yet."""
    for state, step in states.items():
        if len(state.outer) < outer:
            for ends in options:
                for side in (0, 1):
                    ours = tuple(sorted((*state.outer, ends[side])))
                    state_after = levels.added(state, (ends[1 - side],), 1)
                    yield state_after._replace(outer=ours), Step(step, options, ends, (side,), 1)
