"""Lost time: exact for a hand-made table, nothing against itself, roles that cancel out."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.measure.log import read_log
from stagegen.measure.records import Candidate, Measurement, Request
from stagegen.measure.timing import Timing
from stagegen.topology import load_topology
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.loss import Loss, Times, by_key, lost, total, weights
from stagegen.tune.measured import names_of_tables
from stagegen.tune.scope import Options

REFERENCE = Path(__file__).parents[2] / "generated" / "reference"
NATIVE, RING, TREE = Candidate("native"), Candidate("ring"), Candidate("tree")
CANDIDATES = (NATIVE, RING, TREE)
SIZES = (1, 64, 512, 1024, 4096)


def measurement(size, seconds, settle=True, communicator="whole"):
    """Return a measurement of bcast; ``seconds`` by candidate, each a list or one number."""
    listed = {c: s if isinstance(s, tuple) else (s,) for c, s in seconds.items()}
    (count,) = {len(s) for s in listed.values()}
    request = Request("bcast", size, Timing(), settle, 1, count, tuple(listed), communicator)
    return Measurement(request, tuple(listed.values()))


def test_the_loss_of_a_hand_made_table_is_exact():
    """Sizes 1 and 4 stand for half an octave each, size 2 for one."""
    times = Times(
        measurement(size, {RING: ring, TREE: tree})
        for size, ring, tree in ((1, 2.0, 1.0), (2, 8.0, 1.0), (4, 1.0, 1.0))
    )
    found = lost(lambda _: RING, lambda _: TREE, times, "bcast", "whole")
    assert found.ratios == {1: 2.0, 2: 8.0, 4: 1.0}
    assert found.share == pytest.approx((2.0**0.5 * 8.0**1 * 1.0**0.5) ** (1 / 2) - 1)
    assert found.between(2, None).share == pytest.approx(8.0**0.5 - 1)
    assert found.between(2, 3) == Loss({2: 8.0})


def test_a_size_weighs_the_octaves_that_it_stands_for():
    assert weights((1, 64, 512, 1024)) == {1: 3.0, 64: 4.5, 512: 2.0, 1024: 0.5}
    assert weights((0,)) == {0: 1.0}
    assert weights((4096,)) == {4096: 1.0}


@given(st.sets(st.integers(1, 1 << 30), min_size=2, max_size=12))
def test_the_weights_are_all_octaves_together(sizes):
    octaves = math.log2(max(sizes)) - math.log2(min(sizes))
    assert sum(weights(sizes).values()) == pytest.approx(octaves)


def test_a_loss_at_0_and_1_byte_counts_both():
    assert Loss({0: 2.0, 1: 8.0}).share == pytest.approx(3.0)


choices = st.lists(st.sampled_from(CANDIDATES), min_size=len(SIZES), max_size=len(SIZES))
seconds = st.floats(1e-6, 10.0)
timed = st.fixed_dictionaries(dict.fromkeys(CANDIDATES, seconds))


def _table(chosen):
    """Return a table with these candidates, each from one of SIZES on."""
    rules = (Rule(first, one) for first, one in zip((0, *SIZES[1:]), chosen, strict=True))
    return Table.exactly("bcast", "cluster", 4, 4, tuple(rules))


@st.composite
def samples(draw):
    return Times(measurement(size, draw(timed)) for size in SIZES)


def _lost(used, reference, times):
    return lost(used.choice, reference.choice, times, "bcast", "whole")


@given(choices, samples())
def test_a_table_loses_nothing_against_itself(chosen, times):
    assert _lost(_table(chosen), _table(chosen), times).share == 0.0


@given(choices, choices, samples())
def test_the_losses_of_exchanged_roles_cancel_out(one, other, times):
    there, back = (_lost(_table(a), _table(b), times) for a, b in ((one, other), (other, one)))
    assert (1 + there.share) * (1 + back.share) == pytest.approx(1)


@given(choices, samples())
def test_no_table_beats_the_fastest(chosen, times):
    fastest = _table(times.fastest("bcast", "whole", size) for size in SIZES)
    loss = _lost(_table(chosen), fastest, times)
    assert loss.share >= -1e-12
    assert min(loss.ratios.values()) >= 1


def test_what_may_not_serve_is_not_the_fastest():
    times = Times([measurement(1, {NATIVE: 2.0, RING: 1.0})])
    assert times.fastest("bcast", "whole", 1) == RING
    assert times.fastest("bcast", "whole", 1, lambda one: one != RING) == NATIVE
    assert times.fastest("bcast", "whole", 1, lambda _: False) is None


def test_times_of_different_protocols_are_not_compared():
    """The tree was only looked at, the ring timed in earnest, too: the looks compare."""
    times = Times(
        [
            measurement(8, {RING: 2.0, TREE: 3.0}, settle=False),
            measurement(8, {RING: (1.0, 1.0, 1.0), NATIVE: (4.0, 4.0, 4.0)}),
        ]
    )
    assert times.ratio("bcast", "whole", 8, TREE, RING) == 1.5
    assert times.ratio("bcast", "whole", 8, NATIVE, RING) == 4.0
    assert times.ratio("bcast", "whole", 8, NATIVE, TREE) is None
    assert times.fastest("bcast", "whole", 8) == RING


def test_sizes_that_were_not_timed_are_named_and_do_not_count():
    times = Times([measurement(1, {RING: 1.0, TREE: 2.0}), measurement(8, {RING: 1.0})])
    loss = lost(lambda _: TREE, lambda _: RING, times, "bcast", "whole")
    assert (loss.share, loss.unmeasured) == (1.0, (8,))
    assert Loss({}, (8,)).share is None
    assert total([Loss({}, (8,))]) is None
    assert total([Loss({}, (8,)), loss]) == pytest.approx(1.0)


def test_the_log_of_a_tuning_has_the_times_of_each_of_its_tables():
    """The generated reference folder: the names in the log fit those of the tables."""
    topology = load_topology(REFERENCE / "topology.yaml")
    table = DecisionTable.from_json(json.loads((REFERENCE / "decision.json").read_text()))
    header, records = read_log(REFERENCE / "measurements.jsonl")
    times = Times(Measurement.from_json(r) for r in records if r["kind"] == "measurement")
    measured = names_of_tables(topology, Options.from_json(header).communicators)
    for collective, *of_table in by_key(table):
        assert (collective, measured[tuple(of_table)]) in times.places


def test_a_key_stands_for_the_table_of_the_measured_shape():
    own = Table.exactly("bcast", "hosts", 4, 4, (Rule(0, RING),))
    near = replace(own, rules=(Rule(0, NATIVE),), confirmed=False)
    decision = DecisionTable("c", "0" * 64, "1" * 64, True, (own, near))
    assert by_key(decision) == {("bcast", "hosts", 4, 4): own}
    alone = replace(decision, tables=(near,))
    assert by_key(alone) == {("bcast", "hosts", 4, 4): near}
