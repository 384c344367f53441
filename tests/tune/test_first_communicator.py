"""Within a budget, the first communicator of a collective has its share, and then competes."""

from __future__ import annotations

from docs.tools.bench_tuning.model import Cluster
from stagegen.tune.plan import Plan
from stagegen.tune.purse import PaidSource, Purse
from stagegen.tune.search import Search
from stagegen.tune.spending import FIRST, SCOUTING, Spender
from stagegen.tune.subject import Subject
from tests.tune.test_synthetic import RATE, TIMING, algorithm

SIZES = (1, 100, 200)
MANY, FEW = ("native", *(f"a{number}" for number in range(10))), ("native", "a1")


def first_of_two(total: float) -> Subject:
    """Tune two communicators within so many seconds; return the subject of the first one."""
    cluster = Cluster(lambda *call: 0.02, noise=0, luck=0, hiccups=0)
    purse = Purse(total)

    def subject(names: tuple[str, ...], first: Subject | None) -> Subject:
        plan = Plan(16, SIZES, TIMING, 20.0, lambda what: None, bound=lambda size: RATE * size)
        algorithms = [algorithm(name) for name in names]
        search = Search(PaidSource(cluster, purse), plan, "alltoall", algorithms)
        return Subject(search, "alltoall", plan, dict, first)

    first = subject(MANY, None)
    subjects = [first, subject(FEW, first)]
    Spender(subjects, purse, first.plan.protocol, lambda *call: 0.0).run()
    return first


def test_its_looks_go_on_among_those_of_others_when_its_share_is_spent():
    """Its first look may take all of its share."""
    total = 2.2 * first_of_two(1e4).costs[1]
    first = first_of_two(total)
    assert SCOUTING * FIRST * total < first.costs[1] < SCOUTING * total
    assert len(first.search.points) > 1
