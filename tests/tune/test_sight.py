"""On a further communicator, what led with few bytes serves more only near the bound."""

from __future__ import annotations

import pytest

from docs.tools.bench_tuning.model import Cluster
from stagegen.measure.records import Candidate
from stagegen.tune.plan import Plan
from stagegen.tune.search import Search
from tests.measure.fakes import TIMING
from tests.tune.test_race_search import algorithm

RATE = 1e-6
SIZES = (1, 1000, 100_000, 1_000_000)
NATIVE, SHORT = Candidate("native"), Candidate("short")


def truth(collective: str, candidate: Candidate, size: int) -> float:
    """`short` and `near` have half of the native latency; `near` is fast with many bytes, too."""
    alpha, factor = {"native": (0.02, 1.4), "short": (0.01, 4.0), "near": (0.01, 1.2)}[
        candidate.algorithm
    ]
    return alpha + factor * RATE * size


def served(name: str, looked_at: tuple[int, ...], *, is_told: bool = True) -> list[Candidate]:
    """The choices for all sizes, if there was time for looks at some of them."""
    plan = Plan(
        16, SIZES, TIMING, 20.0, lambda what: None, bound=lambda s: RATE * s, is_told=is_told
    )
    cluster = Cluster(truth, noise=0, luck=0, hiccups=0)
    search = Search(cluster, plan, "alltoall", [algorithm("native"), algorithm(name)])
    for size in looked_at:
        search.look_at(size, {})
    table = search.outcome(duels=True).tables[0]
    return [table.choice(size) for size in SIZES]


def test_beyond_the_last_look_the_native_routine_serves():
    assert served("short", SIZES[:1]) == [SHORT, NATIVE, NATIVE, NATIVE]
    assert served("short", SIZES[:2]) == [SHORT, SHORT, NATIVE, NATIVE]


def test_a_routine_near_the_bound_goes_on():
    assert served("near", SIZES[:3]) == [Candidate("near")] * 4


def test_with_a_look_at_every_size_the_choices_stay():
    assert served("short", SIZES) == [SHORT, SHORT, NATIVE, NATIVE]


def test_the_whole_cluster_keeps_the_choice_of_the_last_look():
    """On the model of the benchmark, a small budget would lose more with native there."""
    assert served("short", SIZES[:1], is_told=False) == [SHORT] * 4


@pytest.mark.parametrize("size", [1000, 100_000])
def test_sizes_between_looks_have_the_choice_of_both(size):
    assert served("near", (1, 1_000_000))[SIZES.index(size)] == Candidate("near")
