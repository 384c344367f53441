"""What a pattern asks of each link of a cluster: the largest share is the bound."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagegen.errors import InputError
from stagegen.patterns import Pattern
from stagegen.schedule.bounds.cuts import network_cuts
from stagegen.schedule.bounds.formulas import FORMULAS
from stagegen.topology import Edge, RankMap, Topology


@dataclass(frozen=True)
class Volume:
    """What must cross a directed link of the network.

    Attributes:
        edge: the link, by names.
        bytes: of all blocks that have to cross it.
        seconds: that it takes at the link's rate.
    """

    edge: Edge
    bytes: int
    seconds: float


def cluster_of(topology: Topology, pattern: Pattern) -> Topology | None:
    """Return the cluster with the ranks of a pattern's communicator, in their order.

    Rank i of ``MPI_COMM_WORLD`` is taken for rank i of the cluster. A pattern that has no
    communicator, or one of ranks that the cluster lacks, is taken for one of all ranks, if it has
    as many; else there is no cluster for it.
    """
    ranks = pattern.communicator
    if ranks is None or not all(0 <= rank < topology.rank_count for rank in ranks):
        return topology if pattern.ranks == topology.rank_count else None
    hosts = tuple(topology.ranks[rank] for rank in ranks)
    return replace(topology, rank_map=RankMap("list", hosts))


def volumes(topology: Topology, pattern: Pattern) -> tuple[Volume, ...]:
    """Return what must cross each directed link, those that take longest first.

    For collectives with a root there is none: it depends on the root.

    Raises:
        InputError: the pattern has another number of ranks.
    """
    if pattern.ranks != topology.rank_count:
        raise InputError(
            f"the pattern {pattern.name!r} has {pattern.ranks} ranks, the cluster "
            f"{topology.rank_count}"
        )
    formula = FORMULAS[pattern.collective]
    if formula.root_beyond is not None:
        return ()
    cuts = network_cuts(topology)
    if pattern.is_matrix:
        carried = list(cuts.crossings(pattern.array.tolist()))
    else:
        carried = [formula.blocks(*side) for side in cuts.sums(pattern.sizes[0])]
    found = [
        Volume(cut.edge, size, 8 * size / cut.rate)
        for cut, size in zip(cuts.cuts, carried, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (-one.seconds, one.edge)))
