"""How many messages of a phase a link can carry.

Source: Faraj (2006) takes all links as equally fast; here a phase lasts as long as a message
takes on the slowest host link, and a link that is c times as fast carries ⌊c⌋ messages of it.
"""

from __future__ import annotations

from fractions import Fraction

from stagegen.topology import Topology


def slowest_host_rate(topology: Topology) -> int:
    """Return the rate of the slowest link of a host with a rank, in bit/s."""
    used = set(topology.ranks)
    return min(host.bandwidth for host in topology.hosts if host.name in used)


def edge_capacity(topology: Topology, node: int, neighbour: int) -> Fraction:
    """Return how many times as fast as the slowest host link a link of the rank tree is.

    1 for the leaf of a rank on a host of several: a rank sends, and receives, one message of a
    phase.
    """
    names = topology.tree.names
    rate = topology.rates.get((names[node], names[neighbour]))
    return Fraction(1) if rate is None else Fraction(rate, slowest_host_rate(topology))
