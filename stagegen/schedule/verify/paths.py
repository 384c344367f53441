"""The checker's own idea of the network, from the plain lists of a topology.

It shares no code with the schedulers: every rank has a route up to the first switch, and the path
between two ranks consists of the edges that their routes do not share.
"""

from __future__ import annotations

from collections import Counter, deque

from stagegen.errors import ScheduleError
from stagegen.schedule.model import Message
from stagegen.topology import Edge, Topology


def neighbours_of_switches(topology: Topology) -> dict[str, list[str]]:
    """Return the switches that links join to each switch."""
    near: dict[str, list[str]] = {switch.name: [] for switch in topology.switches}
    for one, other in (link.ends for link in topology.links):
        near[one].append(other)
        near[other].append(one)
    return near


class Network:
    """Routes, paths and loads of a cluster's ranks."""

    def __init__(self, topology: Topology):
        self.switches = {switch.name for switch in topology.switches}
        near = neighbours_of_switches(topology)
        top = topology.switches[0].name
        above, waiting = {top: top}, deque([top])
        while waiting:
            here = waiting.popleft()
            for name in near[here]:
                if name not in above:
                    above[name] = here
                    waiting.append(name)
        plugged = {host.name: host.switch for host in topology.hosts}
        sharing = Counter(topology.ranks)
        self.routes = [
            self._route(rank, host, sharing[host] > 1, plugged[host], above)
            for rank, host in enumerate(topology.ranks)
        ]
        self.sets = [frozenset(route) for route in self.routes]

    @staticmethod
    def _route(
        rank: int, host: str, shared: bool, switch: str, above: dict[str, str]
    ) -> list[Edge]:
        """Return the edges from a rank up to the first switch."""
        route = [(f"rank {rank}", host)] if shared else []
        route.append((host, switch))
        while above[switch] != switch:
            route.append((switch, above[switch]))
            switch = above[switch]
        return route

    def path(self, message: Message) -> list[Edge]:
        """Return the directed edges that a message uses."""
        source, destination = self.sets[message.source], self.sets[message.destination]
        up = [edge for edge in self.routes[message.source] if edge not in destination]
        down = [(b, a) for a, b in self.routes[message.destination] if (a, b) not in source]
        return up + down

    def hops(self, message: Message) -> int:
        """Return how many switches a message passes."""
        nodes = {node for edge in self.path(message) for node in edge}
        return len(nodes & self.switches)

    def branches(self, root: str) -> list[tuple[int, ...]]:
        """Return the ranks of each branch of a node, sorted."""
        groups: dict[str | None, list[int]] = {}  # None: all that is above the node
        for rank, route in enumerate(self.routes):
            through = [child for child, parent in route if parent == root]
            groups.setdefault(through[0] if through else None, []).append(rank)
        return sorted(tuple(ranks) for ranks in groups.values())


def require(holds: bool, problem: str) -> None:
    """Raise a schedule error unless a property holds."""
    if not holds:
        raise ScheduleError(problem)


def require_rank(rank: int, count: int, where: str) -> None:
    """Raise a schedule error unless there is such a rank."""
    require(0 <= rank < count, f"{where}: there is no rank {rank}; ranks are 0 to {count - 1}")


def require_same_ranks(topology: Topology, ranks: tuple[str, ...]) -> None:
    """Raise a schedule error unless a schedule's ranks are the topology's."""
    require(ranks == topology.ranks, "the schedule's ranks differ from the topology's")
