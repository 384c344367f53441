"""The experiments about patterns: their clusters, and their reports from results that are known."""

from __future__ import annotations

import pytest

from docs.tools.experiments.patterns import first_calls, tuned
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


ROUNDS = """\
round 0: library 2.000000 s, native 1.000000 s
round 1: library 1.000000 s, native 1.500000 s
round 2: library 1.000000 s, native 2.000000 s
right: 3 rounds of 10 calls
"""


def test_first_calls_of_processes_are_told_apart():
    jobs = [first_calls.rounds_in(ROUNDS)] * 3
    assert jobs[0] == [[2.0, 1.0], [1.0, 1.5], [1.0, 2.0]]
    found = {"random-5 bbr zipf-1": {"chosen": "pattern_zipf_1", "jobs": jobs}}
    row = "| random-5 bbr zipf-1 | pattern_zipf_1 | 1.000 | 1.50 | 0.50 |"
    assert row in first_calls.EXPERIMENT.report(found)
    assert [one.met for one in first_calls.EXPERIMENT.targets(found)] == [True, False]


def test_calls_that_went_wrong_have_no_times():
    with pytest.raises(ValueError, match="no times of right calls"):
        first_calls.rounds_in(ROUNDS.replace("right", "wrong"))


def test_jobs_of_long_calls_have_fewer_rounds():
    assert [first_calls.rounds_of(s) for s in (0.01, 0.5, 20)] == [first_calls.ROUNDS, 3, 1]
