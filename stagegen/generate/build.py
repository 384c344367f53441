"""The contents of one program or library: worked out once, then only read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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

    @classmethod
    def of_all(cls, topology: Topology, catalogue: Catalogue) -> Build:
        """Return the build of all that can run. Sessions and libraries take parts of it.

        The catalogue of a log may lack what an algorithm of another collective uses. Such an
        algorithm is left out.
        """
        names = {algorithm.full_name for algorithm in catalogue.algorithms}
        can = [a for a in runnable(catalogue, topology) if names.issuperset(a.uses)]
        return cls.of(topology, catalogue, with_native(catalogue, can))

    @cached_property
    def runnable(self) -> tuple[Algorithm, ...]:
        """What all ranks of the topology, or of a group, can run; it need not compete."""
        return runnable(self.catalogue, self.topology)

    def only(self, algorithms: Iterable[Algorithm]) -> Build:
        """Return the part with some algorithms: nothing that is known of them is worked out anew.

        Raises:
            GenerateError: this build lacks one of them, or one uses another that is not among them.
        """
        chosen = tuple(algorithms)
        _require_used(chosen)
        wanted = {algorithm.routine for algorithm in chosen}
        if missing := wanted.difference(one.described.routine for one in self.routines):
            listed = ", ".join(sorted(missing))
            raise GenerateError(f"{self.topology.name} cannot run {listed}; leave it out")
        kept = (one for one in self.routines if one.described.routine in wanted)
        routines = tuple(replace(one, index=index) for index, one in enumerate(kept))
        return replace(self, routines=routines)

    def session(self, collectives: Sequence[str] | None = None) -> Build:
        """Return the part that a measuring session has: all routines that compete and can run.

        Args:
            collectives: the ones to measure, all if None; routines of others are there if these
                use them.
        """
        return self.only(_of_session(self.catalogue, self.runnable, collectives))


def library_build(
    topology: Topology,
    catalogue: Catalogue,
    chosen: Sequence[Algorithm],
    everything: Build | None = None,
) -> Build:
    """Return the build of a library: the chosen algorithms, and those that every library needs.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        chosen: those that serve.
        everything: the build of all that can run, if the caller has it; then this is a part of it.
    """
    kept = with_native(catalogue, chosen)
    return Build.of(topology, catalogue, kept) if everything is None else everything.only(kept)


def _of_session(
    catalogue: Catalogue, can: Sequence[Algorithm], collectives: Sequence[str] | None
) -> list[Algorithm]:
    """Return the algorithms of a session: what competes, of what can run, and what it uses."""
    wanted = catalogue.collectives if collectives is None else collectives
    admits = catalogue.selection.admits
    kept = with_native(catalogue, [a for a in can if a.collective in wanted and admits(a)])
    return [a for a in can if a in kept]


def session_build(
    topology: Topology, catalogue: Catalogue, collectives: Sequence[str] | None = None
) -> Build:
    """Return the build of a session alone, as :meth:`Build.session` returns it as a part.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        collectives: the ones to measure, all if None.
    """
    can = runnable(catalogue, topology)
    return Build.of(topology, catalogue, _of_session(catalogue, can, collectives))


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
