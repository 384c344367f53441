"""All that was measured on one cluster with one congestion control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from docs.tools.bench.families import Meeting
from docs.tools.bench.guidelines import Verdict, verdict
from docs.tools.bench.parts import Part, overhead_of
from docs.tools.bench.plan import CATALOGUE, CLUSTERS, CONGESTION, Cluster
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
    """

    cluster: str
    congestion: str
    ranks: int
    rows: tuple[Row, ...]
    meetings: tuple[Meeting, ...] = ()
    overheads: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in a line about it."""
        return f"{self.cluster}, {self.congestion}"

    def guidelines(self) -> Verdict:
        """Return which performance guidelines hold."""
        return verdict(self.rows, self.ranks)


def results() -> tuple[Result, ...]:
    """Return what has been measured so far, clusters and congestion controls in their order."""
    everything = (_result(one, cc) for one in CLUSTERS.values() for cc in CONGESTION)
    return tuple(result for result in everything if result.rows)


def _result(cluster: Cluster, congestion: str) -> Result:
    parts = [Part(cluster, congestion, name) for name in CATALOGUE.collectives]
    rows = sorted((r for part in parts for r in part.rows()), key=lambda r: (r.collective, r.size))
    overheads = next(filter(None, map(overhead_of, parts)), {})
    return Result(
        cluster.name,
        congestion,
        cluster.topology().rank_count,
        tuple(rows),
        tuple(meeting for part in parts for meeting in part.meetings()),
        overheads,
    )
