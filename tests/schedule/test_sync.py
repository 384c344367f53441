"""Synchronisation is the transitive reduction, for all schemes, windows and capacities."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError, ScheduleError
from stagegen.schedule import SCHEME_NAMES, SCHEMES, Message, alltoall_schedule
from stagegen.schedule.alltoall.sync.synchronise import synchronise
from stagegen.schedule.verify import verify
from tests.schedule.oracle import Oracle, with_link_rates
from tests.strategies import examples, make_topology, small_topologies, small_trees, topologies

WITH_TOKENS = [name for name, scheme in SCHEMES.items() if scheme.giver]
FULL = ["sender", "receiver"]
rates = st.lists(st.sampled_from([1, Fraction(3, 2), 2, 3, Fraction(1, 2)]), min_size=1, max_size=4)


@st.composite
def scheduled(draw, clusters=small_topologies, capacities=True):
    """A cluster, its oracle, and phases by first fit of all messages in a random order."""
    topology = draw(clusters)
    if capacities and draw(st.booleans()):
        topology = with_link_rates(topology, draw(rates))
    oracle = Oracle(topology)
    return topology, oracle, oracle.greedy_phases(draw(st.permutations(sorted(oracle.paths))))


def pairs(graph) -> set[tuple[Message, Message]]:
    return {(sync.first, sync.then) for sync in graph.syncs}


@examples(150)
@given(scheduled(), st.integers(1, 4))
def test_the_set_is_the_transitive_reduction(case, window):
    topology, oracle, phases = case
    graph = synchronise(topology, phases, "sender", window=window)
    assert pairs(graph) == oracle.minimal_syncs(phases, window, oracle.own_sends(phases))
    assert len(graph.syncs) == len(pairs(graph))
    graph = synchronise(topology, phases, "receiver", window=window)
    assert pairs(graph) == oracle.unambiguous_syncs(phases, window)
    if window == 1:
        contention = oracle.window_order(phases)
        assert pairs(graph) == set(nx.transitive_reduction(contention).edges)


@examples(30)
@given(scheduled(topologies(max_hosts=12, max_switches=6, max_ranks=12)), st.integers(1, 3))
def test_the_set_is_the_transitive_reduction_of_larger_clusters(case, window):
    topology, oracle, phases = case
    graph = synchronise(topology, phases, "sender", window=window)
    assert pairs(graph) == oracle.minimal_syncs(phases, window, oracle.own_sends(phases))


def test_the_set_is_the_transitive_reduction_for_all_small_trees():
    for topology in small_trees(8):
        oracle = Oracle(topology)
        phases = oracle.greedy_phases(sorted(oracle.paths))
        full = oracle.minimal_syncs(phases)
        assert pairs(synchronise(topology, phases, "sender")) == full
        assert pairs(synchronise(topology, phases, "receiver")) == full
        expected = oracle.unambiguous_syncs(phases, 2)
        assert pairs(synchronise(topology, phases, "receiver", window=2)) == expected


@pytest.mark.parametrize("scheme_name", WITH_TOKENS)
@given(scheduled(), st.integers(1, 3), st.integers(1, 4))
def test_tokens_are_awaited_in_the_order_in_which_they_are_given(
    scheme_name, case, window, block_size
):
    topology, _, phases = case
    phase_of = {m: p for p, messages in enumerate(phases) for m in messages}
    streams = defaultdict(list)
    for first, then, token in synchronise(topology, phases, scheme_name, block_size, window).syncs:
        streams[token or (then.source, then.source)].append((phase_of[first], phase_of[then]))
    for stream in streams.values():
        awaited = [then for _, then in sorted(stream)]
        assert awaited == sorted(awaited)


@given(scheduled(), st.integers(1, 3))
def test_no_sync_can_be_left_out(case, window):
    """By the definition, not by the reduction: without any one sync some order is lost."""
    topology, oracle, phases = case
    kept = pairs(synchronise(topology, phases, "receiver", window=window))
    known = oracle.ordered(phases, kept)
    needed = oracle.window_order(phases, window)
    assert all(nx.has_path(known, *oracle.wait(pair)) for pair in needed.edges)
    for wait in map(oracle.wait, kept):
        known.remove_edge(*wait)
        assert not nx.has_path(known, *wait)
        known.add_edge(*wait)


def test_no_sync_is_left_that_only_the_order_of_tokens_once_asked_for():
    """Two tokens between ranks are awaited earlier: with the one, the other has no need to be."""
    topology = make_topology(
        [2, 2, 2], [0, 0], ranks=["n0", "n4", "n2", "n2", "n3", "n1"], slots={"n2": 2}
    )
    topology = with_link_rates(topology, [Fraction(3)])
    schedule = alltoall_schedule(topology, "receiver", window=2)
    syncs = schedule.sync.syncs
    for sync in syncs:
        others = tuple(other for other in syncs if other != sync)
        with pytest.raises(ScheduleError, match="nothing makes"):
            verify(topology, replace(schedule, sync=replace(schedule.sync, syncs=others)))


@given(scheduled(capacities=False))
def test_with_window_1_syncs_alone_order_all_contention(case):
    """No program has to add anything, least of all that a rank's earlier send is complete."""
    topology, oracle, phases = case
    for scheme_name in FULL:
        known = nx.DiGraph(pairs(synchronise(topology, phases, scheme_name)))
        known.add_nodes_from(m for phase in phases for m in phase)
        closure = nx.transitive_closure_dag(known)
        assert all(closure.has_edge(*pair) for pair in oracle.conflict_order(phases).edges)


