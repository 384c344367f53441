"""Lower bounds against what algorithms really move over the links."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.schedule import logical_ring, lower_bound
from stagegen.topology import restricted_to
from tests.schedule.rated import rated_topologies
from tests.strategies import make_topology, oracle_paths, topologies

MIB = 2**20


def moving(topology, traffic):
    """Seconds that the slowest edge needs for {(source, destination): bytes}, at full rate."""
    paths = oracle_paths(topology)
    carried = Counter()
    for pair, amount in traffic.items():
        for edge in paths.get(pair, ()):
            carried[edge] += amount
    times = (
        Fraction(8 * amount, topology.rates[edge])
        for edge, amount in carried.items()
        if edge in topology.rates
    )
    return max(times, default=Fraction(0))


def binomial(ranks, root):
    """(parent, child, ranks below the child) of a binomial tree that knows no topology."""
    for place in range(1, ranks):
        low = place & -place
        yield (place - low + root) % ranks, (place + root) % ranks, min(low, ranks - place)


def around(order, amount):
    return dict.fromkeys(zip(order, order[1:] + order[:1], strict=True), amount)


def bruck(ranks, size):
    traffic = Counter()
    step = 1
    while step < ranks:
        blocks = sum(1 for distance in range(1, ranks) if distance & step)
        traffic.update({(r, (r + step) % ranks): blocks * size for r in range(ranks)})
        step *= 2
    return traffic


def algorithms(topology, size, root):
    """Yield (collective, bytes between ranks) of algorithms that are right on any cluster."""
    ranks = topology.rank_count
    p = range(ranks)
    ring = logical_ring(topology).order
    tree = list(binomial(ranks, root))
    pairs = {(i, j): size for i in p for j in p if i != j}
    for order in (ring, tuple(p)):
        yield "allgather", around(order, (ranks - 1) * size)
        yield "reduce_scatter_block", around(order, (ranks - 1) * size)
        # size is divided into as many blocks as there are ranks, hence the factor.
        yield "allreduce", around(order, Fraction(2 * (ranks - 1) * size, ranks))
        at = order.index(root)
        chain = order[at:] + order[:at]
        yield "bcast", dict.fromkeys(itertools.pairwise(chain), size)
        yield "reduce", dict.fromkeys(itertools.pairwise(chain[::-1]), size)
    yield "alltoall", pairs
    yield "alltoall", bruck(ranks, size)
    yield "bcast", {(u, v): size for u, v, _ in tree}
    yield "reduce", {(v, u): size for u, v, _ in tree}
    yield "allreduce", {e: size for u, v, _ in tree for e in ((u, v), (v, u))}
    yield "gather", {(v, u): below * size for u, v, below in tree}
    yield "scatter", {(u, v): below * size for u, v, below in tree}
    yield "gather", {(r, root): size for r in p if r != root}
    yield "scatter", {(root, r): size for r in p if r != root}
    yield "allgather", pairs
    yield "reduce_scatter_block", pairs


@given(rated_topologies(), st.data())
def test_no_algorithm_moves_less_than_the_bound(topology, data):
    root = data.draw(st.integers(0, topology.rank_count - 1))
    for collective, traffic in algorithms(topology, MIB, root):
        bound = lower_bound(topology, collective, MIB, root)
        # One rounding to a float is all that the bound may be off.
        assert float(moving(topology, traffic)) >= bound.seconds, collective


@given(topologies(max_hosts=16, max_ranks=16), st.data())
def test_equal_links_allow_the_bound(topology, data):
    """Where all links are equally fast and hosts have one rank, these algorithms attain it."""
    group = sorted(set(topology.ranks), key=topology.ranks.index)
    single = make_single(topology, group)
    root = data.draw(st.integers(0, single.rank_count - 1))
    reached = {}
    for collective, traffic in algorithms(single, MIB, root):
        time = moving(single, traffic)
        reached[collective] = min(time, reached.get(collective, time))
    for collective, time in reached.items():
        bound = lower_bound(single, collective, MIB, root)
        assert bound.seconds == pytest.approx(float(time)), collective


def make_single(topology, hosts):
    """The same switches with one rank on each of the hosts."""
    number = {switch.name: i for i, switch in enumerate(topology.switches)}
    parents = [number[link.ends[0]] for link in topology.links]
    names = [f"n{i}" for i in range(len(topology.hosts))]
    return make_topology(
        [len(switch.hosts) for switch in topology.switches],
        parents,
        [name for name in names if name in hosts],
    )


def test_a_fast_host_outside_may_help_an_allreduce():
    """Why the test above has equal links: three slow hosts may use a fast one as a server."""
    topology = make_topology([4], [], rates={"n3": 10**11})
    group = restricted_to(topology, ["n0", "n1", "n2"])
    whole = lower_bound(topology, "allreduce", 9000)
    assert whole.seconds == pytest.approx(9000 * 8 / 10**9)
    assert lower_bound(group, "allreduce", 9000).seconds == pytest.approx(4 / 3 * whole.seconds)
    server = {e: 9000 for host in range(3) for e in ((host, 3), (3, host))}
    assert float(moving(topology, server)) == pytest.approx(whole.seconds)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_one_item_needs_that_many_messages(ranks):
    """An allreduce of one item takes 2 (p - 1) messages: by trying all, without order.

    A message here tells all that its sender knows, so real ones cannot do with fewer.
    """
    start = tuple(1 << rank for rank in range(ranks))
    everything = ((1 << ranks) - 1,) * ranks
    messages, waiting = {start: 0}, deque([start])
    while everything not in messages:
        known = waiting.popleft()
        for sender, receiver in itertools.permutations(range(ranks), 2):
            then = list(known)
            then[receiver] |= known[sender]
            if (state := tuple(then)) not in messages:
                messages[state] = messages[known] + 1
                waiting.append(state)
    assert messages[everything] == 2 * (ranks - 1)
    topology = make_topology([ranks], [])
    bound = lower_bound(topology, "allreduce", ranks)
    assert bound.seconds == pytest.approx(8 * 2 * (ranks - 1) / 10**9)
