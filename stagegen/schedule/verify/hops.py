"""The checker's own view of the paths between neighbours on a ring, and of their least length.

Works on the plain lists of a topology, in time linear in the lengths of the paths asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from stagegen.schedule.verify.paths import neighbours_of_switches
from stagegen.topology import Edge, Topology


class Floor(NamedTuple):
    """A number of hops that some message of every contention-free ring needs at least.

    Attributes:
        hops: that number.
        switch: the switch that shows it; None where no message passes a switch.
    """

    hops: int
    switch: str | None


_Reach = tuple[int, int]
"""The least number of switches before each of a branch's two end hosts, nearer one first."""


class Climb:
    """Every node's way up to the first switch."""

    def __init__(self, topology: Topology):
        self.switches = {switch.name for switch in topology.switches}
        near = neighbours_of_switches(topology)
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
        """Return a lower bound on the hops of a contention-free ring.

        On a contention-free ring the branches of a switch that hold hosts stand in a circle,
        each with a first and a last host, and neighbours in the circle exchange a message
        that passes the switch and, in both branches, the switches before these hosts.
        """
        best = Floor(0, None)
        for switch, branches in self._branches():
            hops = 1 + max(_circle(branches), _pairs(branches)) if len(branches) > 1 else 0
            if hops > best.hops:
                best = Floor(hops, switch)
        return best

    def _branches(self) -> Iterator[tuple[str, list[_Reach]]]:
        """Yield the switches, each with the least reach of its branches that hold hosts."""
        below: dict[str, dict[str, _Reach]] = {name: {} for name in self.switches}
        for name in reversed(self.order):
            if name not in self.switches:
                below[self.above[name]][name] = (0, 0)
            elif below[name] and name in self.above:
                below[self.above[name]][name] = _beyond(below[name].values())
        upwards: dict[str, _Reach] = {}
        for name in self.order:
            if name in self.switches:
                around = list(below[name].values())
                if name in upwards:
                    around.append(upwards[name])
                yield name, around
                nearest = sorted(around)[:3]
                for child, reach in below[name].items():
                    rest = list(nearest)
                    if reach in rest:
                        rest.remove(reach)
                    if child in self.switches and rest:
                        # With only one other branch, both end hosts beyond the switch are in it.
                        upwards[child] = _beyond(rest)


def _beyond(branches: Iterable[_Reach]) -> _Reach:
    """Return the least distances of the first and the last host beyond a switch.

    If the switch has two branches or more, these hosts are in different branches.
    """
    nearest = sorted(branches)
    if len(nearest) == 1:
        return nearest[0][0] + 1, nearest[0][1] + 1
    return nearest[0][0] + 1, nearest[1][0] + 1


def _circle(branches: Sequence[_Reach]) -> int:
    """Return a lower bound on the largest sum of two neighbours, by the branches' nearest hosts.

    Take the j branches furthest away. If no two of them are neighbours, they have more than j
    others as neighbours, unless they are every second branch; so the j-th furthest, or one further
    away, has a neighbour that is not among the j nearest.
    """
    near = sorted(first for first, _ in branches)
    count = len(near)
    return max(
        near[-j] + (near[j - 1] if 2 * j == count else near[j]) for j in range(1, count // 2 + 1)
    )


def _pairs(branches: Sequence[_Reach]) -> int:
    """Return a lower bound on the largest sum of two ends that meet, as all ends meet in pairs.

    The j furthest of 2k ends cannot all meet one of the j-1 nearest, so for every j some pair
    sums to at least the j-th furthest plus the j-th nearest.
    """
    ends = sorted(end for branch in branches for end in branch)
    return max(near + far for near, far in zip(ends, reversed(ends), strict=True))