@given(small_topologies.filter(lambda topology: topology.rank_count > 2))
def test_messages_of_one_sender_have_a_token_from_a_receiver(topology):
    """They share the sender's own link: a token of the earlier one's receiver orders them."""
    oracle = Oracle(topology)
    phases = oracle.greedy_phases(sorted(oracle.paths))
    syncs = synchronise(topology, phases, "receiver").syncs
    assert any(sync.first.source == sync.then.source for sync in syncs)
    known = nx.DiGraph(pairs(synchronise(topology, phases, "receiver")))
    for one, other in itertools.permutations(oracle.paths, 2):
        if one[0] == other[0]:
            assert nx.has_path(known, one, other) != nx.has_path(known, other, one)


@given(scheduled(capacities=False))
def test_with_window_1_and_equal_links_all_contention_is_ordered(case):
    topology, oracle, phases = case
    known = oracle.ordered(phases, pairs(synchronise(topology, phases, "receiver")))
    for pair in oracle.conflict_order(phases).edges:
        assert nx.has_path(known, *oracle.wait(pair))


@given(scheduled(), st.integers(1, 3))
def test_an_edge_carries_at_most_window_times_capacity(case, window):
    """Of any w·c + 1 users of an edge two are ordered, so they never all are under way."""
    topology, oracle, phases = case
    kept = pairs(synchronise(topology, phases, "receiver", window=window))
    closure = nx.transitive_closure_dag(nx.DiGraph(oracle.ordered(phases, kept)))
    for edge in set().union(*oracle.paths.values()):
        users = [m for phase in phases for m in phase if edge in oracle.paths[m]]
        for crowd in itertools.islice(
            itertools.combinations(users, window * oracle.whole(edge) + 1), 200
        ):
            waits = map(oracle.wait, itertools.combinations(crowd, 2))
            assert any(closure.has_edge(*wait) for wait in waits)


