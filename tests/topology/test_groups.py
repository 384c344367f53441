"""A group's topology has the group's ranks, and the paths that they have in the cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError
from stagegen.schedule import alltoall_schedule, broadcast_tree, logical_ring
from stagegen.schedule.verify import verify
from stagegen.topology import restricted_to
from tests.strategies import examples, make_topology, oracle_paths, topologies


@st.composite
def groups(draw):
    """A cluster and some of its hosts with ranks, in any order."""
    topology = draw(topologies(max_hosts=12, max_switches=6, max_ranks=14))
    hosts = sorted(set(topology.ranks))
    chosen = draw(st.lists(st.sampled_from(hosts), min_size=1, unique=True))
    return topology, chosen


@examples(60)
@given(groups())
def test_ranks_keep_their_order_and_paths(case):
    topology, hosts = case
    group = restricted_to(topology, hosts)
    members = [rank for rank, host in enumerate(topology.ranks) if host in hosts]
    assert list(group.ranks) == [topology.ranks[rank] for rank in members]
    whole, own = oracle_paths(topology), oracle_paths(group)
    for (u, v), path in own.items():
        inside = [edge for edge in path if not set(edge) <= set(group.ranks)]
        # The ends have other names where a host has several ranks; the way is the same.
        assert len(path) == len(whole[members[u], members[v]])
        assert {e for e in inside if not any(":" in name for name in e)} <= set(
            whole[members[u], members[v]]
        )


@examples(40)
@given(groups())
def test_groups_have_every_schedule(case):
    topology, hosts = case
    group = restricted_to(topology, hosts)
    schedule = alltoall_schedule(group)
    verify(group, schedule)
    assert len(schedule.phases) == schedule.bound_phases
    for other in (logical_ring(group, "lr1"), broadcast_tree(group, 0, "linear")):
        verify(group, other)


@given(topologies())
def test_all_hosts_are_the_cluster_itself(topology):
    group = restricted_to(topology, sorted(set(topology.ranks)))
    assert group.ranks == topology.ranks
    assert group.tree == topology.tree


def test_links_that_no_member_needs_are_no_bottleneck():
    # Seven hosts behind one link; of a group with one of them it is no bottleneck.
    topology = make_topology([3, 7], [0])
    assert alltoall_schedule(topology).bound_phases == 21
    assert alltoall_schedule(restricted_to(topology, ["n5", "n0", "n1"])).bound_phases == 2


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (["n0", "n9"], "there is no host 'n9'"),
        (["n0", "n2"], "host n2 has no rank"),
        (["n1", "n0", "n1"], "host n1 is named twice"),
        ([], "at least one host"),
    ],
)
def test_a_group_of_unknown_hosts_or_of_none_is_refused(hosts, told):
    topology = make_topology([3], [], ranks=["n0", "n1"])
    with pytest.raises(InputError, match=told):
        restricted_to(topology, hosts)
