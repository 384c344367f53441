"""Tuning all collectives of one cluster: searches on one source, one decision table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stagegen.generate.sources import applicable
from stagegen.measure.measurer import Source
from stagegen.repository import Catalogue
from stagegen.topology import Topology
from stagegen.tune.decision import DecisionTable
from stagegen.tune.options import Options
from stagegen.tune.search import Outcome, Plan, Search


@dataclass(frozen=True)
class Tuned:
    """The result of tuning: what decides, and what it was seen from."""

    decision: DecisionTable
    outcomes: tuple[Outcome, ...]


#: Collectives whose size is that of the whole message; in the others each rank gets as much from
#: every rank. So their sizes go on to as many times the largest one, at most WHOLE_MOST times.
WHOLE = frozenset({"allgatherv", "allreduce", "bcast", "reduce", "reduce_scatter"})
WHOLE_MOST = 16

#: Collectives of which one rule serves all calls: a barrier has no size, and a rank of an
#: alltoallv knows its own blocks only. They are measured once, with blocks of so many bytes or,
#: where None, of the largest size, where a wrong choice costs most.
ONE_SIZE: dict[str, int | None] = {"alltoallv": None, "barrier": 0}


def sizes_of(collective: str, options: Options, ranks: int) -> tuple[int, ...]:
    """Return the sizes in bytes at which a collective is measured."""
    if collective in ONE_SIZE:
        only = ONE_SIZE[collective]
        return (options.sizes[-1] if only is None else only,)
    largest = options.sizes[-1] * min(ranks, WHOLE_MOST)
    extra = (largest,) if collective in WHOLE and largest > options.sizes[-1] else ()
    return (*options.sizes, *extra)


def steps(options: Options) -> int:
    """Return how many steps, at the least, tuning reports to ``progress``."""
    return len(options.collectives) * (1 + len(options.sizes))


def tune(
    topology: Topology,
    catalogue: Catalogue,
    options: Options,
    source: Source,
    representative: Callable[[], bool],
    progress: Callable[[str], None] = lambda _: None,
) -> Tuned:
    """Tune the collectives of ``options`` on a source of measurements.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        options: what to tune.
        source: makes measurements, or has them from a log.
        representative: says, after measuring, whether the cluster itself was measured.
        progress: told of every step.

    Raises:
        MeasurementError: a measurement failed; what the log holds stays valid.
    """
    algorithms = applicable(catalogue, topology)
    ranks = topology.rank_count
    outcomes = tuple(
        Search(
            source,
            Plan(ranks, sizes_of(name, options, ranks), options.timing, options.budget, progress),
            name,
            [algorithm for algorithm in algorithms if algorithm.collective == name],
        ).run()
        for name in options.collectives
    )
    decision = DecisionTable(
        cluster=topology.name,
        topology_hash=topology.hash,
        catalogue_hash=catalogue.hash,
        representative=representative(),
        tables=tuple(table for outcome in outcomes for table in outcome.tables),
    )
    return Tuned(decision, outcomes)
