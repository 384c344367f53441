"""Allreduce as a pipeline over a logical ring: reduce-scatter, then allgather.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", Journal of Parallel and Distributed Computing 69(2), 2009; the ring is
contention-free on any tree (Faraj, 2006, section 3.3).
"""

from __future__ import annotations

from stagegen.schedule.model import RingPipeline
from stagegen.schedule.rings.ring import logical_ring
from stagegen.topology import Topology


def ring_pipeline(
    topology: Topology, construction: str = "lr1", size: int | None = None
) -> RingPipeline:
    """Return the allreduce over a logical ring.

    Args:
        topology: the cluster.
        construction: one of `RING_CONSTRUCTIONS`.
        size: bytes of the vector; None for any size.

    Raises:
        NotFoundError: there is no such ring.
    """
    ring = logical_ring(topology, construction)
    first_blocks = [0] * len(ring.order)
    for place, rank in enumerate(ring.order):
        first_blocks[rank] = ring.order[place - 1]
    last_step = len(ring.order) - 1
    return RingPipeline(
        ring, tuple(first_blocks), last_step, 2 * last_step, _slowest_rate(topology), size
    )


def _slowest_rate(topology: Topology) -> int | None:
    """Return the rate of the slowest link in use, None where none is; the ring uses them all."""
    tree = topology.tree
    edges = ((tree.names[one], tree.names[other]) for one, other in tree.links())
    return min((topology.rates[edge] for edge in edges if edge in topology.rates), default=None)
