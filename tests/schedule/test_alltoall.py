"""Alltoall schedules of random clusters have every property, and no fewer phases would do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.data import TOPOLOGIES
from stagegen.errors import InputError
from stagegen.schedule import SCHEME_NAMES, SCHEMES, PhaseSchedule
from stagegen.schedule.alltoall.phases.root import default_root, root_candidates, rooted_view
from stagegen.schedule.alltoall.schedule import alltoall_phases, alltoall_schedule, with_sync
from stagegen.schedule.verify import verify
from stagegen.topology import load_topology
from tests.schedule.oracle import Oracle
from tests.schedule.test_slow_links import slow_topologies
from tests.strategies import examples, fast_topologies, make_topology, small_trees, topologies


@given(topologies(), st.sampled_from(SCHEME_NAMES))
def test_every_schedule_is_proven(topology, sync):
    schedule = alltoall_schedule(topology, sync)
    proof = verify(topology, schedule)
    assert proof.phases == proof.bound_phases == len(schedule.phases)
    assert PhaseSchedule.from_json(schedule.to_json()) == schedule
    assert schedule == alltoall_schedule(topology, sync)


@st.composite
def with_parameters(draw) -> tuple[str, int, int]:
    """A scheme, and a block size and a window where it has them."""
    scheme_name = draw(st.sampled_from(SCHEME_NAMES))
    scheme = SCHEMES[scheme_name]
    block_size = draw(st.integers(1, 9)) if scheme.blocks else 1
    return scheme_name, block_size, draw(st.integers(1, 3)) if scheme.giver else 1


@examples(60)
@given(fast_topologies(max_hosts=14, max_switches=5), with_parameters())
def test_every_schedule_with_fast_links_is_proven(topology, parameters):
    scheme_name, block_size, window = parameters
    schedule = alltoall_schedule(topology, scheme_name, None, block_size, window)
    proof = verify(topology, schedule)
    assert (proof.phases, proof.bound_phases) == (len(schedule.phases), schedule.bound_phases)
    assert PhaseSchedule.from_json(schedule.to_json()) == schedule


@examples(40)
@given(slow_topologies(max_hosts=10), with_parameters())
def test_every_schedule_with_slow_links_is_proven(topology, parameters):
    scheme_name, block_size, window = parameters
    verify(topology, alltoall_schedule(topology, scheme_name, None, block_size, window))


@examples(40)
@given(fast_topologies(max_hosts=10, max_switches=4), with_parameters())
def test_phases_are_made_once_for_all_schemes(topology, parameters):
    scheme_name, block_size, window = parameters
    phases = alltoall_phases(topology)
    assert phases == alltoall_schedule(topology, "none")
    assert with_sync(topology, phases, scheme_name, block_size, window) == alltoall_schedule(
        topology, scheme_name, None, block_size, window
    )


@pytest.mark.parametrize(
    ("scheme_name", "block_size", "window", "told"),
    [
        ("receiver", 2, 1, "receiver has no block size; schemes with one: sender-partial"),
        ("barrier", 2, 1, "barrier has no block size"),
        ("none", 1, 2, "none has no window; schemes with one: sender"),
        ("receiver-partial", 0, 1, "block size is 0; it must be from 1 to"),
        ("receiver", 1, -1, "window is -1; it must be from 1 to"),
        ("reciever", 1, 1, "unknown sync 'reciever'; choose from none, dummy, sender"),
    ],
)
def test_schemes_and_parameters_that_do_not_exist_are_refused(
    scheme_name, block_size, window, told
):
    topology = make_topology([3], [])
    with pytest.raises(InputError, match=told):
        alltoall_schedule(topology, scheme_name, None, block_size, window)
    with pytest.raises(InputError, match=told):
        with_sync(topology, alltoall_phases(topology), scheme_name, block_size, window)


@examples(60)
@given(topologies(max_hosts=20), st.data())
def test_every_root_that_qualifies_gives_a_schedule(topology, data):
    tree = topology.tree
    if topology.rank_count == 1:
        return
    candidates = root_candidates(tree)
    assert default_root(tree) in candidates
    root = tree.names[data.draw(st.sampled_from(candidates))]
    schedule = alltoall_schedule(topology, "receiver", root)
    assert schedule.root == root
    verify(topology, schedule)


def test_schedules_of_all_small_trees_have_as_many_phases_as_the_bottleneck():
    trees = list(small_trees())
    assert len(trees) > 90
    for topology in trees:
        oracle = Oracle(topology)
        schedule = alltoall_schedule(topology)
        verify(topology, schedule)
        assert oracle.is_valid(schedule)
        assert len(schedule.phases) == oracle.bottleneck


@examples(40)
@given(topologies(max_hosts=4, max_switches=4, max_ranks=4))
def test_no_schedule_has_fewer_phases(topology):
    assert len(alltoall_schedule(topology).phases) == Oracle(topology).fewest_phases()


@given(topologies())
def test_none_and_barrier_have_no_tokens(topology):
    for scheme_name in ("none", "barrier"):
        assert alltoall_schedule(topology, scheme_name).sync.syncs == ()


def test_root_is_the_middle_of_equals():
    # A core switch between two equal halves has two subtrees only: section 3.2.2.1 goes on to
    # a switch with more, but accepts the core when asked.
    topology = make_topology([0, 4, 4], [0, 0])
    assert rooted_view(topology).root == "s1"
    assert rooted_view(topology, "s0").subtrees == ((0, 1, 2, 3), (4, 5, 6, 7))
    verify(topology, alltoall_schedule(topology, "receiver", "s0"))


def test_a_shared_host_can_be_the_root():
    topology = make_topology([2], [], slots={"n0": 5})
    assert rooted_view(topology).root == "n0"
    verify(topology, alltoall_schedule(topology))


def test_a_root_that_does_not_qualify_is_refused():
    topology = load_topology(TOPOLOGIES / "fig-3-2.yaml")
    for name in ("s3", "n0", "nowhere"):
        with pytest.raises(InputError, match="choose from s0, s1"):
            alltoall_schedule(topology, root=name)
    single = make_topology([1], [])
    with pytest.raises(InputError, match="choose s0"):
        alltoall_schedule(single, root="s9")


def test_equal_subtrees_are_in_the_order_of_their_lowest_rank():
    topology = make_topology([0, 2, 2, 2], [0, 0, 0], ranks=["n4", "n2", "n0", "n1", "n3", "n5"])
    assert rooted_view(topology).subtrees == ((0, 5), (1, 4), (2, 3))
