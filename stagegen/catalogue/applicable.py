"""The algorithms that a cluster can run, and those that every library needs."""

from __future__ import annotations

from collections.abc import Sequence

from stagegen.catalogue.algorithm import NATIVE, Algorithm
from stagegen.catalogue.cluster_schedules import ClusterSchedules, schedules_of
from stagegen.catalogue.load import Catalogue
from stagegen.catalogue.rank_groups import groups_of
from stagegen.topology import Topology


def applicable(catalogue: Catalogue, topology: Topology) -> tuple[Algorithm, ...]:
    """Return the candidates: what competes, and all ranks of the topology together can run.

    Their parameters keep only the values that make a difference on this topology.
    """
    schedules = schedules_of(topology)
    return tuple(
        schedules.narrowed(algorithm)
        for algorithm in catalogue.algorithms
        if catalogue.selection.admits(algorithm) and _reason(algorithm, schedules) is None
    )


def runnable(catalogue: Catalogue, topology: Topology) -> tuple[Algorithm, ...]:
    """Return what all ranks of the topology, or of a group, can run; it need not compete."""
    schedules = [schedules_of(group.topology) for group in groups_of(topology)]
    return tuple(
        algorithm
        for algorithm in catalogue.algorithms
        if any(_reason(algorithm, some) is None for some in schedules)
    )


def why_not(algorithm: Algorithm, topology: Topology) -> str | None:
    """Return why all ranks of the topology together cannot run an algorithm; None if they can."""
    return _reason(algorithm, schedules_of(topology))


def _reason(algorithm: Algorithm, schedules: ClusterSchedules) -> str | None:
    return algorithm.why_not_for(schedules.topology.rank_count) or schedules.why_not(algorithm)


def with_native(catalogue: Catalogue, chosen: Sequence[Algorithm]) -> tuple[Algorithm, ...]:
    """Return the algorithms of a library, in catalogue order.

    These are the chosen algorithms, the native and the deterministic one of every collective, and
    the algorithms that they use.
    """
    wanted = {algorithm.routine for algorithm in chosen}
    kept = [
        a
        for a in catalogue.algorithms
        if a.routine in wanted or a.name == NATIVE or a.deterministic
    ]
    wanted = {a.routine for own in kept for a in (own, *catalogue.used_by(own))}
    return tuple(a for a in catalogue.algorithms if a.routine in wanted)
