"""Steps of a search for a better tree: what was timed, and what became of each change.

:mod:`stagegen.tune.reconfigure` makes them. Their form in the log is here, too.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stagegen.measure.statistics import Launches, launch_ratios
from stagegen.trees import ConfiguredTree, tree_yaml

#: How ranks of a host hand over data: the parameter `on_host` of a tree's routines.
MESSAGES, SHARED = 1, 2

#: The same in words.
HANDED_BY = {MESSAGES: "messages", SHARED: "shared memory"}


@dataclass(frozen=True)
class Setup:
    """What is timed.

    Attributes:
        tree: the tree.
        on_host: :data:`MESSAGES` or :data:`SHARED`.
    """

    tree: ConfiguredTree
    on_host: int = MESSAGES

    def to_json(self) -> dict[str, Any]:
        """Return the form in the log."""
        return {"tree": tree_yaml(self.tree), "on_host": self.on_host}


@dataclass(frozen=True)
class Times:
    """Seconds of a setup.

    Attributes:
        looked: in the first look, which is number 0, and in further ones of finalists.
        raced: in the launches that decide; empty if it was not raced.
    """

    looked: Launches
    raced: Launches

    def to_json(self) -> dict[str, Any]:
        """Return the form in the log."""
        return {
            "looked_s": _launches_to_json(self.looked),
            "raced_s": _launches_to_json(self.raced),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Times:
        """Read the form in the log."""
        return cls(*(_launches_from_json(form[key]) for key in ("looked_s", "raced_s")))


def _launches_to_json(launches: Launches) -> dict[str, list[float]]:
    return {str(n): list(times) for n, times in sorted(launches.items())}


def _launches_from_json(form: Mapping[str, Sequence[float]]) -> Launches:
    return {int(n): tuple(times) for n, times in form.items()}


@dataclass(frozen=True)
class Nodes:
    """What the nodes of a tree take.

    Attributes:
        seconds: of each node's work.
        measured: whether they were measured; else :mod:`stagegen.trees.cost` predicts them.
        parts: seconds of a call by parts of its slowest rank's path; empty if nothing was measured.
    """

    seconds: Mapping[str, float]
    measured: bool
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Challenger:
    """A changed tree.

    Attributes:
        change: in words.
        node: that it is about; empty if it is about none.
        setup: after the change.
        times: of this setup.
    """

    change: str
    node: str
    setup: Setup
    times: Times

    @property
    def is_raced(self) -> bool:
        """Whether it was raced."""
        return bool(self.times.raced)


@dataclass(frozen=True)
class Step:
    """Changes of a tree that were tried together.

    Attributes:
        number: counted from 1.
        before: the setup that was changed.
        nodes: the times of its nodes, by which the changes were chosen.
        old: its times.
        challengers: the changes, the best ones by the looks first.
        accepted: the change that is kept; None if there is none.
    """

    number: int
    before: Setup
    nodes: Nodes
    old: Times
    challengers: tuple[Challenger, ...]
    accepted: Challenger | None

    def ratio(self, one: Challenger) -> float:
        """Return a change's time over the time before, from the launches or else the looks.

        Both are compared in the same launches only: another launch may take twice as long.
        """
        if one.is_raced:
            return ratio_of(one.times.raced, self.old.raced)
        return ratio_of(one.times.looked, self.old.looked)

    def why(self, one: Challenger) -> str:
        """Return why a change was tried, and what became of it, in words."""
        return f"{self._reason(one)}; {self._verdict(one)}"

    def _reason(self, one: Challenger) -> str:
        if not one.node:
            return "ranks share hosts"
        by = "measured" if self.nodes.measured else "by the model"
        return f"{one.node} takes {self.nodes.seconds[one.node] * 1e6:.3g} µs, {by}"

    def _verdict(self, one: Challenger) -> str:
        times = f"{self.ratio(one):.3f} × the time before"
        if not one.is_raced:
            return f"a look saw {times}: not raced"
        if one is self.accepted:
            return f"{times} in {len(one.times.raced)} launches: faster, kept"
        return f"{times} in {len(one.times.raced)} launches: not faster beyond doubt"

    def to_json(self) -> dict[str, Any]:
        """Return the record of the log."""
        return {
            "step": self.number,
            "before": self.before.to_json(),
            "node_s": dict(self.nodes.seconds),
            "measured": self.nodes.measured,
            "part_s": dict(self.nodes.parts),
            "times": self.old.to_json(),
            "tried": [
                {
                    "change": one.change,
                    "node": one.node,
                    "why": self.why(one),
                    "accepted": one is self.accepted,
                    "ratio": self.ratio(one),
                    "after": one.setup.to_json(),
                    "times": one.times.to_json(),
                }
                for one in self.challengers
            ],
        }


def ratio_of(challenger: Launches, before: Launches) -> float:
    """Return the median of the ratios of the launches that timed both."""
    return statistics.median(launch_ratios(challenger, before))
