"""Lower bounds: no algorithm can take less time on a cluster.

Every edge of the network must carry, at its own rate, all data that has to get from one side of it
to the other; :mod:`stagegen.schedule.bounds.formulas` says for each collective how much that is.
Header bytes and start-ups are left out. Ranks of the same host exchange data without the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from stagegen.errors import InputError
from stagegen.schedule.bounds.cuts import Cut, Cuts, network_cuts
from stagegen.schedule.bounds.distances import diameter, distances, furthest, reach
from stagegen.schedule.bounds.formulas import (
    COLLECTIVES,
    FORMULAS,
    STAR_NAME,
    STAR_REFERENCE,
    Formula,
)
from stagegen.schedule.bounds.stars import densest_star
from stagegen.topology import Edge, Topology

__all__ = ["COLLECTIVES", "Bound", "lower_bound", "lower_bound_of_sizes", "physical_edges"]


@dataclass(frozen=True)
class Bound:
    """A lower bound on the time of a collective.

    Attributes:
        collective: one of `COLLECTIVES`.
        size: bytes of a block. By the row of the collective in `FORMULAS`, a block belongs to a
            pair of ranks (`pairs`) or to a rank (`per_rank`), or else it is the whole message.
            None if ranks have sizes of their own.
        seconds: for the data to cross the limiting edges.
        latency_seconds: for one bit between the two ranks furthest apart (with a root: between
            the root and the rank furthest from it). It is a separate bound, not to be added to
            `seconds`; the greater of both is a bound, too.
        formula: its name.
        reference: its source.
        edges: the limiting edge, or the edges that limit together; empty where nothing
            crosses the network.
        bytes: what must cross these edges together.
    """

    collective: str
    size: int | None
    seconds: float
    latency_seconds: float
    formula: str
    reference: str
    edges: tuple[Edge, ...]
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return a JSON form."""
        return {
            "size": self.size,
            "seconds": self.seconds,
            "latency_seconds": self.latency_seconds,
            "formula": self.formula,
            "reference": self.reference,
            "edges": [list(edge) for edge in self.edges],
            "bytes": self.bytes,
        }


@dataclass(frozen=True)
class _Load:
    """The bytes that edges must carry together."""

    edges: tuple[Edge, ...] = ()
    bytes: int = 0
    rate: int = 1

    @property
    def seconds(self) -> Fraction:
        return Fraction(8 * self.bytes, self.rate)


def lower_bound(topology: Topology, collective: str, size: int, root: int | None = None) -> Bound:
    """Return the lower bound of a collective in which all ranks have the same size.

    Args:
        topology: the cluster.
        collective: one of `COLLECTIVES`.
        size: in bytes; see :class:`Bound` for what it counts.
        root: of a collective with a root; None for a bound that holds for any root. Other
            collectives ignore it.

    Raises:
        InputError: there is no bound for the collective, or no such rank.
    """
    formula = _formula(topology, collective, root)
    network = network_cuts(topology)
    sides = network.sums([1] * topology.rank_count)
    load = _limit(network, [formula.blocks(*side) * size for side in sides], formula, root)
    name, reference = formula.name, formula.reference
    if formula.star and (star := densest_star(topology)) is not None:
        together = _Load(star.edges, 2 * (len(star.edges) - 1) * size, star.rate)
        if together.seconds > load.seconds:
            switches = f"{star.switches} switches" if star.switches > 1 else "1 switch"
            load, reference = together, STAR_REFERENCE
            name = STAR_NAME.format(switches=switches, sides=len(star.edges))
    has_work = size > 0 or collective == "barrier"
    latency = _latency(topology, formula, root) if has_work else 0.0
    return Bound(
        collective, size, float(load.seconds), latency, name, reference, load.edges, load.bytes
    )


