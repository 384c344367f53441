"""The checker's links as arrays: their messages, capacities and loads.

Every link divides the ranks in two. In the order of their routes, the ranks below a link are
consecutive, and a message uses the link exactly if one of its ranks is among them and the other
is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np

from stagegen.schedule.verify.paths import Network
from stagegen.schedule.verify.plan import Numbers, Plan
from stagegen.topology import Edge, Topology


@dataclass(frozen=True)
class Uses:
    """The messages on each directed edge, by edges, then in the order of the schedule.

    Attributes:
        edge: twice the number of the link, plus one for its downward edge.
        message: the number of a message.
    """

    edge: Numbers
    message: Numbers

    def apart(self, distance: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return (edge, user, later user) for users that are `distance` turns apart on an edge."""
        later = np.arange(len(self.edge)) + distance[self.edge]
        inside = np.flatnonzero(later < len(self.edge))
        both = inside[self.edge[later[inside]] == self.edge[inside]]
        return self.edge[both], self.message[both], self.message[later[both]]


class Links:
    """The links on the routes of a network's ranks.

    Attributes:
        edges: the (lower, upper) end of every link.
        capacity: of every link, in messages of a phase: its rate in units of the slowest
            link of a host with ranks; 1 for the link of a rank alone, and for a link that no
            message uses, as all ranks are below it.
        low: for every link, the first place of a rank below it, in the order of routes.
        high: for every link, the place after the last one.
    """

    def __init__(self, topology: Topology, network: Network):
        routes = network.routes
        order = sorted(range(len(routes)), key=lambda rank: routes[rank][::-1])
        self.place = np.empty(len(routes), np.int64)
        self.place[order] = np.arange(len(routes))
        self.edges: list[Edge] = list(dict.fromkeys(e for rank in order for e in routes[rank]))
        number = {edge: index for index, edge in enumerate(self.edges)}
        self.routes = np.full((len(routes), max(map(len, routes))), -1, np.int64)
        self.low = np.full(len(self.edges), len(routes), np.int64)
        self.high = np.zeros(len(self.edges), np.int64)
        for rank, route in enumerate(routes):
            links = [number[edge] for edge in route]
            self.routes[rank, : len(links)] = links
            self.low[links] = np.minimum(self.low[links], self.place[rank])
            self.high[links] = np.maximum(self.high[links], self.place[rank] + 1)
        rates = _capacities(topology, [route[0] for route in routes], self.edges)
        below_all = (self.high - self.low == len(routes)).tolist()
        self.capacity = [Fraction(1) if b else c for b, c in zip(below_all, rates, strict=True)]

    @property
    def equal(self) -> bool:
        """Whether every link carries one message of a phase, as in the dissertation."""
        return all(1 <= capacity < 2 for capacity in self.capacity)

    @property
    def slow(self) -> bool:
        """Whether some link takes longer than a phase for a message."""
        return any(capacity < 1 for capacity in self.capacity)

    def carried(self) -> Numbers:
        """Return how many messages of a phase every directed edge carries, at least 1.

        An alltoall has fewer than the square of the ranks, so an edge that carries more has that.
        """
        most = len(self.place) ** 2
        return np.repeat([max(1, min(floor(capacity), most)) for capacity in self.capacity], 2)

    def bound(self) -> int:
        """Return the least number of phases of an alltoall.

        A link with load l needs ⌈l/⌊c⌋⌉ phases if c ≥ 1, and ⌈l/c⌉ if c < 1.
        """
        below: list[int] = (self.high - self.low).tolist()
        loads = [count * (len(self.place) - count) for count in below]
        rates = [Fraction(floor(c)) if c >= 1 else c for c in self.capacity]
        return max(ceil(load / rate) for load, rate in zip(loads, rates, strict=True))

    def uses(self, plan: Plan) -> Uses:
        """Return the messages on each directed edge."""
        found = []
        for direction, here, there in (
            (0, plan.source, plan.destination),
            (1, plan.destination, plan.source),
        ):
            other = self.place[there]
            for column in self.routes.T:
                link = column[here]
                leaves = (other < self.low[link]) | (other >= self.high[link])
                message = np.flatnonzero(leaves & (link >= 0))
                found.append((2 * link[message] + direction) * len(here) + message)
        edge, message = np.divmod(np.sort(np.concatenate(found)), max(1, len(plan.source)))
        return Uses(edge, message)

    def name(self, edge: int) -> str:
        """Return a directed edge in words."""
        lower, upper = self.edges[edge // 2]
        return f"{upper}→{lower}" if edge % 2 else f"{lower}→{upper}"


def _capacities(topology: Topology, own: list[Edge], edges: list[Edge]) -> list[Fraction]:
    """Return the capacities of links; `own` are the links of single ranks."""
    used = set(topology.ranks)
    slowest = min(host.bandwidth for host in topology.hosts if host.name in used)
    rates = {(host.name, host.switch): host.bandwidth for host in topology.hosts}
    for link in topology.links:
        one, other = link.ends
        rates[one, other] = rates[other, one] = link.bandwidth * link.count
    alone = set(own)
    return [Fraction(1) if e in alone else Fraction(rates[e], slowest) for e in edges]
