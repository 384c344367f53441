"""Tuning for patterns: with their own counts, algorithms and tables, beside those of all calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.cli._tune_patterns import roots_of
from stagegen.errors import InputError
from stagegen.generate import Renderer
from stagegen.generate.build import library_build
from stagegen.generate.pattern_templates import algorithm_names, pattern_root
from stagegen.library.rules import CPattern, c_patterns
from stagegen.measure.arrivals import Imbalance
from stagegen.measure.records import Candidate, Timing
from stagegen.patterns import Pattern, make_pattern
from stagegen.schedule import lower_bound_of_sizes
from stagegen.topology import WHOLE, Group
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.agreement import TOLD_BYTES, seconds_of, time_telling
from stagegen.tune.bounds import bound_of_pattern
from stagegen.tune.candidates import default_candidate
from stagegen.tune.communicators import as_seen_by, find_communicators, name_of
from stagegen.tune.decision import NATIVE_CANDIDATE, Agreement
from stagegen.tune.field import Sample
from stagegen.tune.purse import BudgetSpent
from stagegen.tune.scope import Options
from stagegen.tune.sizes import sizes_of
from stagegen.tune.together import together
from stagegen.tune.tuner import tune
from tests.library.schemas import validate
from tests.measure.fakes import Model
from tests.strategies import make_topology

TOPOLOGY = make_topology([3, 3], [0])
MATRIX = replace(make_pattern("heavy", 6, 1000, 1), name="keys")
OTHER = replace(make_pattern("banded", 6, 2000, 1), name="rows")
VECTOR = Pattern("long", "allgatherv", ((100, 100, 2000, 100, 100, 100),))
CLASS = replace(make_pattern("heavy", 6, 1000, 2), name="some heavy", is_class=True)
PATTERNS = (MATRIX, OTHER, VECTOR, CLASS)


@lru_cache
def catalogue() -> Catalogue:
    names = ("native", "pair", "simple", "ring", "pipelined_ring")
    whole = load_catalogue(added=(pattern_root(TOPOLOGY, (MATRIX, OTHER), "x.yaml"),))
    kept = (a for a in whole.algorithms if a.name in names or a.name.startswith("pattern_"))
    return replace(whole, algorithms=tuple(kept))


def cost(candidate: Candidate, size: int) -> float:
    fast = {"pattern_keys": 1e-3, "pattern_rows": 2e-3, "pair": 3e-3, "pipelined_ring": 1e-3}
    return fast.get(candidate.algorithm, 5e-3)


def options(**changes) -> Options:
    names = ("whole", *map(name_of, PATTERNS))
    base = Options(("allgatherv", "alltoallv"), (4096,), Timing(), 1.0, names, patterns=PATTERNS)
    return replace(base, **changes)


@lru_cache
def tuned() -> tuple[Model, DecisionTable]:
    model = Model(cost)
    return model, tune(TOPOLOGY, catalogue(), options(), model, lambda: True).decision


def test_each_pattern_has_a_table_and_other_calls_have_theirs():
    _, decision = tuned()
    found = {(t.collective, t.communicator): t.choice(1000).algorithm for t in decision.tables}
    assert found["alltoallv", "pattern keys"] == "pattern_keys"
    assert found["alltoallv", "pattern rows"] == "pattern_rows"
    assert found["alltoallv", "cluster"] == "pair"
    assert found["alltoallv", "pattern some heavy"] == "pair"
    assert found["allgatherv", "pattern long"] == "pipelined_ring"
    assert ("allgatherv", "pattern keys") not in found


def test_a_pattern_is_measured_by_scales_and_no_other_s_order_competes():
    model, _ = tuned()
    sizes: dict[str, set[int]] = {}
    for asked in model.asked:
        sizes.setdefault(asked.communicator, set()).add(asked.size)
        names = {c.algorithm for c in asked.candidates if c.algorithm.startswith("pattern_")}
        assert not names or asked.communicator.startswith("pattern ")
        assert asked.communicator != "pattern keys" or all("keys" in name for name in names)
        assert not names or asked.communicator != "pattern some heavy"
    own = MATRIX.average
    assert {round(own / 4), round(own), round(4 * own)} <= sizes["pattern keys"]
    assert {625, 2500, 10000} <= sizes["pattern long"]
    mean = CLASS.average
    assert {round(mean / 4), round(mean), round(4 * mean)} <= sizes["pattern some heavy"]


@pytest.mark.parametrize(("ranks", "largest"), [(16, 1 << 26), (64, (1 << 31) // 64 - 1)])
def test_an_int_counts_the_bytes_before_the_last_block(ranks, largest):
    described = catalogue().collective("alltoallv")
    found = sizes_of(described, options(sizes=(1, 1 << 26)), ranks)
    assert (found[0], found[-1]) == (1, largest)


def test_a_pattern_is_tuned_at_the_scales_that_are_asked_for():
    model = Model(cost)
    tune(TOPOLOGY, catalogue(), options(scales=(2.0,)), model, lambda: True)
    assert {asked.size for asked in model.asked if asked.communicator == "pattern keys"} == {
        round(2 * MATRIX.average)
    }


def test_a_pattern_with_scales_of_its_own_is_tuned_at_these():
    own = replace(CLASS, scales=(0.5, 2.0))
    patterns = tuple(own if one is CLASS else one for one in PATTERNS)
    model = Model(cost)
    tune(TOPOLOGY, catalogue(), options(patterns=patterns), model, lambda: True)
    sizes = {asked.size for asked in model.asked if asked.communicator == "pattern some heavy"}
    assert sizes >= {round(scale * CLASS.average) for scale in own.scales}
    assert round(CLASS.average) not in sizes


def test_options_and_decision_survive_their_files():
    wanted = options(patterns=(MATRIX, replace(CLASS, scales=(0.5, 2.0))))
    assert Options.from_json(wanted.to_json()) == wanted
    wanted = options()
    assert Options.from_json(wanted.to_json()) == wanted
    _, decision = tuned()
    assert DecisionTable.from_json(decision.to_json()) == decision
    validate("decision", decision.to_json())


def test_the_bound_of_a_pattern_is_that_of_its_blocks():
    sizes = MATRIX.scaled(2).sizes
    bound = lower_bound_of_sizes(TOPOLOGY, "alltoallv", sizes).seconds
    found = bound_of_pattern(TOPOLOGY, MATRIX, round(2 * MATRIX.average))
    assert found == pytest.approx(bound, rel=1e-2)
    row = VECTOR.sizes[0]
    bound = lower_bound_of_sizes(TOPOLOGY, "allgatherv", row).seconds
    assert bound_of_pattern(TOPOLOGY, VECTOR, sum(row)) == pytest.approx(bound)


def test_patterns_whose_rule_is_that_of_all_calls_are_not_recognised():
    def alike(candidate: Candidate, size: int) -> float:
        return 1e-3 if candidate.algorithm in ("pair", "ring") else 5e-3

    decision = tune(TOPOLOGY, catalogue(), options(), Model(alike), lambda: True).decision
    routines = library_build(TOPOLOGY, catalogue(), catalogue().algorithms).routines
    found = c_patterns(decision, routines, [WHOLE])
    assert not [one for one in found if one.collective == "alltoallv"]


def cost_of_telling(seconds: float) -> Callable[[Candidate, int], float]:
    """Return a cost model in which an allreduce takes so many seconds."""
    return lambda candidate, size: seconds if size == TOLD_BYTES else cost(candidate, size)


@pytest.mark.parametrize(
    ("seconds", "paying"),
    [
        pytest.param(0.5e-3, {"keys", "rows"}, id="both gain more"),
        pytest.param(1.5e-3, {"keys"}, id="the rows gain 1 ms, the keys 2 ms"),
        pytest.param(3e-3, set(), id="both gain less"),
    ],
)
def test_patterns_are_recognised_only_if_one_gains_more_than_ranks_pay_for_it(seconds, paying):
    """If the ranks tell each other what they have for one pattern, the others are free."""
    model = Model(cost_of_telling(seconds))
    decision = tune(TOPOLOGY, catalogue(), options(), model, lambda: True).decision
    tables = {t.communicator: t for t in decision.tables if t.communicator.startswith("pattern")}
    agreed = {name: tables[f"pattern {name}"].agreement for name in ("keys", "rows")}
    assert agreed == {name: Agreement(seconds, name in paying) for name in agreed}
    assert tables["pattern keys"].choice(1000).algorithm == "pattern_keys"
    assert tables["pattern long"].agreement is None  # of an allgatherv all ranks know all counts
    validate("decision", decision.to_json())
    routines = library_build(TOPOLOGY, catalogue(), catalogue().algorithms).routines
    recognised = c_patterns(decision, routines, [WHOLE])
    found = {one.name for one in recognised if one.collective == "alltoallv"}
    assert found == ({"keys", "rows"} if paying else set())


@pytest.mark.parametrize("pays", [False, True])
def test_a_class_that_does_not_pay_is_recognised_only_beside_what_pays(pays):
    found = with_rules({"one class": ("native",), "a pattern": ("simple",)}, {"a pattern": pays})
    assert {one.name for one in found} == ({"one class", "a pattern"} if pays else set())


def test_a_routine_with_other_values_is_what_its_algorithm_takes_beside_native():
    """The usual one was timed at another size, or with other values, or nowhere."""
    one, other = (Candidate("own", (("window", value),)) for value in (1, 2))
    small = {NATIVE_CANDIDATE: Sample((4.0,)), one: Sample((2.0,)), other: Sample((3.0,))}
    measured = {1: small, 1024: {NATIVE_CANDIDATE: Sample((8.0,))}}
    assert seconds_of(one, 1, measured) == 2
    assert seconds_of(one, 1024, measured) == 4
    assert seconds_of(Candidate("own", (("window", 3),)), 1024, measured) == 4
    assert seconds_of(Candidate("pair"), 1024, measured) == 8


def test_ranks_that_come_late_do_not_make_recognition_dear():
    """They would wait as long in the alltoallv."""
    late = Timing("imbalance", metric="elapsed", arrivals=Imbalance(1000, False, 1))
    model = Model(cost)
    tune(TOPOLOGY, catalogue(), options(timing=late), model, lambda: True)
    (telling,) = (asked for asked in model.asked if asked.collective == "allreduce")
    assert telling.timing.arrivals is None


@pytest.mark.parametrize("total", [None, 1000.0], ids=["all", "budget"])
def test_what_ranks_tell_is_timed_once_and_only_for_alltoallv(total):
    for names, times in (((), 0), ((VECTOR,), 0), ((MATRIX, OTHER, CLASS), 1)):
        model = Model(cost)
        communicators = ("whole", *map(name_of, names))
        wanted = options(communicators=communicators, patterns=names, total=total)
        tune(TOPOLOGY, catalogue(), wanted, model, lambda: True)
        assert sum(asked.collective == "allreduce" for asked in model.asked) == times


def test_where_the_time_ends_while_ranks_tell_each_other_the_rest_is_not_known():
    topics = [
        SimpleNamespace(
            communicator=SimpleNamespace(pattern=PATTERNS[0], group=group, name=f"p{group}"),
            described=SimpleNamespace(has_one_rule=True),
            collective="alltoallv",
        )
        for group in (None, 1)
    ]

    class Ends(Model):
        def measure(self, asked):
            if asked.communicator == "p1":
                raise BudgetSpent
            return super().measure(asked)

    told = time_telling(Ends(lambda candidate, size: 1e-3), topics, Timing(), lambda what: None)
    assert told == {"pNone": pytest.approx(1e-3)}


def test_a_small_budget_has_a_look_after_the_time_for_telling_was_taken():
    model = Model(cost)
    tune(TOPOLOGY, catalogue(), options(total=1.0), model, lambda: True)
    assert {asked.collective for asked in model.asked} > {"allreduce"}


def with_rules(
    own: dict[str, tuple[str, ...]], pays: dict[str, bool] | None = None
) -> list[CPattern]:
    """The rules in C for patterns that each have such algorithms at 0, 100, 200 … bytes.

    If it is said of some whether they pay for recognition, the others do not.
    """
    patterns = tuple(replace(CLASS, name=name, is_class="class" in name) for name in own)
    found = catalogue()

    def table(communicator: str, names: tuple[str, ...]) -> Table:
        rules = [
            Rule(
                100 * number,
                default_candidate(found.find("alltoallv", name)),
                (100 * number - 1, 100 * number) if number else None,
            )
            for number, name in enumerate(names)
        ]
        return Table.exactly("alltoallv", communicator, 6, 6, tuple(rules))

    tables = [table("cluster", ("pair",))]
    for one in patterns:
        agreed = None if pays is None else Agreement(1e-3, pays.get(one.name, False))
        tables.append(replace(table(name_of(one), own[one.name]), agreement=agreed))
    decision = DecisionTable(
        "x", TOPOLOGY.hash, found.hash, False, tuple(tables), patterns=patterns
    )
    routines = library_build(TOPOLOGY, found, found.algorithms).routines
    return c_patterns(decision, routines, [WHOLE])


def test_all_classes_stay_where_one_has_another_rule_than_other_calls():
    """Else calls of one class, or of a pattern, would be taken for those of the next."""
    alike = {"one class": ("pair",), "a pattern": ("pair", "native")}
    assert [(one.name, len(one.entries)) for one in with_rules(alike)] == [("a pattern", 1)]
    differ = {**alike, "other class": ("pair", "simple")}
    found = {one.name: one for one in with_rules(differ)}
    assert {name: len(one.entries) for name, one in found.items()} == {
        "one class": 1, "a pattern": 2, "other class": 2,
    }  # fmt: skip
    assert found["one class"].largest_over_mean == CLASS.largest_over_mean
    assert found["one class"].c_bytes is None
    assert found["a pattern"].largest_over_mean == 0
    assert (found["a pattern"].mean, found["one class"].mean) == (CLASS.average, 0)
    assert found["a pattern"].c_bytes is not None


def test_more_rules_than_ranks_can_tell_apart_are_refused():
    """Those of classes count as well: ranks keep the number of either in a byte."""
    own = {f"class {number}": ("native",) for number in range(60)}
    own |= {f"pattern {number}": ("native",) for number in range(4)}
    assert sum(len(one.entries) for one in with_rules(own)) == 64
    with pytest.raises(InputError, match="65 rules, and 64 can be told apart"):
        with_rules({**own, "class 60": ("native",)})


def test_rules_of_patterns_have_names_of_their_own():
    found = with_rules(dict.fromkeys(("a class", "a-class", "a class 1"), ("native",)))
    assert len({one.c_name for one in found}) == 3


def test_blocks_and_rules_of_patterns_have_names_of_their_own_in_c():
    found = with_rules(dict.fromkeys(("a", "a-bytes", "a_bytes"), ("native",)))
    renderer = Renderer("", TOPOLOGY.name, TOPOLOGY.hash, "", catalogue().templates)
    text = renderer.render("libcoll/patterns.c.j2", {"patterns": found})
    names = re.findall(r"^static const .* (\w+)\[\]", text, re.M)
    assert len(names) == len(set(names)) == 6


def test_a_class_has_no_routines_of_its_own():
    assert not roots_of(None, [CLASS, VECTOR], TOPOLOGY)
    (root,) = roots_of(Path("x.yaml"), PATTERNS, TOPOLOGY)
    assert not [name for name in root.files if "heavy" in name]


def test_a_communicator_of_a_pattern_has_all_ranks():
    (found,) = find_communicators(TOPOLOGY, ["pattern keys"], PATTERNS)
    assert found.ranks == tuple(range(6))
    assert found.pattern == MATRIX
    assert found.table == "pattern keys"


def test_an_order_that_a_slow_link_makes_impossible_is_reported_once(capsys):
    """Its link would take millions of phases: the other orders have routines, this one has none."""
    slow = make_topology([3, 3], [0], uplinks=[1e-6])
    (root,) = roots_of(Path("p.yaml"), (MATRIX, OTHER), slow)
    assert root.files
    assert not [path for path in root.files if "all_to_all" in path]
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("p.yaml: no routine of the schedule all-to-all: ")
    assert "the link s0–s1 is" in told


#: A group of the first switch's hosts, with two patterns of its own beside one of all ranks.
GROUPED = replace(TOPOLOGY, groups=(Group("left", ("n0", "n1", "n2")),))
ROW, WIDE_ROW = (
    replace(make_pattern(family, 3, 1000, 1), name=name, group="left")
    for family, name in (("heavy", "row"), ("zipf", "wide row"))
)
LONG_ROW = Pattern("long row", "allgatherv", ((100, 2000, 100),), group="left")
OF_BOTH = (MATRIX, ROW, WIDE_ROW, LONG_ROW)


@lru_cache
def of_both() -> tuple[Model, DecisionTable, list[CPattern]]:
    """A tuning for patterns of all ranks and of the group, and its rules in C."""
    whole = load_catalogue(added=(pattern_root(GROUPED, (MATRIX, ROW, WIDE_ROW), "x.yaml"),))
    names = ("native", "pair", "simple", "pipelined_ring")
    kept = (a for a in whole.algorithms if a.name in names or a.name.startswith("pattern_"))
    found = replace(whole, algorithms=tuple(kept))

    def seconds(candidate: Candidate, size: int) -> float:
        own = {"pattern_row": 1e-3, "pattern_wide_row": 1e-3}
        return own.get(candidate.algorithm) or cost_of_telling(0.5e-3)(candidate, size)

    model = Model(seconds)
    wanted = options(communicators=("whole", *map(name_of, OF_BOTH)), patterns=OF_BOTH)
    decision = tune(GROUPED, found, wanted, model, lambda: True).decision
    routines = library_build(GROUPED, found, found.algorithms).routines
    return model, decision, c_patterns(decision, routines, [WHOLE, "left"])


def test_a_group_s_pattern_is_tuned_on_its_ranks_with_its_own_orders():
    (one,) = find_communicators(GROUPED, ["pattern row"], OF_BOTH)
    assert (one.ranks, one.hosts, one.group, one.table) == ((0, 1, 2), 3, 1, "pattern row")
    seen = as_seen_by(GROUPED, one)
    assert seen.ranks == ("n0", "n1", "n2")
    bound = lower_bound_of_sizes(seen, "alltoallv", ROW.sizes).seconds
    assert bound_of_pattern(seen, ROW, round(ROW.average)) == pytest.approx(bound, rel=1e-2)
    model, decision, _ = of_both()
    tables = {t.communicator: t for t in decision.tables}
    assert tables["pattern row"].choice(1000).algorithm == "pattern_row"
    assert tables["pattern keys"].choice(1000).algorithm == "pattern_keys"
    assert (tables["pattern row"].shape.ranks, tables["pattern keys"].shape.ranks) == (3, 6)
    for asked in model.asked:
        orders = {c.algorithm for c in asked.candidates if c.algorithm.startswith("pattern_")}
        assert asked.communicator != "pattern row" or orders <= set(algorithm_names(ROW))
        assert asked.communicator != "pattern keys" or orders <= set(algorithm_names(MATRIX))


def test_what_ranks_tell_is_timed_once_for_all_ranks_and_once_for_a_group():
    model, decision, _ = of_both()
    told = [asked.communicator for asked in model.asked if asked.collective == "allreduce"]
    assert len(told) == 2
    assert told[0] == "pattern keys"
    assert told[1] in ("pattern row", "pattern wide row")
    weighed = {t.communicator for t in decision.tables if t.agreement is not None}
    assert weighed == {"pattern keys", "pattern row", "pattern wide row"}


def test_a_group_s_pattern_survives_the_files_and_is_of_the_group_in_c():
    _, decision, found = of_both()
    assert DecisionTable.from_json(decision.to_json()) == decision
    validate("decision", decision.to_json())
    forms = {one["name"]: one for one in decision.to_json()["patterns"]}
    assert (forms["row"].get("group"), "group" in forms["keys"]) == ("left", False)
    groups = {one.name: one.group for one in found}
    assert groups == {"keys": 0, "row": 1, "wide row": 1, "long row": 1}


def test_a_group_s_pattern_stays_out_of_what_is_timed_at_the_same_time():
    names = ["left", "pattern row"]
    found = find_communicators(GROUPED, names, OF_BOTH)
    assert together(GROUPED, found) == [(found[0],), (found[1],)]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (replace(ROW, group="right"), "the topology has no group right"),
        (replace(MATRIX, group="left"), "6 ranks, but the group left has 3"),
        (replace(ROW, group=None), "3 ranks, but the cluster has 6"),
    ],
)
def test_a_pattern_of_other_ranks_is_refused(wrong, why):
    with pytest.raises(InputError, match=why):
        find_communicators(GROUPED, [name_of(wrong)], [wrong])


def test_names_that_make_one_function_are_refused():
    """That of the group's pattern ends with the name of the group."""
    other = replace(MATRIX, name="row group left")
    with pytest.raises(InputError, match="both become pattern_row_group_left"):
        pattern_root(GROUPED, (ROW, other), "x.yaml")