def lower_bound_of_sizes(
    topology: Topology,
    collective: str,
    sizes: Sequence[int] | Sequence[Sequence[int]],
    root: int | None = None,
) -> Bound:
    """Return the lower bound of a collective in which ranks have sizes of their own.

    Args:
        topology: the cluster.
        collective: one whose blocks belong to ranks, such as `allgatherv`.
        sizes: bytes of each rank's block; of each source and destination for `alltoall` and
            `alltoallv`, a square of int64 whose diagonal does not matter.
        root: as for :func:`lower_bound`.

    Raises:
        InputError: there is no such bound for the collective, or no such rank; the sizes are not
            one for each rank, or pair of ranks.
    """
    formula = _formula(topology, collective, root)
    if not formula.per_rank:
        raise InputError(f"ranks have no sizes of their own in {collective}; give one size")
    network = network_cuts(topology)
    carried = _carried(network, collective, formula, sizes)
    load = _limit(network, carried, formula, root)
    return Bound(
        collective=collective,
        size=None,
        seconds=float(load.seconds),
        latency_seconds=_latency_of_sizes(topology, formula, sizes, root),
        formula=formula.name,
        reference=formula.reference,
        edges=load.edges,
        bytes=load.bytes,
    )


def _formula(topology: Topology, collective: str, root: int | None) -> Formula:
    if collective not in FORMULAS:
        known = ", ".join(COLLECTIVES)
        raise InputError(f"there is no lower bound for {collective!r}; choose from {known}")
    if root is not None and not 0 <= root < topology.rank_count:
        raise InputError(f"there is no rank {root}; ranks are 0 to {topology.rank_count - 1}")
    return FORMULAS[collective]


def _latency(topology: Topology, formula: Formula, root: int | None) -> float:
    return diameter(topology) if formula.root_beyond is None else reach(topology, root)


def _latency_of_sizes(
    topology: Topology, formula: Formula, sizes: Sequence[Any], root: int | None
) -> float:
    """Return the latency of the longest path that a block takes; empty ones take none."""
    if not formula.pairs:
        ranks = [rank for rank, size in enumerate(sizes) if size]
        return furthest(topology, ranks, root, everywhere=formula.root_beyond is None)
    blocks = np.array(sizes, np.int64) > 0
    np.fill_diagonal(blocks, val=True)
    if blocks.all():
        return diameter(topology)
    np.fill_diagonal(blocks, val=False)
    return max(
        float(np.array(distances(topology, source))[blocks[source]].max())
        if blocks[source].any()
        else 0.0
        for source in range(len(blocks))
    )


def _carried(network: Cuts, collective: str, formula: Formula, sizes: Sequence[Any]) -> list[int]:
    """Return the bytes that must cross each edge where ranks have sizes of their own."""
    ranks, pairs = len(network.order), formula.pairs
    rows = sizes if pairs else [sizes]
    if len(rows) != (ranks if pairs else 1) or any(len(row) != ranks for row in rows):
        wanted = f"{ranks} × {ranks}" if pairs else str(ranks)
        raise InputError(f"{collective} on these ranks needs {wanted} sizes")
    if pairs:
        return list(network.crossings(sizes))
    return [formula.blocks(*side) for side in network.sums(sizes)]


def _limit(network: Cuts, carried: Sequence[int], formula: Formula, root: int | None) -> _Load:
    """Return the load that takes longest; without a root, for the best root."""
    loads = [
        (cut, _Load((cut.edge,), amount, cut.rate))
        for cut, amount in zip(network.cuts, carried, strict=True)
        if amount
    ]
    loads.sort(key=lambda pair: -pair[1].seconds)
    if formula.root_beyond is None:
        return loads[0][1] if loads else _Load()
    possible = np.full(len(network.order), root is None)
    if root is not None:
        possible[network.order.index(root)] = True
    return _limit_of_best_root(loads, possible, formula.root_beyond)


def _limit_of_best_root(
    loads: Sequence[tuple[Cut, _Load]], possible: npt.NDArray[np.bool_], root_beyond: bool
) -> _Load:
    """Return the longest load for the root that makes it shortest.

    A root's longest load is the first, in order, that has the root on the right side.
    """
    for cut, load in loads:
        cut.clear(possible, root_beyond)
        if not possible.any():
            return load
    return _Load()


def physical_edges(topology: Topology) -> Iterator[tuple[Edge, int, int]]:
    """Yield (directed edge, ranks before it, ranks beyond it) of the network's edges in use."""
    network = network_cuts(topology)
    sides = network.sums([1] * topology.rank_count)
    for cut, (before, beyond) in zip(network.cuts, sides, strict=True):
        yield cut.edge, before, beyond
