"""The checker's own view of paths between neighbours on a ring, and of how short they can be.

Works on the plain lists of a topology, in time linear in the lengths of the paths asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from stagegen.topology import Edge, Topology


class Floor(NamedTuple):
    """How many hops some message of every contention-free ring passes at least.

    Attributes:
        hops: that number.
        switch: the switch that shows it; None where no message passes a switch.
    """

    hops: int
    switch: str | None


class Climb:
    """Every node's way up to the first switch."""

    def __init__(self, topology: Topology):
        self.switches = {switch.name for switch in topology.switches}
        near: dict[str, list[str]] = {name: [] for name in self.switches}
        for one, other in (link.ends for link in topology.links):
            near[one].append(other)
            near[other].append(one)
        top = topology.switches[0].name
        self.above: dict[str, str] = {}
        self.depth = {top: 0}
        self.order = [top]
        for here in self.order:
            for name in near[here]:
                if name not in self.depth:
                    self.above[name], self.depth[name] = here, self.depth[here] + 1
                    self.order.append(name)
        used = set(topology.ranks)
        for host in topology.hosts:
            if host.name in used:
                self.above[host.name] = host.switch
                self.depth[host.name] = self.depth[host.switch] + 1
                self.order.append(host.name)

    def path(self, source: str, destination: str) -> list[Edge]:
        """Return the directed edges from one host to another."""
        up, down = [source], [destination]
        while up[-1] != down[-1]:
            lower = up if self.depth[up[-1]] > self.depth[down[-1]] else down
            lower.append(self.above[lower[-1]])
        return list(pairwise(up + down[-2::-1]))

    def floor(self) -> Floor:
        """Return a number of hops that no contention-free ring stays below.

        On a contention-free ring the branches of a switch that hold ranks stand in a circle,
        and two neighbouring branches exchange a message that passes the switch and, in both of
        them, at least as many switches as their nearest hosts are away. Take the j branches
        furthest away. If no two of them are neighbours, they have more than j others as
        neighbours, unless they are every second one; so the j-th furthest, or one further away,
        has a neighbour that is not among the j nearest.
        """
        best = Floor(0, None)
        for switch, distances in self._nearest_hosts():
            distances.sort()
            count = len(distances)
            for j in range(1, count // 2 + 1):
                neighbour = distances[j - 1] if 2 * j == count else distances[j]
                hops = distances[-j] + neighbour + 1
                if hops > best.hops:
                    best = Floor(hops, switch)
        return best

    def _nearest_hosts(self) -> Iterator[tuple[str, list[int]]]:
        """Yield the switches and how many switches are before the nearest host of each branch."""
        below: dict[str, dict[str, int]] = {name: {} for name in self.switches}
        for name in reversed(self.order):
            if name not in self.switches:
                below[self.above[name]][name] = 0
            elif below[name] and name in self.above:
                below[self.above[name]][name] = 1 + min(below[name].values())
        beyond: dict[str, int] = {}
        for name in self.order:
            if name in self.switches:
                distances = [*below[name].values()]
                if name in beyond:
                    distances.append(beyond[name])
                nearest = sorted(distances)[:2]
                yield name, distances
                for child, distance in below[name].items():
                    rest = nearest[1:] if distance == nearest[0] else nearest
                    if rest and child in self.switches:
                        beyond[child] = 1 + rest[0]
