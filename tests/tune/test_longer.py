"""A call that takes longer than one with more bytes has a look at what leads with these."""

from __future__ import annotations

import pytest

from docs.tools.bench_tuning.model import Cluster
from stagegen.measure.records import Candidate
from stagegen.tune.plan import Plan
from stagegen.tune.purse import PaidSource, Purse
from stagegen.tune.search import Search
from stagegen.tune.spending import Spender
from stagegen.tune.subject import Subject
from tests.tune.test_synthetic import RATE, TIMING, algorithm, tuned

SIZES = (1, 100, 200)
NAMES = ("late", "native", "ring")


def cluster(late: dict[int, float], native: dict[int, float]) -> Cluster:
    """A cluster with the seconds of `late` and of native calls by size; `ring` is 1.5 times slower.

    A size that is not among them takes as long as the next one that is.
    """

    def truth(collective: str, candidate: Candidate, size: int) -> float:
        own = late if candidate.algorithm == "late" else native
        factor = 1.5 if candidate.algorithm == "ring" else 1.0
        return factor * own[min(one for one in own if one >= size)]

    return Cluster(truth, noise=0, luck=0, hiccups=0)


def looks(asked: Cluster, size: int) -> set[str]:
    found = (one for one in asked.asked if one.launch == 0 and one.size == size)
    return {candidate.algorithm for one in found for candidate in one.candidates}


NATIVE = {1: 0.01, 100: 0.03, 200: 0.06}


def test_what_takes_less_time_with_more_bytes_has_a_look_and_serves():
    """By its time with one byte, `late` would lose with 100."""
    found = cluster({1: 0.05, 100: 0.02, 200: 0.02}, NATIVE)
    outcome = tuned(found, NAMES, SIZES)
    assert "late" in looks(found, 100)
    assert outcome.tables[0].choice(100).algorithm == "late"
    assert outcome.tables[0].choice(1).algorithm == "native"


def test_what_takes_more_time_with_more_bytes_has_none():
    found = cluster({1: 0.05, 100: 0.05, 200: 0.05}, NATIVE)
    outcome = tuned(found, NAMES, SIZES)
    assert "late" not in looks(found, 100)
    assert outcome.tables[0].choice(200).algorithm == "late"


@pytest.mark.parametrize("sizes", [(1, 100, 200, 400), (1, 50, 100, 200, 400)])
def test_looks_go_on_to_all_sizes_at_which_it_takes_less_time(sizes):
    native = {1: 0.01, 50: 0.025, 100: 0.03, 200: 0.04, 400: 0.06}
    found = cluster({1: 0.05, 400: 0.02}, native)
    outcome = tuned(found, NAMES, sizes)
    assert {outcome.tables[0].choice(size).algorithm for size in sizes[1:]} == {"late"}


def test_within_a_budget_these_looks_do_not_wait_for_all_others():
    """There may be no time left for them then."""
    sizes = (1, 100, 200, 400, 800, 1600, 3200)
    found = cluster({1: 0.05, 200: 0.02, 3200: 0.3}, {1: 0.01, 100: 0.03, 200: 0.06, 3200: 0.5})
    purse = Purse(1e4)
    plan = Plan(16, sizes, TIMING, 20.0, lambda what: None, bound=lambda size: RATE * size)
    search = Search(PaidSource(found, purse), plan, "alltoall", [algorithm(name) for name in NAMES])
    subject = Subject(search, "alltoall", plan, dict)
    Spender([subject], purse, plan.protocol, lambda *call: 0.0).run()
    order = [(one.size, {c.algorithm for c in one.candidates}) for one in found.asked]
    longer = next(i for i, (size, names) in enumerate(order) if size == 100 and "late" in names)
    assert longer < next(i for i, (size, _) in enumerate(order) if size == sizes[-1])
