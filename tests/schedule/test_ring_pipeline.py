"""Allreduce over a logical ring: done step by step, compared with the bound, and damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stagegen.errors import NotFoundError, ScheduleError
from stagegen.schedule import RING_CONSTRUCTIONS, RingPipeline, lower_bound, ring_pipeline
from stagegen.schedule.verify import verify
from tests.strategies import make_topology, topologies

constructions = pytest.mark.parametrize("construction", RING_CONSTRUCTIONS)
few_ranks = topologies(max_hosts=10, max_switches=6, max_ranks=12)


def run(form: dict) -> list[list[list[int]]]:
    """Do what the JSON form says; a block is the list of the ranks that are combined in it."""
    ring = form["ring"]
    blocks = [[[rank] for _ in ring] for rank in range(len(ring))]
    sends = list(form["first_blocks"])
    for step in range(form["steps"]):
        received = {}
        for source, destination in zip(ring, ring[1:] + ring[:1], strict=True):
            received[destination] = sends[source], list(blocks[source][sends[source]])
        for rank, (block, data) in received.items():
            own = blocks[rank][block] if step < form["combining_steps"] else []
            blocks[rank][block] = data + own
            sends[rank] = block
    return blocks


@constructions
@given(topology=few_ranks)
def test_every_rank_gets_every_block_once_from_each_rank(construction, topology):
    try:
        pipeline = ring_pipeline(topology, construction)
    except NotFoundError:
        assume(False)
    verify(topology, pipeline)
    form = pipeline.to_json()
    assert RingPipeline.from_json(json.loads(json.dumps(form))) == pipeline
    ring = list(pipeline.ring.order)
    for blocks in run(form):
        for block, parts in enumerate(blocks):
            after = ring.index(block) + 1
            assert parts == ring[after:] + ring[:after]


@given(few_ranks)
def test_after_the_combining_steps_each_rank_has_its_own_block(topology):
    form = ring_pipeline(topology).to_json()
    half = run({**form, "steps": form["combining_steps"]})
    assert all(len(half[rank][rank]) == len(half) for rank in range(len(half)))


@given(few_ranks, st.integers(0, 10**6))
def test_transfers_are_what_the_form_says(topology, size):
    """The rule of the object and the rule of its JSON form, which the docstring states."""
    pipeline = ring_pipeline(topology, size=size)
    last = dict(enumerate(pipeline.first_blocks))
    for step in range(pipeline.steps):
        moves = list(pipeline.transfers(step))
        assert [move.block for move in moves] == [last[move.source] for move in moves]
        assert {move.combines for move in moves} == {step < pipeline.combining_steps}
        last = {move.destination: move.block for move in moves}
    assert RingPipeline.from_json(pipeline.to_json()) == pipeline


@given(few_ranks, st.integers(0, 1000))
def test_blocks_differ_by_one_element_at_most(topology, count):
    blocks = ring_pipeline(topology).blocks(count)
    assert [first for first, _ in blocks] == [
        sum(length for _, length in blocks[:index]) for index in range(len(blocks))
    ]
    lengths = [length for _, length in blocks]
    assert sum(lengths) == count
    assert max(lengths) - min(lengths) <= 1


@given(few_ranks, st.integers(0, 10**6))
def test_the_time_is_the_lower_bound_or_less_than_twice_it(topology, size):
    """On equal links it is the bound where no host is shared; otherwise less than twice it."""
    ranks = topology.rank_count
    seconds = ring_pipeline(topology).seconds(size)
    rounded = lower_bound(topology, "allreduce", ranks * ceil(size / ranks)).seconds
    assert rounded <= seconds * (1 + 1e-9)
    if len(set(topology.ranks)) == ranks:
        assert seconds == pytest.approx(rounded)
    assert seconds <= 2 * rounded


def test_the_time_is_that_of_the_slowest_link():
    # Four hosts of 1 Gbit/s; one host with a tenth of it. Every link carries every block.
    rates = {"n4": 10**8}
    topology = make_topology([3, 2], [0], rates=rates)
    pipeline = ring_pipeline(topology)
    assert pipeline.rate == 10**8
    assert pipeline.seconds(1000) == pytest.approx(2 * 4 * 200 * 8 / 1e8)
    assert pipeline.seconds(1001) == pytest.approx(2 * 4 * 201 * 8 / 1e8)


def test_ranks_of_one_host_use_no_network():
    topology = make_topology([1], [], slots={"n0": 3})
    pipeline = ring_pipeline(topology)
    verify(topology, pipeline)
    assert (pipeline.rate, pipeline.seconds(3000), pipeline.steps) == (None, 0.0, 4)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"first_blocks": (0, 1, 2, 3, 4, 4)}, "do not hold every block exactly once"),
        ({"first_blocks": (1, 0, 2, 3, 4, 5)}, "after the reduce-scatter rank 1 has 2 of 6"),
        ({"steps": 9}, "ends with a block of"),
        ({"steps": 10, "combining_steps": 4}, "after the reduce-scatter rank 0 has 1 of 6"),
        ({"combining_steps": 6}, r"must not be combined again|has combined it"),
        ({"steps": 5}, "ends with a block of"),
        ({"rate": 10**8}, "the slowest link has 1000000000 bit/s, not 100000000"),
    ],
)
def test_a_damaged_pipeline_is_rejected_with_what_is_wrong(change, problem):
    topology = make_topology([3, 3], [0])
    pipeline = ring_pipeline(topology)
    with pytest.raises(ScheduleError, match=problem):
        verify(topology, replace(pipeline, **change))


def test_a_damaged_ring_is_found():
    topology = make_topology([3, 3], [0])
    pipeline = ring_pipeline(topology)
    ring = replace(pipeline.ring, order=(0, 1, 3, 2, 4, 5))
    with pytest.raises(ScheduleError, match="share the edge"):
        verify(topology, replace(pipeline, ring=ring))
