"""The leaders of hosts, from the tables of a hierarchical routine."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from stagegen.audit.c_file import CFile
from stagegen.errors import ScheduleError
from stagegen.topology import RankMap, Topology


def leaders(topology: Topology, c_file: CFile) -> Topology:
    """Return the topology of the hosts' leaders, after comparing the tables of hosts with it.

    Raises:
        ScheduleError: the tables contradict the topology, or each other.
    """
    ranks, count = topology.rank_count, len(set(topology.ranks))
    members, host_of = c_file.array("members"), c_file.array("host_of")
    c_file.require(HOSTS=count, RANKS=ranks)
    if sorted(members) != list(range(ranks)):
        raise ScheduleError("members[] does not have every rank exactly once")
    if len(host_of) != ranks:
        raise ScheduleError(f"host_of[] has {len(host_of)} of {ranks} ranks")
    first = c_file.divided("first_member", count, ranks, "ranks")
    names = []
    for host, (start, end) in enumerate(pairwise(first)):
        found = {topology.ranks[rank] for rank in members[start:end]}
        if len(found) != 1:
            raise ScheduleError(f"first_member[], host {host}: its members are not of one host")
        names.append(found.pop())
        for rank in members[start:end]:
            if host_of[rank] != host:
                raise ScheduleError(f"rank {rank}: host_of[] contradicts members[]")
    if len(set(names)) != count:
        raise ScheduleError("first_member[] does not divide the ranks by hosts")
    return replace(topology, rank_map=RankMap("list", tuple(names)))
