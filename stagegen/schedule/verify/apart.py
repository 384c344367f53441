"""What messages between some ranks use: ranks that share none of it cannot disturb each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from stagegen.schedule.verify.paths import Network
from stagegen.topology import Edge, Topology

#: A host, by its name, or a link, as (below, above).
Used: TypeAlias = str | Edge


def used_by(topology: Topology, communicators: Sequence[Iterable[int]]) -> list[frozenset[Used]]:
    """Return for each communicator the hosts and the links that messages between its ranks use.

    A message leaves the route of its sender where it meets that of its receiver. So a link is used
    if it is on the route up from some of the ranks, and not from all. One direction stands for
    both, as other messages go the other way.

    Args:
        topology: the cluster.
        communicators: the ranks of each, at least one.
    """
    routes = Network(topology).sets
    return [_used(topology, routes, frozenset(ranks)) for ranks in communicators]


def _used(
    topology: Topology, routes: Sequence[frozenset[Edge]], ranks: frozenset[int]
) -> frozenset[Used]:
    own = [routes[rank] for rank in ranks]
    links = frozenset[Edge]().union(*own) - frozenset.intersection(*own)
    return frozenset({*links, *(topology.ranks[rank] for rank in ranks)})
