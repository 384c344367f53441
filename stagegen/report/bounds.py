"""The lower bound of any collective of the catalogue, where there is one."""

from __future__ import annotations

from itertools import pairwise

from stagegen.schedule import Bound, lower_bound, lower_bound_of_sizes
from stagegen.schedule.bounds.lower import COLLECTIVES
from stagegen.topology import Topology

#: Collectives with a block for each rank whose size counts all blocks together. Calls are measured
#: with blocks that are as even as can be.
_DIVIDED = frozenset({"allgatherv", "reduce_scatter"})


def bound_or_none(
    topology: Topology, collective: str, size: int, root: int | None = None
) -> Bound | None:
    """Return the lower bound, or None for a collective without one.

    Args:
        topology: the cluster.
        collective: of the catalogue.
        size: in bytes, as tuning and the generated library count it.
        root: of a collective with a root; None for a bound that holds for any root.
    """
    return bound_of(topology, collective, size, root) if collective in COLLECTIVES else None


def bound_of(topology: Topology, collective: str, size: int, root: int | None = None) -> Bound:
    """Return the lower bound of a collective that has one; see :func:`bound_or_none`."""
    if collective not in _DIVIDED:
        return lower_bound(topology, collective, size, root)
    ranks = topology.rank_count
    ends = [size * place // ranks for place in range(ranks + 1)]
    sizes = [end - start for start, end in pairwise(ends)]
    return lower_bound_of_sizes(topology, collective, sizes, root)


def patience(topology: Topology, collective: str, size: int, root: int | None = None) -> float:
    """Return the seconds that a call's time limit is based on: its bound, or a higher one.

    No collective moves more than an alltoall with blocks of as many bytes.
    """
    bound = bound_or_none(topology, collective, size, root)
    return (bound or lower_bound(topology, "alltoall", size)).seconds
