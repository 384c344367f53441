"""The hierarchical alltoall: one rank of each host speaks for all of its ranks.

The ranks of a host gather their data at its *leader*, the leaders exchange aggregated blocks
by a schedule of their own, and each leader scatters what it received. So a pair of hosts costs
one message instead of one for each pair of their ranks: fewer start-ups for the same bytes.
The leaders' topology has one rank on each host, so any schedule of this package fits it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagegen.topology import RankMap, Topology


@dataclass(frozen=True)
class Hierarchy:
    """The leader of each host, and the ranks that it speaks for.

    Hosts are numbered by their lowest ranks; the leader of host i is rank i of the leaders'
    topology.

    Attributes:
        leaders: the lowest rank of each host, ascending.
        members: all ranks of each host, ascending; the leader is the first.
        topology: the cluster with the leaders as its ranks.
    """

    leaders: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    topology: Topology

    def blocks(self, source: int, destination: int) -> int:
        """Return how many blocks of the ranks' alltoall a message between two hosts holds."""
        return len(self.members[source]) * len(self.members[destination])


def hierarchy(topology: Topology) -> Hierarchy:
    """Return the leaders of a cluster's hosts and the ranks that they serve.

    A schedule of the leaders' topology assumes that all messages are equally long. They are if all
    hosts have equally many ranks; otherwise a phase lasts as long as its longest message.
    """
    ranks_of: dict[str, list[int]] = {}
    for rank, host in enumerate(topology.ranks):
        ranks_of.setdefault(host, []).append(rank)
    members = tuple(map(tuple, ranks_of.values()))
    return Hierarchy(
        leaders=tuple(ranks[0] for ranks in members),
        members=members,
        topology=replace(topology, rank_map=RankMap("list", tuple(ranks_of))),
    )
