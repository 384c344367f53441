"""Leaders and members of hosts: every rank is served once, and leaders keep the hosts' paths."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from stagegen.catalogue import load_catalogue
from stagegen.catalogue.cluster_schedules import ClusterSchedules
from stagegen.schedule.alltoall.phases.hierarchy import hierarchy
from stagegen.schedule.alltoall.schedule import alltoall_schedule
from stagegen.schedule.verify import verify
from tests.strategies import make_topology, topologies


@given(topologies())
def test_every_rank_is_served_by_the_lowest_of_its_host(topology):
    found = hierarchy(topology)
    assert sorted(rank for ranks in found.members for rank in ranks) == list(
        range(topology.rank_count)
    )
    assert list(found.leaders) == sorted(found.leaders)
    for leader, ranks, host in zip(found.leaders, found.members, found.topology.ranks, strict=True):
        assert leader == ranks[0] == topology.ranks.index(host)
        assert list(ranks) == [r for r, name in enumerate(topology.ranks) if name == host]


def test_leaders_may_have_phases_where_all_ranks_would_have_too_many():
    slots = {f"n{i}": 4 for i in range(4)}
    topology = make_topology([2, 2], [0], slots=slots, uplinks=[5e-5])
    known = load_catalogue().algorithms
    (of_hosts,) = (a for a in known if (a.collective, a.name) == ("alltoall", "hierarchical"))
    (of_ranks,) = (a for a in known if (a.collective, a.name) == ("alltoall", "aapc_receiver"))
    schedules = ClusterSchedules(topology)
    assert "there is no alltoall in phases" in (schedules.why_not(of_ranks) or "")
    assert schedules.why_not(of_hosts) is None


@given(topologies())
def test_leaders_have_a_schedule_and_messages_hold_all_blocks(topology):
    found = hierarchy(topology)
    schedule = alltoall_schedule(found.topology)
    verify(found.topology, schedule)
    blocks = Counter()
    for phase in schedule.phases:
        for source, destination in phase:
            blocks[source, destination] += found.blocks(source, destination)
    hosts = Counter(topology.ranks)
    between = sum(a * b for a in hosts.values() for b in hosts.values())
    assert sum(blocks.values()) == between - sum(count**2 for count in hosts.values())


def test_cyclic_ranks_have_the_lowest_of_each_host_as_leader():
    topology = make_topology(
        [2, 1], [0], ranks=["n2", "n0", "n1", "n0", "n2"], slots={"n0": 2, "n2": 2}
    )
    found = hierarchy(topology)
    assert found.leaders == (0, 1, 2)
    assert found.members == ((0, 4), (1, 3), (2,))
    assert found.topology.ranks == ("n2", "n0", "n1")
