"""All that was measured on one cluster with one congestion control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from docs.tools.bench.families import Meeting
from docs.tools.bench.guidelines import Verdict, verdict
from docs.tools.bench.kept import read_kept
from docs.tools.bench.plan import CLUSTERS, CONGESTION, Cluster
from docs.tools.bench.rows import Row


@dataclass(frozen=True)
class Result:
    """What is known of a cluster with a congestion control.

    Attributes:
        cluster: its name.
        congestion: the congestion control.
        ranks: of the cluster.
        rows: all that was compared, by collective and size.
        meetings: AAPC against the rest, by size.
        overheads: nanoseconds that intercepting costs, by collective.
        earlier: rows of an earlier run, of what was not measured since.
    """

    cluster: str
    congestion: str
    ranks: int
    rows: tuple[Row, ...]
    meetings: tuple[Meeting, ...] = ()
    overheads: Mapping[str, float] = field(default_factory=dict)
    earlier: tuple[Row, ...] = ()

    @property
    def name(self) -> str:
        """Its name in a line about it."""
        return f"{self.cluster}, {self.congestion}"

    def guidelines(self) -> Verdict:
        """Return which performance guidelines hold."""
        return verdict(self.rows, self.ranks)


def results() -> tuple[Result, ...]:
    """Return what is kept, clusters and congestion controls in their order."""
    everything = (result_of(one, cc) for one in CLUSTERS.values() for cc in CONGESTION)
    return tuple(result for result in everything if result.rows)


def result_of(cluster: Cluster, congestion: str) -> Result:
    """Return what is kept of a cluster with a congestion control."""
    known = read_kept(cluster.name, congestion)
    return Result(
        cluster.name,
        congestion,
        cluster.topology().rank_count,
        known.rows(),
        known.meetings(),
        known.overheads(),
        known.earlier(),
    )
