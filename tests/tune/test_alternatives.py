"""What serves where a rule's choice cannot."""

from __future__ import annotations

from stagegen.measure.records import Candidate
from stagegen.tune.field import Sample
from stagegen.tune.rules import alternatives
from tests.measure.fakes import Model
from tests.tune.test_race_search import algorithm, by_name, line, search

ALGORITHMS = {
    a.name: a
    for a in (
        algorithm("native"),
        algorithm("best", constraints=("commutative", "power_of_two")),
        algorithm("same", constraints=("commutative", "power_of_two", "dense")),
        algorithm("any_p", constraints=("commutative",)),
        algorithm("ordered", constraints=("power_of_two",)),
        algorithm("short", max_bytes=64),
        algorithm("all"),
        algorithm("late"),
    )
}


def samples(**seconds: float) -> dict[Candidate, Sample]:
    return {
        Candidate(name): Sample((time,) * 4, dropped=time > 2) for name, time in seconds.items()
    }


def names(chosen: str, **seconds: float) -> list[str]:
    found = alternatives(Candidate(chosen), samples(**seconds), ALGORITHMS)
    return [candidate.algorithm for candidate in found]


def test_alternatives_are_in_the_order_of_their_medians_and_before_the_native_routine():
    assert names("best", best=1.0, ordered=1.3, any_p=1.2, native=9.0) == ["any_p", "ordered"]


def test_a_routine_that_asks_for_no_less_is_left_out():
    assert names("best", best=1.0, same=1.1, all=1.2, ordered=1.3, native=9.0) == ["all"]


def test_a_routine_that_is_slower_than_the_native_one_is_left_out():
    assert names("best", best=1.0, all=3.0, native=2.0) == []
    assert names("native", best=1.0, native=2.0) == []


def test_what_fell_behind_while_scouting_may_be_an_alternative():
    assert names("best", best=1.0, all=8.0, native=9.0) == ["all"]


def test_there_are_at_most_three_alternatives():
    found = names("best", best=1.0, short=1.1, ordered=1.2, any_p=1.3, all=1.4, native=9.0)
    assert found == ["short", "ordered", "any_p"]


def test_a_search_names_the_alternatives_in_order():
    costs = by_name(native=line(9e-3, 0), best=line(1e-3, 0), all=line(2e-3, 0))
    outcome = search(Model(costs), [ALGORITHMS[n] for n in ("native", "best", "all")])
    for table in outcome.tables:
        (rule,) = table.rules
        assert [option.algorithm for option in rule.options] == ["best", "all", "native"]


def test_the_largest_size_of_a_rule_orders_its_alternatives():
    costs = by_name(
        native=line(9e-3, 9e-6), best=line(1e-3, 1e-8),
        any_p=line(2e-3, 1e-6), ordered=line(3e-3, 2e-8),
    )  # fmt: skip
    outcome = search(Model(costs), [ALGORITHMS[n] for n in ("native", "best", "any_p", "ordered")])
    (rule,) = outcome.tables[0].rules
    assert [option.algorithm for option in rule.options] == ["best", "ordered", "any_p", "native"]
