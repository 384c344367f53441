"""One rank of each host speaks for all of them: the hierarchical alltoall.

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
    """Which rank speaks for which.

    Host number i is the i-th by its lowest rank; that is rank i of the leaders' topology.

    Attributes:
        leaders: the lowest rank of each host, ascending.
        members: all ranks of each host, ascending; the leader is the first.
        topology: the cluster with the leaders as its ranks.
    """

    leaders: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    topology: Topology

    def blocks(self, source: int, destination: int) -> int:
        """Return how many blocks of the ranks' alltoall the message of two hosts holds."""
        return len(self.members[source]) * len(self.members[destination])


def hierarchy(topology: Topology) -> Hierarchy:
    """Return the leaders of a cluster's hosts and whom they serve.

    A schedule of the leaders' topology takes all of its messages as equally long. They are if
    all hosts have equally many ranks; otherwise a phase lasts as long as its longest message.
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
