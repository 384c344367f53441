"""The page of a tuning says where its times were measured, and what of them is not known."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Candidate, Failure
from stagegen.report.page import render_report
from stagegen.tune.decision import NATIVE_CANDIDATE, DecisionTable, Rule, Table
from stagegen.tune.field import Sample
from stagegen.tune.plan import Outcome
from stagegen.tune.shapes import Range
from stagegen.tune.tuner import Tuned
from tests.measure.fakes import ENVIRONMENT
from tests.strategies import make_topology


@pytest.mark.parametrize("emulated", [True, False])
def test_an_emulated_network_is_told_whatever_the_launcher_is_called(emulated):
    topology, catalogue = make_topology([2, 2], [0]), load_catalogue()
    decision = DecisionTable(topology.name, topology.hash, catalogue.hash, True, ())
    environment = replace(ENVIRONMENT, launcher="mine", emulated=emulated)
    page = render_report(topology, catalogue, Tuned(decision, (), ()), [environment])
    told = "through the launcher <b>mine</b> (an emulated cluster on one machine)" in page
    assert told == emulated


def page_of(
    *tables: Table, is_representative: bool = True, failures: tuple[Failure, ...] = ()
) -> str:
    """Return the page of a broadcast with these tables and one measured size."""
    topology, catalogue = make_topology([2, 2], [0]), load_catalogue()
    decision = DecisionTable(
        topology.name, topology.hash, catalogue.hash, is_representative, tables
    )
    samples = {64: {NATIVE_CANDIDATE: Sample((1e-3, 2e-3)), RING: Sample((1e-3, 1e-3))}}
    outcome = Outcome("bcast", "whole", tables[:1], samples, failures)
    return render_report(topology, catalogue, Tuned(decision, (outcome,), ()), [ENVIRONMENT])


RING = Candidate("linear")
RULES = (Rule(0, NATIVE_CANDIDATE), Rule(3000, RING, (2048, 4096)))


def test_the_page_tells_between_which_sizes_the_choice_changes():
    page = page_of(Table.exactly("bcast", "cluster", 4, 4, RULES))
    assert '<td class="l">2 KiB and 4 KiB</td>' in page
    assert '<td class="l"></td></tr>' in page, "the first rule has no crossover"


@pytest.mark.parametrize("sizes", [(), (64, 4096)])
def test_the_page_names_the_sizes_whose_times_are_not_known_well_enough(sizes):
    table = replace(Table.exactly("bcast", "cluster", 4, 4, RULES), unconverged=sizes)
    page = page_of(table)
    assert ("is not known to within the width" in page) == bool(sizes)
    assert ("64 B, 4 KiB." in page) == bool(sizes)


def test_the_page_marks_times_that_have_no_interval_of_the_width_that_was_asked_for():
    """One look is none, and two repetitions are none, however alike they are."""
    topology, catalogue = make_topology([2, 2], [0]), load_catalogue()
    table = Table.exactly("bcast", "cluster", 4, 4, RULES)
    decision = DecisionTable(topology.name, topology.hash, catalogue.hash, True, (table,))
    seen = {NATIVE_CANDIDATE: Sample((1e-3,) * 6), RING: Sample((1e-3, 1e-3))}
    outcome = Outcome("bcast", "whole", (table,), {64: seen}, (), 0.02)
    page = render_report(topology, catalogue, Tuned(decision, (outcome,), ()), [ENVIRONMENT])
    marks = re.findall(
        r'<tr><td class="l">(\w+)</td>.*?<td class="l">([^<]*)</td></tr>', page, re.S
    )
    assert {name: mark for name, mark in marks if name in ("native", "linear")} == {
        "native": "",
        "linear": "not within 2 %",
    }


def test_the_page_shows_once_what_serves_the_measured_shape_and_those_nearby():
    own = Table.exactly("bcast", "hosts", 4, 4, RULES)
    near = replace(own, hosts=Range(2, None), confirmed=False)
    same = " ".join(page_of(own, near).split())
    assert "2 or more hosts: measured with 4x1, else predicted and not confirmed" in same
    assert "4 hosts: measured<" not in same
    weaker = " ".join(page_of(own, replace(near, rules=RULES[:1])).split())
    assert "1 ranks on each of 4 hosts: measured<" in weaker
    assert "2 or more hosts: predicted from 4x1, not confirmed" in weaker


@pytest.mark.parametrize("is_representative", [True, False])
def test_the_page_warns_of_times_of_another_machine(is_representative):
    table = Table.exactly("bcast", "cluster", 4, 4, RULES)
    page = page_of(table, is_representative=is_representative)
    assert ("Not representative: these times are of the machine" in page) != is_representative


@pytest.mark.parametrize("in_check", [True, False])
def test_the_page_says_whether_a_routine_failed_its_check_or_when_it_was_timed(in_check):
    why = "wrong: it hung" if in_check else "it hung"
    failure = Failure("bcast", 64, RING, why, in_check=in_check)
    page = page_of(Table.exactly("bcast", "cluster", 4, 4, RULES), failures=(failure,))
    checked = "Wrong when it was checked for 64 B, never timed nor chosen: linear: it hung"
    timed = "Failed when timed at 64 B, never chosen: linear: it hung"
    assert (checked in page, timed in page) == (in_check, not in_check)
