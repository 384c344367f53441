"""The leaders of hosts, from the tables of a hierarchical routine."""

from __future__ import annotations

from dataclasses import replace

from stagegen.audit.tables import Tables
from stagegen.errors import ScheduleError
from stagegen.topology import RankMap, Topology


def leaders(topology: Topology, tables: Tables, group: int) -> Topology:
    """Return the topology of the hosts' leaders, after comparing the tables of hosts with it.

    Args:
        topology: of the ranks of a group.
        tables: of the routine for this group.
        group: its number; 0 for the whole cluster.

    Raises:
        ScheduleError: the tables contradict the topology, or each other.
    """
    hosts = set(topology.ranks)
    tables.require_constants({"HOSTS": len(hosts), "GROUP": group})
    positions = tables.array("leader_of")
    for host, position in enumerate(positions):
        if not 0 <= position < topology.rank_count:
            raise ScheduleError(f"leader_of[], host {host}: there is no position {position}")
        if topology.ranks.index(topology.ranks[position]) != position:
            raise ScheduleError(f"leader_of[], host {host}: {position} is not its first position")
    names = tuple(topology.ranks[position] for position in positions)
    if len(names) != len(hosts) or set(names) != hosts:
        raise ScheduleError("leader_of[] does not have every host exactly once")
    return replace(topology, rank_map=RankMap("list", names))
