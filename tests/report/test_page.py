"""The page of a tuning says where its times were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.report.page import render_report
from stagegen.tune.decision import DecisionTable
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
