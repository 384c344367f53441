"""Phases of clusters with fast links: never overloaded, and few more than the bound."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.data import TOPOLOGIES
from stagegen.schedule.alltoall.capacity import bound_phases, edge_capacities
from stagegen.schedule.alltoall.phases.assignment import assign_phases
from stagegen.schedule.alltoall.phases.capacity_phases import capacity_phases
from stagegen.schedule.alltoall.phases.root import rooted_view
from stagegen.schedule.alltoall.schedule import alltoall_phases
from stagegen.topology import load_topology
from tests.strategies import GIGABIT, examples, fast_topologies, make_topology, oracle_paths


def plain_capacities(topology) -> dict[tuple[str, str], Fraction]:
    """What every edge carries in a phase, from the plain lists; of ranks' own edges 1."""
    used = Counter(topology.ranks)
    rate = {host.name: host.bandwidth for host in topology.hosts}
    slowest = min(rate[host] for host in used)
    found = {}
    for path in oracle_paths(topology).values():
        for edge in (path[0], path[-1]):
            found[edge] = Fraction(1)
    for host in topology.hosts:
        if used[host.name] > 1:
            for edge in ((host.name, host.switch), (host.switch, host.name)):
                found[edge] = Fraction(host.bandwidth, slowest)
    for link in topology.links:
        for edge in (link.ends, link.ends[::-1]):
            found[edge] = Fraction(link.bandwidth * link.count, slowest)
    return found


def plain_bound(topology) -> int:
    """The most of load / capacity, edge by edge."""
    capacity = plain_capacities(topology)
    load = Counter(edge for path in oracle_paths(topology).values() for edge in path)
    return max(
        (
            ceil(messages / (floor(capacity[edge]) if capacity[edge] >= 1 else capacity[edge]))
            for edge, messages in load.items()
        ),
        default=0,
    )


def check(topology, phases) -> None:
    """Every pair once, and no edge of the network overloaded in any phase."""
    paths, capacity = oracle_paths(topology), plain_capacities(topology)
    assert sorted(message for phase in phases for message in phase) == sorted(paths)
    for phase in phases:
        for edge, messages in Counter(e for m in phase for e in paths[m]).items():
            assert messages <= capacity[edge]


def allowed(bound: int) -> int:
    """5 % more phases than the bound, and one more where 5 % is less than a phase."""
    return max(bound + 1, floor(1.05 * bound))


@examples(80)
@given(fast_topologies())
def test_fast_links_are_used_and_not_overloaded(topology):
    schedule = alltoall_phases(topology)
    check(topology, schedule.phases)
    assert schedule.bound_phases == plain_bound(topology)
    assert schedule.bound_phases <= len(schedule.phases) <= allowed(schedule.bound_phases)
    assert schedule.gap == pytest.approx(
        0
        if topology.rank_count == 1
        else (len(schedule.phases) - schedule.bound_phases) / schedule.bound_phases
    )
    assert schedule.phases == alltoall_phases(topology).phases


@examples(40)
@given(fast_topologies(max_hosts=16, max_switches=6))
def test_the_scheduler_alone_has_few_more_phases_than_the_bound(topology):
    # Also where the construction would be taken instead, having as many phases as the bound.
    if topology.rank_count > 1:
        phases = capacity_phases(topology)
        check(topology, phases)
        assert len(phases) <= allowed(bound_phases(topology))


def test_where_nothing_faster_matters_the_construction_is_taken():
    # The link between s1 and s2 is fast, but the bottleneck is the link to s0.
    topology = make_topology([6, 1, 1], [0, 1], uplinks=[1, 4])
    assert alltoall_phases(topology).phases == assign_phases(rooted_view(topology))


def star(*switches: int, uplink) -> object:
    uplinks = uplink if isinstance(uplink, list) else [uplink] * len(switches)
    return make_topology([0, *switches], [0] * len(switches), uplinks=uplinks)


