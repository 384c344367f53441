"""The algorithms that a cluster can run, and those that every library needs."""

from __future__ import annotations

from collections.abc import Sequence

from stagegen.catalogue.algorithm import NATIVE, Algorithm
from stagegen.catalogue.cluster_schedules import schedules_of
from stagegen.catalogue.load import Catalogue
from stagegen.catalogue.rank_groups import groups_of
from stagegen.topology import Topology


def applicable(catalogue: Catalogue, topology: Topology) -> tuple[Algorithm, ...]:
    """Return the algorithms that all ranks of the topology together can run.

    Their parameters keep only the values that make a difference on this topology.
    """
    schedules = schedules_of(topology)
    return tuple(
        schedules.narrowed(algorithm)
        for algorithm in catalogue.algorithms
        if algorithm.works_for(topology.rank_count) and schedules.serve(algorithm)
    )


def runnable(catalogue: Catalogue, topology: Topology) -> tuple[Algorithm, ...]:
    """Return the algorithms that all ranks of the topology, or of a group, can run together."""
    names = {
        algorithm.routine
        for group in groups_of(topology)
        for algorithm in applicable(catalogue, group.topology)
    }
    return tuple(algorithm for algorithm in catalogue.algorithms if algorithm.routine in names)


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
