"""Where the time of a tree goes, by a simple model: a latency for each contribution that comes.

The times of nodes are a mapping from their names to seconds; measured ones serve as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stagegen.topology import Topology
from stagegen.trees.model import ConfiguredTree

#: Seconds that a rank needs for a contribution from its own host, and for one from another host
#: beside the latency of the links. Round numbers of MPI on one machine and over TCP.
NEAR, FAR = 1e-6, 10e-6


@dataclass(frozen=True)
class Hotspot:
    """A node on the longest way from an operand to the result.

    Attributes:
        node: its name.
        seconds: what it adds to this way.
    """

    node: str
    seconds: float


def node_seconds(
    topology: Topology, tree: ConfiguredTree, near: float = NEAR, far: float = FAR
) -> dict[str, float]:
    """Return the seconds of each node's work: the contributions that come, one after the other.

    Args:
        topology: the cluster.
        tree: over all its ranks.
        near: seconds for a contribution from the same host.
        far: seconds for one from another host, without the latency of the links.
    """
    hosts = topology.ranks
    seconds: dict[str, float] = {}
    for node in tree.nodes:
        total, longest = 0.0, 0.0
        for giver in map(tree.worker_of, node.contributors):
            if giver == node.worker:
                continue
            if hosts[giver] == hosts[node.worker]:
                total += near
                continue
            total += far
            links = topology.path(giver, node.worker)
            longest = max(longest, sum(topology.latencies.get(link, 0.0) for link in links))
        seconds[node.name] = total + longest
    return seconds


def hotspots(tree: ConfiguredTree, seconds: Mapping[str, float]) -> tuple[Hotspot, ...]:
    """Return the nodes on the longest way up, from the first node on.

    A node begins when its contributors are there, and when its rank has done its nodes before.

    Args:
        tree: the tree.
        seconds: of each node's work, measured or by :func:`node_seconds`.
    """
    over: dict[str, float] = {}
    before: dict[str, str | None] = {}
    last: dict[int, str] = {}
    for node in tree.nodes:
        awaited = [one for one in node.contributors if isinstance(one, str)]
        if node.worker in last:
            awaited.append(last[node.worker])
        latest = max(awaited, key=lambda one: over[one], default=None)
        before[node.name] = latest
        over[node.name] = seconds[node.name] + (0.0 if latest is None else over[latest])
        last[node.worker] = node.name
    way: list[Hotspot] = []
    at: str | None = tree.root.name
    while at is not None:
        way.append(Hotspot(at, seconds[at]))
        at = before[at]
    return tuple(reversed(way))


def seconds_up(tree: ConfiguredTree, seconds: Mapping[str, float]) -> float:
    """Return the seconds from the last operand to the result, by the times of the nodes."""
    return sum(one.seconds for one in hotspots(tree, seconds))
