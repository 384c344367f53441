"""What ``stagegen inspect`` reports of a file, series by series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagegen.inspection.findings import TreeFindings, tree_findings
from stagegen.inspection.series import SKIPPED, Series, series_of
from stagegen.inspection.timeline import LinkUse, StepFindings, link_uses, step_findings
from stagegen.inspection.trace import read_trace
from stagegen.recording.clocks import Clocks
from stagegen.topology import Topology


@dataclass(frozen=True, eq=False)
class Look:
    """What is told of a series of calls.

    Attributes:
        name: of the file.
        series: the calls.
        clocks: how the ranks' clocks were aligned.
        lost: calls that the rank with the most of them has overwritten, or not kept.
        unmatched: calls of the file that only some ranks have kept.
        tree: what the calls tell of their tree; None if most of them have none.
        steps: what the calls tell by steps; None if they have no messages.
        links: how the call of median length uses them; none without a topology.
    """

    name: str
    series: Series
    clocks: Clocks
    lost: int
    unmatched: int
    tree: TreeFindings | None
    steps: StepFindings | None
    links: tuple[LinkUse, ...]

    @property
    def elapsed(self) -> float:
        """Mean time of a call on a rank, with the wait for the last one; seconds."""
        return float((self.series.ended - self.series.begun).mean())

    @property
    def delay(self) -> float:
        """Mean time from the last arrival to the last exit; seconds."""
        return float((self.series.ended.max(axis=1) - self.series.begun.max(axis=1)).mean())

    def to_json(self) -> dict[str, Any]:
        """Return what is told of the series."""
        series, proven = self.series, self.clocks.proven
        return {
            "file": self.name,
            "routine": series.routine,
            "bytes": series.size,
            "root": None if series.root < 0 else series.root,
            "hosts": list(series.hosts),
            "calls": len(series),
            "skipped": series.skipped,
            "elapsed_s": self.elapsed,
            "delay_s": self.delay,
            "clock_error_s": self.clocks.error,
            "proven_clock_error_s": proven if math.isfinite(proven) else None,
            "lost": self.lost,
            "unmatched": self.unmatched,
            "tree": None if self.tree is None else self.tree.to_json(),
            "steps": None if self.steps is None else self.steps.to_json(),
            "links": [
                {"link": use.name, "messages": use.messages, "idle": use.idle} for use in self.links
            ],
        }


def looks_at(
    file: Path,
    skip: int = SKIPPED,
    by_clocks: bool = False,
    topology: Topology | None = None,
) -> list[Look]:
    """Return what a file tells; the series that take the most time come first.

    Raises:
        InputError: the file is no trace, or is damaged.
    """
    trace = read_trace(file)
    inspected = series_of(trace, skip)
    lost = max((rank.overwritten + rank.lost for rank in trace.ranks), default=0)
    found = []
    for series in inspected.series:
        steps = step_findings(series)
        links: tuple[LinkUse, ...] = ()
        if steps is not None and topology is not None:
            links = tuple(link_uses(series.call(steps.shown), series.hosts, topology))
        tree = tree_findings(series, by_clocks)
        found.append(
            Look(
                name=file.name,
                series=series,
                clocks=inspected.clocks,
                lost=lost,
                unmatched=inspected.unmatched,
                tree=tree,
                steps=steps,
                links=links,
            )
        )
    return found
