"""The lower bound of any collective of the catalogue, where there is one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from stagegen.catalogue import Catalogue, Collective
from stagegen.patterns import Pattern
from stagegen.schedule import Bound, lower_bound, lower_bound_of_sizes
from stagegen.topology import Topology


def bound_or_none(
    topology: Topology, collective: Collective, size: int, root: int | None = None
) -> Bound | None:
    """Return the lower bound, or None for a collective without one.

    A size of all blocks together is divided as calls are measured: as evenly as can be.

    Args:
        topology: the cluster.
        collective: of the catalogue.
        size: in bytes, as tuning and the generated library count it.
        root: of a collective with a root; None for a bound that holds for any root.
    """
    if collective.bound is None:
        return None
    if not collective.is_divided:
        bound = lower_bound(topology, collective.bound, size, root)
    else:
        ranks = topology.rank_count
        ends = [size * place // ranks for place in range(ranks + 1)]
        sizes = [end - first for first, end in pairwise(ends)]
        bound = lower_bound_of_sizes(topology, collective.bound, sizes, root)
    return replace(bound, collective=collective.name)


@dataclass(frozen=True)
class Least:
    """The least seconds that calls of the collectives take, at the links' nominal rates.

    Attributes:
        catalogue: of the collectives.
        topology: the cluster, with the ranks of one communicator.
    """

    catalogue: Catalogue
    topology: Topology

    def __call__(self, collective: str, size: int) -> float:
        """Return the lower bound of a call of ``size`` bytes; 0 if there is none."""
        found = bound_or_none(self.topology, self.catalogue.collective(collective), size)
        return found.seconds if found else 0.0


def size_of_pattern(pattern: Pattern) -> float:
    """Return the size of a pattern in bytes, as rules count it.

    For an alltoallv, it is the mean block between different ranks, else all blocks together.
    """
    return pattern.average if pattern.is_matrix else pattern.total


def bound_of_pattern(topology: Topology, pattern: Pattern, size: int) -> float:
    """Return the least seconds of a pattern with blocks that are scaled to a size."""
    sizes = pattern.scaled(size / size_of_pattern(pattern)).sizes
    rows = sizes if pattern.is_matrix else sizes[0]
    return lower_bound_of_sizes(topology, pattern.collective, rows).seconds


def patience(
    topology: Topology, collective: Collective, size: int, root: int | None = None
) -> float:
    """Return the seconds that a call's time limit is based on: its bound, or a higher one.

    No collective moves more than an alltoall with blocks of as many bytes.
    """
    bound = bound_or_none(topology, collective, size, root)
    return (bound or lower_bound(topology, "alltoall", size)).seconds
