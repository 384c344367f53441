"""Changes a configured tree step by step, and keeps what is faster.

Bongo, Anshus and Bjørndalen, section 6, do so by hand: look where the time goes, change the tree
there, measure it. Here each step races the changed tree against the one before, and the tuner's
test on launches says whether it is faster.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stagegen.measure.statistics import Launches, is_faster_in_launches, launch_ratios
from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree, tree_yaml
from stagegen.trees.moves import Move, moves

Race = Callable[[ConfiguredTree, ConfiguredTree], tuple[Launches, Launches]]
"""Times two trees in turn, in several launches of the job."""

NodeTimes = Callable[[ConfiguredTree], Mapping[str, float]]
"""The seconds of each node's work: measured, or those of :mod:`stagegen.trees.cost`."""


@dataclass(frozen=True)
class Step:
    """A change that was tried.

    Attributes:
        number: counted from 1.
        before: the tree that was changed.
        move: the change.
        hot: the seconds of the changed node's work, for which it was chosen.
        old: the times of the tree before, in seconds, by launch.
        new: those of the changed tree.
        accepted: whether it is faster by the tuner's test.
    """

    number: int
    before: ConfiguredTree
    move: Move
    hot: float
    old: Launches
    new: Launches
    accepted: bool

    @property
    def ratio(self) -> float:
        """The median over the launches of the new time over the old one."""
        return statistics.median(launch_ratios(self.new, self.old))

    @property
    def why(self) -> str:
        """Why it was tried, and what became of it, in words."""
        verdict = "faster, kept" if self.accepted else "not faster beyond doubt"
        tried = f"{self.move.node} takes {self.hot * 1e6:.3g} µs"
        return f"{tried}; now {self.ratio:.3f} × the time of the tree before: {verdict}"

    def to_json(self) -> dict[str, Any]:
        """Return the record of the log."""
        return {
            "step": self.number,
            "change": self.move.what,
            "why": self.why,
            "accepted": self.accepted,
            "ratio": self.ratio,
            "before": tree_yaml(self.before),
            "after": tree_yaml(self.move.tree),
            "seconds_before": {str(n): list(times) for n, times in sorted(self.old.items())},
            "seconds_after": {str(n): list(times) for n, times in sorted(self.new.items())},
        }


def reconfigure(
    topology: Topology,
    tree: ConfiguredTree,
    race: Race,
    times: NodeTimes,
    gain: float,
    most: int,
) -> Iterator[Step]:
    """Yield the steps of a search; the last accepted one has its result.

    After a change that is accepted, the nodes are looked at anew. The search ends if no change of
    a tree is faster, or after so many steps. No change is tried twice on the same tree.

    Args:
        topology: the cluster.
        tree: to begin with.
        race: times two trees.
        times: of a tree's nodes.
        gain: the least share by which a tree must be faster.
        most: steps.
    """
    number = 0
    seen = {tree.nodes}
    while number < most:
        seconds = times(tree)
        for move in moves(topology, tree, seconds):
            if move.tree.nodes in seen or number == most:
                continue
            seen.add(move.tree.nodes)
            number += 1
            old, new = race(tree, move.tree)
            accepted = is_faster_in_launches(new, old, gain)
            yield Step(number, tree, move, seconds[move.node], old, new, accepted)
            if accepted:
                tree = move.tree
                break
        else:
            return


def recorded(records: Iterable[Mapping[str, Any]], live: Race) -> Race:
    """Return a race that answers from the records of a log first."""
    known = {(one["before"], one["after"]): one for one in records}

    def race(old: ConfiguredTree, new: ConfiguredTree) -> tuple[Launches, Launches]:
        record = known.get((tree_yaml(old), tree_yaml(new)))
        if record is None:
            return live(old, new)
        return _launches(record["seconds_before"]), _launches(record["seconds_after"])

    return race


def _launches(form: Mapping[str, list[float]]) -> Launches:
    return {int(number): tuple(times) for number, times in form.items()}
