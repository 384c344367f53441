"""The decision table is total, sorted and disjoint, and survives being written and read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.catalogue import load_catalogue
from stagegen.cli._sizes import parse_sizes
from stagegen.cli._tune_log import new_header
from stagegen.data import TOPOLOGIES
from stagegen.errors import InputError
from stagegen.measure.iterations import PRESETS, Iterations
from stagegen.measure.records import Candidate, Timing
from stagegen.topology import load_topology
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.scope import Options, grid
from stagegen.tune.shapes import Range, Shape
from tests.library.schemas import validate
from tests.measure.fakes import late_timings

CLUSTER = load_topology(TOPOLOGIES / "quickstart.yaml")
CATALOGUE = load_catalogue()

names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
candidates = st.builds(
    lambda name, values: Candidate(name, tuple(sorted(values.items()))),
    names,
    st.dictionaries(names, st.integers(0, 1 << 20), max_size=2),
)

others = st.lists(candidates.filter(lambda one: one.algorithm != "native"), max_size=3).map(tuple)


ranges = st.tuples(st.integers(1, 64), st.none() | st.integers(0, 64)).map(
    lambda pair: Range(pair[0], None if pair[1] is None else sum(pair))
)


@st.composite
def tables(draw) -> Table:
    starts = sorted(draw(st.sets(st.integers(1, 1 << 24), max_size=6)) | {0})
    rules = tuple(
        Rule(start, draw(candidates), (start - 1, start) if start else None, draw(others))
        for start in starts
    )
    kind = draw(st.sampled_from(["cluster", "group left", "one-host", "hosts", "other"]))
    shape = Shape(draw(st.integers(1, 64)), draw(st.integers(1, 64)))
    ranks = draw(st.integers(shape.hosts, shape.ranks))
    own = Table.exactly(draw(names), kind, ranks, shape.hosts, rules)
    own = replace(
        own, unconverged=tuple(sorted(draw(st.sets(st.integers(0, 1 << 24), max_size=3))))
    )
    if draw(st.booleans()):
        return own
    return replace(own, hosts=draw(ranges), ranks_per_host=draw(ranges), confirmed=False)


@st.composite
def decisions(draw) -> DecisionTable:
    made = tuple(draw(st.lists(tables(), max_size=4)))
    timing = draw(st.none() | late_timings())
    return DecisionTable("a-cluster", "0" * 64, "f" * 64, draw(st.booleans()), made, (), timing)


@given(decisions())
def test_a_decision_survives_its_json_form_which_keeps_to_the_schema(decision):
    text = decision.to_text()
    assert DecisionTable.from_json(json.loads(text)) == decision
    validate("decision", json.loads(text))


@given(tables(), st.integers(0, 1 << 25))
def test_every_size_has_one_choice(table, size):
    serving = [
        rule.candidate
        for index, rule in enumerate(table.rules)
        if rule.first
        <= size
        <= (table.last_of(index) if table.last_of(index) is not None else size)
    ]
    assert serving == [table.choice(size)]


@given(tables())
def test_rules_are_disjoint_and_without_gaps(table):
    ends = [table.last_of(index) for index in range(len(table.rules))]
    assert ends[-1] is None
    assert table.rules[0].first == 0
    for end, following in zip(ends[:-1], table.rules[1:], strict=True):
        assert end + 1 == following.first


def table(collective: str, kind: str, *rules: Rule, ranks: int = 4) -> Table:
    return Table.exactly(collective, kind, ranks, ranks, rules)


@pytest.mark.parametrize("starts", [(), (1,), (0, 0), (0, 9, 5)])
def test_tables_that_are_not_total_do_not_exist(starts):
    with pytest.raises(ValueError, match="ascend from 0"):
        table("bcast", "cluster", *(Rule(start, Candidate("flat")) for start in starts))


GOOD = DecisionTable(
    "c", "0" * 64, "1" * 64, True, (table("bcast", "cluster", Rule(0, Candidate("flat"))),)
).to_json()


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 1},
        {"version": 2},
        {"version": 5},
        {"tables": None},
        {"tables": [{}]},
        {"tables": [{**GOOD["tables"][0], "rules": []}]},
        {"tables": [{**GOOD["tables"][0], "rules": [{"from": 5}]}]},
        {"tables": [{**GOOD["tables"][0], "rules": ["flat"]}]},
    ],
)
def test_what_is_no_decision_table_is_an_input_error(damage):
    with pytest.raises(InputError, match="decision table"):
        DecisionTable.from_json({**GOOD, **damage})
    for key in GOOD.keys() - {"fallback"}:
        with pytest.raises(InputError, match="not a decision table"):
            DecisionTable.from_json({k: v for k, v in GOOD.items() if k != key})


def test_a_table_of_version_3_is_read_without_unconverged_sizes():
    old = {k: v for k, v in GOOD["tables"][0].items() if k != "unconverged"}
    found = DecisionTable.from_json({**GOOD, "version": 3, "tables": [old]})
    assert found.tables[0].unconverged == ()
    assert found.to_json() == GOOD


def test_a_table_of_version_4_must_have_its_unconverged_sizes():
    new = {k: v for k, v in GOOD["tables"][0].items() if k != "unconverged"}
    with pytest.raises(InputError, match="not a decision table"):
        DecisionTable.from_json({**GOOD, "tables": [new]})


def test_a_grid_has_the_sizes_of_the_dissertation_and_doubles_them_beyond():
    """Faraj 2006, §4.1.1.4: 1, 64 and 512 bytes, 1, 2, 4, … 256 KiB."""
    assert grid(1, 1 << 20) == (
        1, 64, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576,
    )  # fmt: skip


@given(st.integers(1, 1 << 22), st.integers(0, 1 << 22))
def test_a_grid_begins_and_ends_where_it_is_asked_to(low, more):
    sizes = grid(low, low + more)
    assert sizes[0] == low
    assert sizes[-1] == low + more
    assert list(sizes) == sorted(set(sizes))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1:1KiB", (1, 64, 512, 1024)),
        ("64,1,8KiB,64", (1, 64, 8192)),
        ("100:600", (100, 512, 600)),
        ("512KiB:1MiB", (524288, 1048576)),
    ],
)
def test_the_sizes_option_takes_ranges_and_lists(text, sizes):
    assert parse_sizes(None, None, text) == sizes


TIMINGS = st.builds(
    Timing,
    st.sampled_from(["mpptest", "barrier", "computation"]),
    st.floats(0, 1000),
    st.sampled_from(["slowest", "mean"]),
    st.sampled_from([*PRESETS.values(), Iterations(((1, 7), (64, 2)))]),
)


@given(TIMINGS | late_timings() | st.builds(Timing, st.just("arrival"), hash=st.just("1" * 64)))
def test_options_survive_the_log_s_header(timing):
    options = Options(("alltoall", "bcast"), (1, 64), timing, 2.5)
    validate("measurements", new_header(CLUSTER, CATALOGUE, options))
    assert Options.from_json(json.loads(json.dumps(options.to_json()))) == options


@pytest.mark.parametrize("key", ["collectives", "sizes", "timing", "budget"])
def test_a_header_without_an_option_is_damaged(key):
    whole = Options(("bcast",), (1,), Timing(), 1.0).to_json()
    with pytest.raises(InputError, match="header of the log is damaged"):
        Options.from_json({k: v for k, v in whole.items() if k != key})
