"""Lower bounds against their definitions on random clusters."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError
from stagegen.schedule import lower_bound
from tests.strategies import make_topology, oracle_paths, topologies


def seconds(topology, carried: dict, size: int) -> float:
    rates = topology.rates
    return max((8 * n * size / rates[e] for e, n in carried.items() if e in rates), default=0.0)


@given(topologies(max_hosts=16, max_ranks=18), st.integers(0, 10**6))
def test_bandwidth_bounds(topology, size):
    paths = oracle_paths(topology)
    messages = Counter(edge for path in paths.values() for edge in path)
    senders: dict = {}
    for (source, _), path in paths.items():
        for edge in path:
            senders.setdefault(edge, set()).add(source)
    expected = {
        "alltoall": seconds(topology, messages, size),
        "allgather": seconds(topology, {e: len(s) for e, s in senders.items()}, size),
        "bcast": seconds(topology, dict.fromkeys(messages, 1), size),
    }
    for collective, value in expected.items():
        bound = lower_bound(topology, collective, size)
        assert bound.seconds == pytest.approx(value)
        if bound.edge is not None:
            assert bound.edge in messages
            assert bound.seconds == pytest.approx(8 * bound.edge_bytes / topology.rates[bound.edge])


@given(topologies(max_hosts=16, max_ranks=18), st.data())
def test_latency_bounds(topology, data):
    far = Counter({(rank, rank): 0.0 for rank in range(topology.rank_count)})
    for pair, path in oracle_paths(topology).items():
        far[pair] = sum(topology.latencies.get(edge, 0.0) for edge in path)
    reach = [
        max(far[root, rank] for rank in range(topology.rank_count))
        for root in range(topology.rank_count)
    ]
    root = data.draw(st.integers(0, topology.rank_count - 1))
    assert lower_bound(topology, "alltoall", 1).latency_seconds == pytest.approx(max(reach))
    assert lower_bound(topology, "allgather", 1).latency_seconds == pytest.approx(max(reach))
    assert lower_bound(topology, "bcast", 1).latency_seconds == pytest.approx(min(reach))
    assert lower_bound(topology, "bcast", 1, root).latency_seconds == pytest.approx(reach[root])


def test_a_slow_host_decides():
    topology = make_topology([4], [], rates={"n1": 10**6})
    assert lower_bound(topology, "alltoall", 1000).seconds == pytest.approx(3 * 8000 / 10**6)
    assert lower_bound(topology, "bcast", 1000).seconds == pytest.approx(8000 / 10**6)


def test_ranks_of_one_host_need_no_network():
    topology = make_topology([1], [], slots={"n0": 4})
    bound = lower_bound(topology, "alltoall", 1000)
    assert (bound.seconds, bound.edge, bound.latency_seconds) == (0.0, None, 0.0)


def test_unknown_collective():
    with pytest.raises(InputError, match="alltoall, allgather, bcast"):
        lower_bound(make_topology([2], []), "scan", 1)