def three_level(cores: int, leaves: int, hosts: int, uplink: float, core_link: float) -> object:
    counts, parents, uplinks = [0], [], []
    for _ in range(cores):
        core = len(counts)
        counts += [0] + [hosts] * leaves
        parents += [0] + [core] * leaves
        uplinks += [core_link] + [uplink] * leaves
    return make_topology(counts, parents, uplinks=uplinks)


SHAPES = {
    **{f"star 8 × 8, {c}": lambda c=c: star(*[8] * 8, uplink=c) for c in (2, 3, 4, 5, 8, 10)},
    **{f"star 4 × 4, {c}": lambda c=c: star(*[4] * 4, uplink=c) for c in (2, 3, 4)},
    "star 2 × 32, 10": lambda: star(32, 32, uplink=10),
    "star 16 × 4, 3": lambda: star(*[4] * 16, uplink=3),
    "star, all sizes": lambda: star(5, 9, 12, 7, 3, uplink=[2, 3, 4, 2, 1]),
    "chain 6 × 8, 4": lambda: make_topology([8] * 6, range(5), uplinks=[4] * 5),
    "chain, fat middle": lambda: make_topology([8, 4, 8, 2, 10], range(4), uplinks=[3, 5, 5, 2]),
    "3 × 3 × 6, 2 and 4": lambda: three_level(3, 3, 6, 2, 4),
    "4 × 4 × 4, 2 and 3": lambda: three_level(4, 4, 4, 2, 3),
    "2 × 4 × 8, 4 and 8": lambda: three_level(2, 4, 8, 4, 8),
    "3 × 2 × 10, 5 and 5": lambda: three_level(3, 2, 10, 5, 5),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_gap_of_benchmark_clusters_is_at_most_five_percent(shape):
    topology = SHAPES[shape]()
    schedule = alltoall_phases(topology)
    check(topology, schedule.phases)
    assert schedule.gap <= 0.05


def test_two_levels_reach_the_bound():
    for sizes in combinations_with_replacement(range(1, 5), 3):
        for uplinks in product((1, 2, 3), repeat=3):
            for at_the_core in (0, 2):
                topology = make_topology([at_the_core, *sizes], [0] * 3, uplinks=list(uplinks))
                assert alltoall_phases(topology).gap == 0


@pytest.mark.parametrize("file", sorted(TOPOLOGIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_gap_of_the_clusters_of_this_repository_is_at_most_five_percent(file):
    topology = load_topology(file)
    schedule = alltoall_phases(topology)
    assert schedule.bound_phases == plain_bound(topology)
    assert schedule.gap <= 0.05


@examples(60)
@given(fast_topologies(max_hosts=10, max_switches=5))
def test_capacities_are_those_of_the_plain_lists(topology):
    names, plain = topology.tree.names, plain_capacities(topology)
    for (one, other), capacity in edge_capacities(topology).items():
        assert capacity == floor(plain[names[one], names[other]])


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_messages_within_a_host_use_no_link(slots):
    # One host: as if each rank were a host of its own; two: the hosts' links are the bottleneck.
    one = make_topology([1], [], slots={"n0": slots})
    assert len(alltoall_phases(one).phases) == slots - 1
    two = make_topology([2], [], slots={"n0": slots, "n1": slots})
    assert len(alltoall_phases(two).phases) == slots * slots


@given(st.integers(2, 4), st.integers(2, 4))
def test_a_faster_host_link_carries_messages_of_several_ranks(hosts, slots):
    names = [f"n{i}" for i in range(hosts)]
    fast = dict.fromkeys(names, slots * GIGABIT)
    # A host with a single rank and the slowest link makes the others fast.
    topology = make_topology(
        [hosts, 1], [0], slots=dict.fromkeys(names, slots), rates=fast, uplinks=[1]
    )
    schedule = alltoall_phases(topology)
    assert len(schedule.phases) == schedule.bound_phases == hosts * slots
    check(topology, schedule.phases)
