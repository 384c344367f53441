"""The paths of a pattern's messages as arrays, and what each link can carry."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import floor

import numpy as np
import numpy.typing as npt

from stagegen.schedule.alltoall.capacity import edge_capacities
from stagegen.topology import Topology

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Paths:
    """The messages of a pattern.

    Attributes:
        source: of every message.
        destination: of every message.
        size: bytes of every message.
        edges: [message, place on its path]: numbers of directed edges; `len(capacity) - 1`, which
            is no edge, where the path has ended.
        capacity: how many pieces each edge carries at a time.
        seconds: of every message, alone with its share of each link.
    """

    source: Ints
    destination: Ints
    size: Ints
    edges: Ints
    capacity: Ints
    seconds: Floats

    @property
    def load(self) -> Floats:
        """Seconds of work of every edge: the sum of its messages, over its capacity."""
        load = np.zeros(len(self.capacity))
        np.add.at(load, self.edges, np.broadcast_to(self.seconds[:, None], self.edges.shape))
        load[-1] = 0.0
        return load / self.capacity


def paths_of(topology: Topology, sizes: npt.NDArray[np.int64]) -> Paths:
    """Return the messages of a pattern that are not empty, by source and destination.

    Args:
        topology: the cluster.
        sizes: bytes from each rank to each other one.
    """
    tree, capacities = topology.tree, edge_capacities(topology)
    number = {edge: place for place, edge in enumerate(capacities)}
    capacity = np.array([max(1, floor(c)) for c in capacities.values()] + [np.iinfo(np.int64).max])
    names = tree.names
    # Ranks of one host exchange data without the network; memory counts as fast as a fast host.
    rates = [topology.rates.get((names[a], names[b])) for a, b in capacities]
    inner = max(topology.rates.values())
    share = np.array([(rate or inner) / c for rate, c in zip(rates, capacity, strict=False)])
    share = np.append(share, np.inf)
    source, destination = np.nonzero(sizes)
    path = [
        tree.node_path(u, v) for u, v in zip(source.tolist(), destination.tolist(), strict=True)
    ]
    longest = max((len(nodes) - 1 for nodes in path), default=1)
    edges = np.full((len(path), longest), len(capacities), np.int64)
    for row, nodes in zip(edges, path, strict=True):
        row[: len(nodes) - 1] = [number[pair] for pair in pairwise(nodes)]
    size = sizes[source, destination]
    seconds = 8.0 * size / share[edges].min(axis=1, initial=np.inf)
    return Paths(source, destination, size, edges, capacity, seconds)
