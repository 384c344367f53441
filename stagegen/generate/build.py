"""The contents of one program or library: worked out once, then only read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagegen.catalogue import (
    Algorithm,
    Catalogue,
    RankGroup,
    groups_of,
    runnable,
    with_native,
)
from stagegen.catalogue.cluster_schedules import schedules_of
from stagegen.errors import GenerateError
from stagegen.generate.routines import Routine, describe
from stagegen.topology import Topology


@dataclass(frozen=True)
class Build:
    """The routines of one program or library.

    Attributes:
        topology: the cluster.
        catalogue: all algorithms: their collectives and parameters are in every build.
        groups: all ranks of the cluster, then its groups.
        routines: in catalogue order, as in ``coll_routines[]``.
    """

    topology: Topology
    catalogue: Catalogue
    groups: tuple[RankGroup, ...]
    routines: tuple[Routine, ...]

    @classmethod
    def of(cls, topology: Topology, catalogue: Catalogue, algorithms: Sequence[Algorithm]) -> Build:
        """Return the build of some algorithms.

        Raises:
            GenerateError: one of them uses another that is not among them.
        """
        _require_used(algorithms)
        groups = groups_of(topology)
        made = enumerate(_narrowed(groups, algorithms))
        routines = (describe(algorithm, group, index) for index, (algorithm, group) in made)
        return cls(topology, catalogue, groups, tuple(routines))


def session_build(
    topology: Topology, catalogue: Catalogue, collectives: Sequence[str] | None = None
) -> Build:
    """Return the build of a measuring session: all routines that compete and can run.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        collectives: the ones to measure, all if None; routines of others are there if these use
            them.
    """
    wanted = catalogue.collectives if collectives is None else collectives
    can = runnable(catalogue, topology)
    admits = catalogue.selection.admits
    kept = with_native(catalogue, [a for a in can if a.collective in wanted and admits(a)])
    return Build.of(topology, catalogue, [a for a in can if a in kept])


def library_build(topology: Topology, catalogue: Catalogue, chosen: Sequence[Algorithm]) -> Build:
    """Return the build of a library: the chosen algorithms, and those that every library needs."""
    return Build.of(topology, catalogue, with_native(catalogue, chosen))


def _require_used(algorithms: Sequence[Algorithm]) -> None:
    present = {algorithm.full_name for algorithm in algorithms}
    for algorithm in algorithms:
        missing = [name for name in algorithm.uses if name not in present]
        if missing:
            raise GenerateError(f"{algorithm.routine} uses {', '.join(missing)}: not in this build")


def _narrowed(
    groups: Sequence[RankGroup], algorithms: Sequence[Algorithm]
) -> Iterator[tuple[Algorithm, RankGroup]]:
    """Yield each algorithm, narrowed to the ranks that it is made for, and these ranks.

    An algorithm with tables is made for all ranks, and for each group, if they have its schedule.
    """
    whole, *_ = groups
    for algorithm in algorithms:
        own = [
            group
            for group in groups
            if algorithm.has_tables
            and algorithm.works_for(group.topology.rank_count)
            and schedules_of(group.topology).serve(algorithm)
        ]
        for group in own or [whole]:
            yield schedules_of(group.topology).narrowed(algorithm), group
