"""What messages between some ranks use, against the paths of all pairs of them."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from stagegen.schedule.verify import used_by
from tests.strategies import make_topology, topologies


def by_pairs(topology, ranks) -> set:
    """Their hosts, and the links of all paths, in one direction; without those within a host."""
    edges = {edge for pair in permutations(ranks, 2) for edge in topology.path(*pair)}
    nodes = {switch.name for switch in topology.switches}
    links = {frozenset(edge) for edge in edges if nodes & {*edge}}
    return links | {topology.ranks[rank] for rank in ranks}


@given(st.data())
def test_two_sets_of_ranks_share_a_link_or_host_exactly_where_their_pairs_do(data):
    topology = data.draw(topologies(max_hosts=14))
    ranks = data.draw(st.permutations(range(topology.rank_count)))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(ranks)), min_size=2, max_size=2)))
    sets = [ranks[: cuts[0]], ranks[cuts[0] : cuts[1]] or ranks[:1]]
    used = used_by(topology, sets)
    pairs = [by_pairs(topology, some) for some in sets]
    assert used[0].isdisjoint(used[1]) == pairs[0].isdisjoint(pairs[1])


def test_ranks_of_a_switch_share_nothing_with_those_of_another_one():
    topology = make_topology([2, 2, 2], [0, 1])
    inside, across, other = used_by(topology, [(0, 1), (2, 4), (3, 5)])
    assert inside.isdisjoint(across)
    assert across & other == {("s2", "s1")}


def test_ranks_of_one_host_are_not_apart():
    topology = make_topology([1, 1], [0], slots={"n0": 4})
    first, second = used_by(topology, [(0, 1), (2, 3)])
    assert first & second == {"n0"}
