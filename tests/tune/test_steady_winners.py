"""A size whose winner was the same at three sizes before, by a growing margin, is asked few."""

from __future__ import annotations

from bisect import bisect

import pytest

from docs.tools.bench_tuning.model import Cluster
from stagegen.measure.records import Candidate
from tests.tune.test_synthetic import RATE, tuned

SIZES = (1, 2, 4, 8)
OTHERS = tuple(f"far{n}" for n in range(4))
EVERYONE = {"native", "ring", "rival", *OTHERS}
FEW = {"native", "ring", "rival"}


def looked_at(*leads: float, sizes: tuple[int, ...] = SIZES) -> set[str]:
    """Return what has a look at the last size.

    Calls are so short that no prediction rules out those that are behind.

    Args:
        leads: by what factor `ring` is ahead of `rival` at each size; below 1, it is behind.
        sizes: of the plan.
    """

    def truth(collective: str, candidate: Candidate, size: int) -> float:
        ring = 1e-3 + RATE * size
        rival = leads[bisect(sizes, size) - 1]  # duels ask for sizes between, too
        return ring * {"native": 3, "ring": 1, "rival": rival}.get(candidate.algorithm, 1.1)

    cluster = Cluster(truth, noise=0, luck=0, hiccups=0)
    tuned(cluster, sorted(EVERYONE), sizes)
    looks = (one for one in cluster.asked if one.launch == 0 and one.size == sizes[-1])
    return {candidate.algorithm for one in looks for candidate in one.candidates}


def test_a_steady_winner_meets_native_and_one_challenger():
    assert looked_at(1.02, 1.03, 1.04, 1.05) == FEW


def test_only_the_three_sizes_before_count():
    assert looked_at(0.9, 1.02, 1.03, 1.04, 1.05, sizes=(1, 2, 3, 4, 8)) == FEW


@pytest.mark.parametrize(
    ("why", "leads"),
    [
        ("the margin shrinks at last", (1.02, 1.04, 1.03, 1.05)),
        ("the margin shrinks at first", (1.03, 1.02, 1.04, 1.05)),
        ("two are level at first", (1.0, 1.03, 1.04, 1.05)),
        ("another has won between", (1.02, 1 / 1.03, 1.04, 1.05)),
        ("only two sizes agree: another has won the first", (1 / 1.02, 1.03, 1.04, 1.05)),
        ("another has won the last", (1.02, 1.03, 1 / 1.04, 1.05)),
        ("the challenger wins now", (1.02, 1.03, 1.04, 0.95)),
    ],
)
def test_all_have_a_look_where_the_winner_is_not_steady(why, leads):
    assert looked_at(*leads) == EVERYONE, why


def test_all_have_a_look_if_only_two_sizes_are_before():
    assert looked_at(1.03, 1.04, 1.05, sizes=SIZES[1:]) == EVERYONE
