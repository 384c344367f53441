"""The capacity of each link in messages of a phase, and the least number of phases.

Source: Faraj (2006) assumes equally fast links; here a phase lasts as long as a message
takes on the slowest host link. A link that is c ≥ 1 times as fast carries ⌊c⌋ messages of a
phase, and a message over a link with c < 1 lasts 1/c phases. Parallel cables are one link with
their rates added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor

from stagegen.errors import NotFoundError
from stagegen.topology import Topology

NodeEdge = tuple[int, int]
"""A directed edge of the rank tree, by the numbers of its nodes."""

SLOW_PHASES_MOST = 2**20
"""The most phases listed for an alltoall over slow links; most of them start no message."""


def slowest_host_rate(topology: Topology) -> int:
    """Return the rate of the slowest link of a host with a rank, in bit/s."""
    used = set(topology.ranks)
    return min(host.bandwidth for host in topology.hosts if host.name in used)


def edge_capacity(topology: Topology, node: int, neighbour: int) -> Fraction:
    """Return the rate of a link of the rank tree in units of the slowest host link's.

    The link of a rank on a shared host has capacity 1: a rank sends, and receives, one message of a
    phase. For all links :func:`edge_capacities` is faster.
    """
    names = topology.tree.names
    rate = topology.rates.get((names[node], names[neighbour]))
    return Fraction(1) if rate is None else Fraction(rate, slowest_host_rate(topology))


def edge_capacities(topology: Topology) -> Mapping[NodeEdge, Fraction]:
    """Return the capacity of every directed edge of the rank tree, in messages of a phase.

    A capacity is below 1 or whole: a link that is 2.5 times as fast cannot use the half message.
    The edge of a rank has 1, however fast its host's link is, since a rank sends one message at
    a time.
    """
    tree, slowest = topology.tree, slowest_host_rate(topology)
    capacities = {}
    for node, neighbour in tree.links():
        rate = topology.rates.get((tree.names[node], tree.names[neighbour]))
        capacity = Fraction(1 if rate is None else rate, 1 if rate is None else slowest)
        if max(tree.rank[node], tree.rank[neighbour]) >= 0:
            capacity = Fraction(1)
        elif capacity > 1:
            capacity = Fraction(floor(capacity))
        capacities[node, neighbour] = capacities[neighbour, node] = capacity
    return capacities


def bound_phases(topology: Topology) -> int:
    """Return a lower bound on the number of phases of an alltoall.

    It is the maximum of |M| - 1, which each rank sends, and of ⌈load / capacity⌉ over all links,
    with capacities rounded down as in :func:`edge_capacities`.
    """
    if topology.rank_count == 1:
        return 0
    capacities = edge_capacities(topology)
    return max(ceil(topology.tree.load(*edge) / capacity) for edge, capacity in capacities.items())


def require_phases(topology: Topology) -> None:
    """Check that an alltoall over slow links has few enough phases to be listed.

    Raises:
        NotFoundError: it has too many; names the slowest link.
    """
    slow = {edge: c for edge, c in edge_capacities(topology).items() if c < 1}
    if not slow:
        return
    (one, other), least = min(slow.items(), key=lambda item: item[1])
    if (bound := bound_phases(topology)) > SLOW_PHASES_MOST:
        names = topology.tree.names
        raise NotFoundError(
            f"there is no alltoall in phases: the link {names[one]}–{names[other]} is "
            f"{float(1 / least):.6g} times slower than the slowest host's and would take "
            f"{bound:,} phases; at most {SLOW_PHASES_MOST:,} are possible"
        )
