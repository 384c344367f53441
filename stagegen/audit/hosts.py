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
            last = topology.rank_count - 1
            problem = f"there is no position {position}; positions are 0 to {last}"
            raise ScheduleError(f"leader_of[], host {host}: {problem}")
        first = topology.ranks.index(topology.ranks[position])
        if first != position:
            problem = f"{position} is not its first position, which is {first}"
            raise ScheduleError(f"leader_of[], host {host}: {problem}")
    names = tuple(topology.ranks[position] for position in positions)
    if len(names) != len(hosts) or set(names) != hosts:
        missing = ", ".join(sorted(hosts.difference(names))) or "none"
        problem = f"has {len(names)} leaders of {len(hosts)} hosts; hosts without one: {missing}"
        raise ScheduleError(f"leader_of[] {problem}")
    return replace(topology, rank_map=RankMap("list", names))