@pytest.mark.parametrize("scheme_name", FULL)
@pytest.mark.parametrize(("window", "factor"), [(1, 3 * 10**9), (2**20, 10**14), (2**20, 4096)])
def test_a_link_that_carries_all_messages_at_a_time_may_be_any_faster(scheme_name, window, factor):
    """Here, that is more than 32 bits can count."""
    topology = make_topology([3, 3], [0])
    fast, faster = (with_link_rates(topology, [Fraction(times)]) for times in (30, factor))
    schedule = alltoall_schedule(faster, scheme_name, window=window)
    alike = synchronise(fast, schedule.phases, scheme_name, window=window)
    assert pairs(schedule.sync) == pairs(alike)
    verify(faster, schedule)


@given(scheduled(), st.sampled_from(SCHEME_NAMES), st.integers(1, 4), st.integers(1, 4))
def test_every_scheme_is_its_part_of_the_full_set(case, scheme_name, block_size, window):
    topology, _, phases = case
    scheme = SCHEMES[scheme_name]
    graph = synchronise(topology, phases, scheme_name, block_size, window)
    assert graph.scheme == scheme_name
    assert graph.block_size == (block_size if scheme.blocks else 1)
    assert graph.window == (window if scheme.giver else 1)
    if scheme.giver is None:
        assert graph.syncs == ()
        return
    phase_of = {m: p for p, messages in enumerate(phases) for m in messages}
    place_of = {m: i for messages in phases for i, m in enumerate(messages)}
    if scheme.giver == "receiver" and scheme.blocks:
        window = 1  # with a larger one, tokens of the full set may be awaited at other steps
        graph = synchronise(topology, phases, scheme_name, block_size)
    full = synchronise(topology, phases, scheme.giver, window=window).syncs
    assert graph.syncs == tuple(
        s for s in full if scheme.keeps(phase_of[s.first], phase_of[s.then], graph.block_size)
    )
    assert list(full) == sorted(
        full,
        key=lambda s: (phase_of[s.then], place_of[s.then], phase_of[s.first], s.first),
    )


@pytest.mark.parametrize("scheme_name", WITH_TOKENS)
@given(scheduled())
def test_tokens_are_from_the_rank_that_gives_them_in_the_scheme(scheme_name, case):
    topology, _, phases = case
    for first, then, token in synchronise(topology, phases, scheme_name, 2).syncs:
        if SCHEMES[scheme_name].giver == "receiver":
            assert token == (first.destination, then.source)
        else:
            own = first.source == then.source
            assert token == (None if own else (first.source, then.source))
        assert then.source != first.destination


@given(small_topologies)
def test_messages_to_and_from_a_rank_share_no_edge(topology):
    """So no rank ever waits for a message that it received itself: every sync has a token."""
    paths = Oracle(topology).paths
    for (a, b), (c, d) in itertools.product(paths, repeat=2):
        assert b != c or not paths[a, b] & paths[c, d]


def test_partial_schemes_keep_the_syncs_of_their_blocks():
    expected = {  # of the orders 0→1, 0→2, 1→2, 0→4 between phases, with blocks of two
        "sender": [True, True, True, True],
        "sender-partial": [False, True, True, True],
        "barrier-partial-receiver": [True, False, False, False],
    }
    for scheme_name, kept in expected.items():
        assert SCHEMES[scheme_name].keeps([0, 0, 1, 0], [1, 2, 2, 4], 2).tolist() == kept


def test_what_is_no_scheme_is_refused():
    topology = make_topology([2], [])
    phases = ((Message(0, 1), Message(1, 0)),)
    with pytest.raises(InputError, match="unknown sync 'hope'; choose from none, dummy"):
        synchronise(topology, phases, "hope")
    with pytest.raises(InputError, match="size of a block is 0"):
        synchronise(topology, phases, "sender-partial", block_size=0)
    with pytest.raises(InputError, match="size of a window is 0"):
        synchronise(topology, phases, "sender", window=0)


def test_a_single_rank_has_nothing_to_wait_for():
    topology = make_topology([1], [])
    for scheme_name in SCHEME_NAMES:
        assert synchronise(topology, (), scheme_name).syncs == ()
