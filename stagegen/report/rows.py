"""The rows of a report: native, tuned and bound for every measured size of a communicator."""

from __future__ import annotations

from dataclasses import dataclass

from stagegen.catalogue import Collective
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import Candidate
from stagegen.measure.statistics import Summary, summarize
from stagegen.patterns import Pattern
from stagegen.topology import Topology
from stagegen.tune.bounds import bound_of_pattern, bound_or_none
from stagegen.tune.search import Outcome


@dataclass(frozen=True)
class ReportRow:
    """One size of one collective.

    Attributes:
        size: in bytes.
        native: the native routine's times, in seconds.
        tuned: the times of the candidate that serves the size.
        candidate: the one that serves it.
        bound: lower bound in seconds at the rates that were measured, or None where the
            measured machine is not the cluster or the collective has none.
    """

    size: int
    native: Summary
    tuned: Summary
    candidate: Candidate
    bound: float | None

    @property
    def speedup(self) -> float:
        """Native over tuned, of the medians."""
        return self.native.median / self.tuned.median

    @property
    def over_bound(self) -> float | None:
        """Tuned over the bound; None where there is none."""
        return self.tuned.median / self.bound if self.bound else None


def report_rows(
    topology: Topology,
    collective: Collective,
    outcome: Outcome,
    scale: float | None,
    pattern: Pattern | None = None,
) -> tuple[ReportRow, ...]:
    """Return the rows of one collective on one communicator, from its most special table.

    Args:
        topology: the cluster as the communicator sees it.
        collective: the outcome's.
        outcome: of the search on it.
        scale: by which all rates were multiplied; None where another machine was measured.
        pattern: of the calls, if all are of one.
    """
    table = outcome.tables[0]
    rows = []
    for size, samples in outcome.samples.items():
        candidate = table.choice(size)
        bound = _bound(topology, collective, size, pattern)
        rows.append(
            ReportRow(
                size=size,
                native=summarize(samples[Candidate(NATIVE)].seconds),
                tuned=summarize(samples[candidate].seconds),
                candidate=candidate,
                bound=None if scale is None or bound is None else bound / scale,
            )
        )
    return tuple(rows)


def _bound(
    topology: Topology, collective: Collective, size: int, pattern: Pattern | None
) -> float | None:
    """Return the lower bound in seconds; None if there is none."""
    if pattern is not None:
        return bound_of_pattern(topology, pattern, size)
    bound = bound_or_none(topology, collective, size)
    return None if bound is None else bound.seconds
