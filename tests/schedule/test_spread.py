"""Colourings have as few colours as promised, and all pairs of ranks come out once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from stagegen.schedule.alltoall.phases.colouring import colour_edges
from stagegen.schedule.alltoall.phases.spread import spread


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60))
def test_colours_are_as_many_as_the_largest_degree(ends):
    degree = max([0, *Counter(u for u, _ in ends).values(), *Counter(v for _, v in ends).values()])
    colours = colour_edges(ends, degree)
    assert all(0 <= colour < degree for colour in colours)
    for side in (0, 1):
        at_node = [(pair[side], colour) for pair, colour in zip(ends, colours, strict=True)]
        assert len(set(at_node)) == len(ends)


@st.composite
def grouped(draw):
    """Groups of ranks, and all messages between them in phases that leave no rank too few."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    names = iter(range(sum(sizes)))
    groups = [[next(names) for _ in range(size)] for size in sizes]
    pairs = [(i, j) for i, m in enumerate(sizes) for j, n in enumerate(sizes) for _ in range(m * n)]
    for i, m in enumerate(sizes):
        for _ in range(m):
            pairs.remove((i, i))
    phases: list[list[tuple[int, int]]] = []
    for i, j in draw(st.permutations(pairs)):
        for phase in phases:
            sends = sum(pair[0] == i for pair in phase)
            receives = sum(pair[1] == j for pair in phase)
            if sends < sizes[i] and receives < sizes[j]:
                phase.append((i, j))
                break
        else:
            phases.append([(i, j)])
    return groups, phases


@given(grouped())
def test_every_pair_of_ranks_has_one_message_and_no_rank_two_at_a_time(case):
    groups, phases = case
    found = spread(groups, phases)
    group_of = {rank: number for number, ranks in enumerate(groups) for rank in ranks}
    ranks = sorted(group_of)
    every = [(u, v) for u in ranks for v in ranks if u != v]
    assert sorted(message for phase in found for message in phase) == every
    for phase, pairs in zip(found, phases, strict=True):
        assert sorted((group_of[u], group_of[v]) for u, v in phase) == sorted(pairs)
        assert len({u for u, _ in phase}) == len({v for _, v in phase}) == len(phase)
