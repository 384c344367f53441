"""The links of a cluster as C tables, for schedules that are made at run time."""

from __future__ import annotations

from dataclasses import dataclass

from stagegen.topology import Topology


@dataclass(frozen=True)
class LinkTables:
    """The cluster as a tree of nodes: the switches in file order, then the hosts in file order.

    Attributes:
        parents: of each node; -1 for the first switch.
        rates: of the link from each node to its parent, in bit/s; 0 for the first switch.
        first_host: the number of the first host.
    """

    parents: tuple[int, ...]
    rates: tuple[int, ...]
    first_host: int


def link_tables(topology: Topology) -> LinkTables:
    """Return the tree of a cluster's switches and hosts, those that have no rank included."""
    switches = [switch.name for switch in topology.switches]
    number = {name: place for place, name in enumerate(switches)}
    near: dict[str, dict[str, int]] = {name: {} for name in switches}
    for link in topology.links:
        one, other = link.ends
        near[one][other] = near[other][one] = link.rate
    parents, rates = {switches[0]: -1}, {switches[0]: 0}
    waiting = [switches[0]]
    while waiting:
        node = waiting.pop()
        for neighbour, rate in near[node].items():
            if neighbour not in parents:
                parents[neighbour], rates[neighbour] = number[node], rate
                waiting.append(neighbour)
    return LinkTables(
        (*(parents[name] for name in switches), *(number[h.switch] for h in topology.hosts)),
        (*(rates[name] for name in switches), *(host.bandwidth for host in topology.hosts)),
        len(switches),
    )
