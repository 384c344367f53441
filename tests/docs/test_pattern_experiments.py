"""The experiments about patterns: their clusters, and their reports from results that are known."""

from __future__ import annotations

from docs.tools.experiments.patterns import tuned
from docs.tools.experiments.patterns._clusters import CLUSTERS, topology_file
from stagegen.topology import load_topology


def test_one_cluster_is_drawn_at_random_and_is_no_star(tmp_path):
    fixed, drawn = CLUSTERS
    assert fixed == "chain-4x4-cyclic"
    topology = load_topology(topology_file(drawn, tmp_path))
    assert topology == CLUSTERS[drawn].topology()
    assert topology.launcher == "lab"
    inner = [end for link in topology.links for end in link.ends]
    assert max(map(inner.count, inner)) < len(topology.switches) - 1
    assert list(topology.ranks) != sorted(topology.ranks)


def test_every_pattern_is_tuned_for_on_every_cluster():
    names = {point.split()[0] for point in tuned.EXPERIMENT.points}
    assert names == set(CLUSTERS)
    assert len(tuned.EXPERIMENT.points) == 20 * 2 * len(CLUSTERS)
