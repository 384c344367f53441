"""A cluster as seen by some of its hosts: the tree that they induce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stagegen.errors import InputError
from stagegen.topology.document import did_you_mean
from stagegen.topology.model import RankMap, Topology


def restricted_to(topology: Topology, hosts: Sequence[str]) -> Topology:
    """Return the cluster with the ranks of these hosts only, numbered from 0 in their order.

    `MPI_Comm_create` and `MPI_Group_incl` number a group in ascending order in the same way. Paths
    between the ranks stay as they are; links that lead to no rank carry nothing.

    Args:
        topology: the cluster.
        hosts: names of hosts, in any order.

    Raises:
        InputError: a host that the cluster lacks, that has no rank, or that is named twice.
    """
    used = set(topology.ranks)
    for index, name in enumerate(hosts):
        if name not in topology.host_by_name:
            raise InputError(f"there is no host {name!r}{did_you_mean(name, used)}")
        if name not in used:
            raise InputError(f"host {name} has no rank in {topology.name}")
        if name in hosts[:index]:
            raise InputError(f"host {name} is named twice; name each host of a group once")
    wanted = set(hosts)
    chosen = tuple(host for host in topology.ranks if host in wanted)
    if not chosen:
        raise InputError("a group needs at least one host")
    return replace(topology, rank_map=RankMap("list", chosen), groups=())
