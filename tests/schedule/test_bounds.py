"""Lower bounds against their definitions on random clusters."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError
from stagegen.schedule import lower_bound
from stagegen.schedule.bounds.lower import COLLECTIVES, lower_bound_of_sizes, physical_edges
from stagegen.topology import restricted_to
from tests.schedule.rated import rated_topologies, with_rates
from tests.strategies import make_topology, oracle_paths, topologies

ROOTED = ("bcast", "reduce", "gather", "scatter", "gatherv", "scatterv")
MIB = 2**20

NEEDED = {
    "alltoall": lambda a, b, _: len(a) * len(b),
    "alltoallv": lambda a, b, _: len(a) * len(b),
    "allgather": lambda a, b, _: len(a),
    "allgatherv": lambda a, b, _: len(a),
    "reduce_scatter": lambda a, b, _: len(b),
    "reduce_scatter_block": lambda a, b, _: len(b),
    "allreduce": lambda a, b, _: 1,
    "barrier": lambda a, b, _: 0,
    "bcast": lambda a, b, root: int(root in a),
    "reduce": lambda a, b, root: int(root in b),
    "gather": lambda a, b, root: len(a) * (root in b),
    "gatherv": lambda a, b, root: len(a) * (root in b),
    "scatter": lambda a, b, root: len(b) * (root in a),
    "scatterv": lambda a, b, root: len(b) * (root in a),
}
"""How many blocks the ranks `a` before an edge owe the ranks `b` beyond it."""


def sides(topology):
    """The ranks before and beyond every network edge, from the paths that use it."""
    before, beyond = {}, {}
    for (source, destination), path in oracle_paths(topology).items():
        for edge in path:
            if edge in topology.rates:
                before.setdefault(edge, set()).add(source)
                beyond.setdefault(edge, set()).add(destination)
    return {edge: (before[edge], beyond[edge]) for edge in before}


def cut_bound(topology, collective, size, root):
    """The time of the slowest edge in seconds, exactly."""
    return max(
        (
            Fraction(8 * size * NEEDED[collective](a, b, root), topology.rates[edge])
            for edge, (a, b) in sides(topology).items()
        ),
        default=Fraction(0),
    )


def star_bound(topology, size):
    """The best over every connected set of switches, by trying all."""
    best = Fraction(0)
    links = set(sides(topology))
    used = [s.name for s in topology.switches if any(s.name in edge for edge in links)]
    for count in range(1, len(used) + 1):
        for members in itertools.combinations(used, count):
            if not connected(set(members), links):
                continue
            around = [(u, v) for u, v in links if u not in members and v in members]
            rate = sum(topology.rates[edge] for edge in around)
            best = max(best, Fraction(16 * (len(around) - 1) * size, rate))
    return best


def connected(members, links):
    seen, waiting = set(), [min(members)]
    while waiting:
        seen.add(here := waiting.pop())
        waiting += [v for u, v in links if u == here and v in members - seen]
    return seen == members


def test_the_oracle_knows_every_collective():
    assert set(NEEDED) == set(COLLECTIVES)


@given(rated_topologies(), st.sampled_from(COLLECTIVES), st.integers(0, 10**6), st.data())
def test_a_bound_is_what_its_definition_gives(topology, collective, size, data):
    root = data.draw(st.integers(0, topology.rank_count - 1))
    expected = cut_bound(topology, collective, size, root)
    if collective == "allreduce":
        expected = max(expected, star_bound(topology, size))
    bound = lower_bound(topology, collective, size, root)
    assert bound.seconds == float(expected)
    if bound.edges:
        rate = sum(topology.rates[edge] for edge in bound.edges)
        assert bound.seconds == float(Fraction(8 * bound.bytes, rate))
    else:
        assert bound.bytes == 0
    assert bound.formula
    assert bound.reference


@given(rated_topologies(), st.sampled_from(ROOTED))
def test_without_a_root_it_holds_for_the_best(topology, collective):
    by_root = [lower_bound(topology, collective, 8, r) for r in range(topology.rank_count)]
    bound = lower_bound(topology, collective, 8)
    assert bound.seconds == min(b.seconds for b in by_root)
    assert bound.latency_seconds == pytest.approx(min(b.latency_seconds for b in by_root))


@given(rated_topologies(), st.data())
def test_a_bound_of_unlike_sizes_is_what_its_definition_gives(topology, data):
    ranks = range(topology.rank_count)
    sizes = data.draw(st.lists(st.integers(0, 99), min_size=len(ranks), max_size=len(ranks)))
    table = [[sizes[(3 * i + 5 * j) % len(ranks)] for j in ranks] for i in ranks]
    root = data.draw(st.sampled_from(ranks))
    weigh = {
        "alltoallv": lambda a, b: sum(table[i][j] for i in a for j in b),
        "allgatherv": lambda a, b: sum(sizes[i] for i in a),
        "reduce_scatter": lambda a, b: sum(sizes[j] for j in b),
        "gatherv": lambda a, b: sum(sizes[i] for i in a) * (root in b),
        "scatterv": lambda a, b: sum(sizes[j] for j in b) * (root in a),
    }
    for collective, bytes_over in weigh.items():
        expected = max(
            (
                Fraction(8 * bytes_over(a, b), topology.rates[edge])
                for edge, (a, b) in sides(topology).items()
            ),
            default=Fraction(0),
        )
        given_sizes = table if collective == "alltoallv" else sizes
        bound = lower_bound_of_sizes(topology, collective, given_sizes, root)
        assert (bound.seconds, bound.size) == (float(expected), None)


@given(topologies(max_hosts=10, max_ranks=12), st.sampled_from(COLLECTIVES))
def test_equal_sizes_are_the_same_as_one_size(topology, collective):
    ranks = topology.rank_count
    if collective in ("bcast", "reduce", "allreduce", "barrier"):
        with pytest.raises(InputError, match=f"no sizes of their own in {collective}"):
            lower_bound_of_sizes(topology, collective, [7] * ranks)
        return
    sizes = [[7] * ranks] * ranks if collective.startswith("alltoall") else [7] * ranks
    one, other = (
        lower_bound(topology, collective, 7, 0),
        lower_bound_of_sizes(topology, collective, sizes, 0),
    )
    assert (one.seconds, one.edges, one.bytes) == (other.seconds, other.edges, other.bytes)


@given(topologies(max_hosts=16, max_ranks=18), st.data())
def test_latency_is_that_of_the_longest_way(topology, data):
    far = Counter({(rank, rank): 0.0 for rank in range(topology.rank_count)})
    for pair, path in oracle_paths(topology).items():
        far[pair] = sum(topology.latencies.get(edge, 0.0) for edge in path)
    ranks = range(topology.rank_count)
    reach = [max(far[root, rank] for rank in ranks) for root in ranks]
    root = data.draw(st.sampled_from(ranks))
    for collective in COLLECTIVES:
        latency = lower_bound(topology, collective, 1, root).latency_seconds
        expected = reach[root] if collective in ROOTED else max(reach)
        assert latency == pytest.approx(expected)


@given(topologies(max_hosts=12, max_ranks=14), st.sampled_from(COLLECTIVES), st.data())
def test_a_faster_link_never_raises_it(topology, collective, data):
    slow = data.draw(st.sampled_from([host.name for host in topology.hosts]))
    faster = 10**8 + data.draw(st.integers(1, 10**10))
    before, after = (
        lower_bound(with_rates(topology, {slow: rate}, {}), collective, 1000, 0)
        for rate in (10**8, faster)
    )
    assert after.seconds <= before.seconds


@given(topologies(max_hosts=12, max_ranks=14), st.sampled_from(COLLECTIVES), st.data())
def test_a_group_has_no_greater_bound(topology, collective, data):
    """On equally fast links. (In general a fast host outside may help an allreduce.)"""
    hosts = data.draw(st.lists(st.sampled_from(topology.ranks), min_size=1, unique=True))
    group = restricted_to(topology, hosts)
    whole = lower_bound(topology, collective, 1000)
    assert lower_bound(group, collective, 1000).seconds <= whole.seconds


def test_a_core_of_slow_links_bounds_an_allreduce():
    """Four switches around a core, links of a tenth: the core is the best set, not all."""
    slow = {f"s{i}": 10**8 for i in range(1, 5)}
    topology = with_rates(make_topology([0, 4, 4, 4, 4], [0, 0, 0, 0]), {}, slow)
    bound = lower_bound(topology, "allreduce", MIB)
    assert set(bound.edges) == {(f"s{i}", "s0") for i in range(1, 5)}
    assert bound.bytes == 6 * MIB
    assert bound.seconds == pytest.approx(8 * 6 * MIB / (4 * 10**8))
    assert bound.formula == "links around 1 switch: 2 * (4 - 1) * size / sum of their rates"
    assert "Patarasuk and Yuan" in bound.reference


def test_the_bound_is_that_of_a_slow_host():
    topology = make_topology([4], [], rates={"n1": 10**6})
    assert lower_bound(topology, "alltoall", 1000).seconds == pytest.approx(3 * 8000 / 10**6)
    assert lower_bound(topology, "bcast", 1000).seconds == pytest.approx(8000 / 10**6)
    assert lower_bound(topology, "gather", 1000, 0).seconds == pytest.approx(8000 / 10**6)
    assert lower_bound(topology, "gather", 1000, 1).seconds == pytest.approx(3 * 8000 / 10**6)


OF_PAIRS = ("alltoall", "alltoallv")
WITH_BLOCKS = ("allgatherv", "gatherv", "reduce_scatter", "scatterv", *OF_PAIRS)


@given(topologies(), st.data())
def test_latency_is_that_of_blocks_that_are_not_empty(topology, data):
    count = topology.rank_count
    collective = data.draw(st.sampled_from(WITH_BLOCKS))
    row = st.lists(st.integers(0, 1), min_size=count, max_size=count)
    roots = st.one_of(st.none(), st.integers(0, count - 1))
    root = data.draw(roots) if collective in ROOTED else None
    if collective in OF_PAIRS:
        sizes = data.draw(st.lists(row, min_size=count, max_size=count))
        moved = [(a, b) for a in range(count) for b in range(count) if sizes[a][b]]
    else:
        sizes = data.draw(row)
        some = [rank for rank in range(count) if sizes[rank]]
        ends = range(count) if collective not in ROOTED else () if root is None else (root,)
        moved = [(a, b) for a in some for b in ends]
    away = Counter({(rank, rank): 0.0 for rank in range(count)})
    for pair, path in oracle_paths(topology).items():
        away[pair] = sum(topology.latencies.get(edge, 0.0) for edge in path)
    expected = max((away[pair] for pair in moved), default=0.0)
    if collective in ROOTED and root is None and some:
        expected = min(max(away[a, b] for a in some) for b in range(count))
    found = lower_bound_of_sizes(topology, collective, sizes, root).latency_seconds
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_no_data_has_no_latency_except_of_a_barrier(collective):
    latency_seconds = lower_bound(make_topology([2, 2], [0]), collective, 0).latency_seconds
    assert (latency_seconds > 0) == (collective == "barrier")


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_ranks_of_one_host_need_no_network(collective):
    topology = make_topology([1], [], slots={"n0": 4})
    bound = lower_bound(topology, collective, 1000)
    assert (bound.seconds, bound.edges, bound.latency_seconds) == (0.0, (), 0.0)


def test_the_ranks_of_the_root_s_host_do_not_count_in_the_bound_of_a_gather():
    topology = make_topology([2], [], slots={"n0": 3, "n1": 2})
    assert lower_bound(topology, "gather", 1000, 0).bytes == 2000
    assert lower_bound(topology, "gather", 1000, 4).bytes == 3000
    assert lower_bound(topology, "allreduce", 1000).bytes == 1000


def test_physical_edges_have_the_ranks_before_and_beyond_them():
    topology = make_topology([1, 2], [0], slots={"n0": 2})
    edges = {edge: (before, beyond) for edge, before, beyond in physical_edges(topology)}
    assert edges["n0", "s0"] == edges["s0", "s1"] == (2, 2)
    assert edges["n1", "s1"] == (1, 3)
    assert edges == {
        edge: (len(before), len(beyond)) for edge, (before, beyond) in sides(topology).items()
    }


def test_unknown_collectives_ranks_and_numbers_of_sizes_are_refused():
    topology = make_topology([2], [])
    with pytest.raises(InputError, match="alltoall, allgather, allreduce"):
        lower_bound(topology, "scan", 1)
    with pytest.raises(InputError, match="no rank 2; ranks are 0 to 1"):
        lower_bound(topology, "bcast", 1, 2)
    with pytest.raises(InputError, match="allgatherv on these ranks needs 2 sizes"):
        lower_bound_of_sizes(topology, "allgatherv", [1])
    with pytest.raises(InputError, match="alltoallv on these ranks needs 2 × 2 sizes"):
        lower_bound_of_sizes(topology, "alltoallv", [[1, 1]])
