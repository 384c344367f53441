"""What ``make bench`` measures: all collectives, all points with goals, clusters that stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.tools.bench.page import README_POINTS
from docs.tools.bench.plan import CLUSTERS, FIXED, HOSTS, RATE, SEEDS, SWITCHES, random_cluster
from docs.tools.bench.targets import GOALS
from stagegen.catalogue import load_catalogue
from stagegen.topology import load_topology

DRAWN = {
    1: "n7 n5 n2 n4 n6 n0 n8 n1 n3",
    7: "n1 n2 n5 n4 n7 n6 n8 n3 n0 n9",
    5: "n8 n2 n9 n11 n0 n10 n4 n1 n6 n3 n7 n5",
}


def points(cluster):
    return {(name, size) for name in cluster.collectives for size in cluster.compared(name)}


def test_the_fixed_cluster_has_all_collectives_and_every_goal():
    assert set(FIXED.collectives) == set(load_catalogue().collectives)
    assert {(goal.collective, goal.size) for goal in GOALS} <= points(FIXED)
    assert points(FIXED) >= README_POINTS


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_what_is_promised_everywhere_is_measured_everywhere(cluster):
    everywhere = {(goal.collective, goal.size) for goal in GOALS if goal.everywhere}
    assert everywhere
    assert everywhere <= points(cluster)


@pytest.mark.parametrize("seed", range(60))
def test_random_clusters_are_as_asked_for(seed):
    topology = random_cluster(seed)
    assert SWITCHES[0] <= len(topology.switches) <= SWITCHES[1]
    assert HOSTS[0] <= len(topology.hosts) == topology.rank_count <= HOSTS[1]
    assert min(len(switch.hosts) for switch in topology.switches) >= 2
    assert {part.bandwidth for part in (*topology.hosts, *topology.links)} == {RATE}
    assert set(topology.ranks) == {host.name for host in topology.hosts}
    assert topology == random_cluster(seed)


def test_the_seeds_are_the_first_with_so_many_switches():
    for seed in SEEDS:
        count = len(random_cluster(seed).switches)
        assert all(len(random_cluster(one).switches) != count for one in range(1, seed))
    counts = {len(random_cluster(seed).switches) for seed in SEEDS}
    assert counts == set(range(SWITCHES[0], SWITCHES[1] + 1))


def test_the_seeds_draw_what_they_always_drew():
    """Python's generator is to stay, or the page's numbers are of other clusters."""
    ranks = {seed: " ".join(random_cluster(seed).ranks) for seed in SEEDS}
    assert ranks == DRAWN


def test_a_random_cluster_is_written_as_a_topology_file(tmp_path: Path):
    cluster = CLUSTERS[f"random-{SEEDS[0]}"]
    assert load_topology(cluster.file(tmp_path)) == cluster.topology()
    assert FIXED.file(tmp_path) == FIXED.source
