"""Which calls of a site are of one size, and what that size is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.recording.calls import _known_by, align
from tests.recording import made

RANKS = 4


def calls_of(function: str, sizes: list[int]):
    calls = [
        made.Call(function, (n,) * RANKS, (n + 0.5,) * RANKS, size=s) for n, s in enumerate(sizes)
    ]
    recorded = made.recording(calls)
    return align(replace(recorded, functions=made.FUNCTIONS)).calls


@pytest.mark.parametrize(
    ("collective", "known"),
    [
        ("allgatherv", "whole"),
        ("reduce_scatter", "whole"),
        ("gatherv", "of root"),
        ("scatterv", "of root"),
        ("alltoallv", "own"),
        ("alltoallw", "own"),
        ("neighbor_alltoallv", "own"),
        ("neighbor_allgatherv", None),
        ("allreduce", None),
    ],
)
def test_who_knows_the_lengths_of_all_blocks(collective, known):
    """A rank sends one block to all its neighbours in a neighbor_allgatherv."""
    assert _known_by(collective) == known


def test_calls_whose_size_all_ranks_know_are_apart_by_size(monkeypatch):
    """In mpi4py, all reduce_scatters of a program are at one call site."""
    monkeypatch.setattr(made, "FUNCTIONS", ("allreduce", "reduce_scatter", "alltoallv", "barrier"))
    found = calls_of("reduce_scatter", [1024, 1024, 4 << 20])
    assert [(one.size, len(one.sequences)) for one in found] == [(1024, 2), (4 << 20, 1)]


def test_calls_whose_blocks_a_rank_alone_knows_are_one(monkeypatch):
    found = calls_of("alltoallv", [1024, 4096])
    assert [len(one.sequences) for one in found] == [2]
