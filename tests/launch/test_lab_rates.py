"""The lab's links are as fast as the topology says, and shared where it says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.mpi]

FLOWS = Path(__file__).with_name("flows.py")
RATE = 10e6  # of every link, in bit/s
SECONDS = "1.5"


@pytest.fixture
def flows(run):
    """Stream between ranks at the same time; return the rates as parts of a link's."""

    def stream(pairs: str) -> dict[str, float]:
        status, lines = run(sys.executable, str(FLOWS), pairs, SECONDS, "n0,n1,n2,n3")
        assert status == 0
        return {line.split()[0]: float(line.split()[1]) / RATE for line in lines}

    return stream


def test_one_flow_has_a_link_to_itself(flows):
    assert 0.88 <= flows("0:1")["0:1"] <= 1.0
    assert 0.88 <= flows("0:3")["0:3"] <= 1.0


def test_two_flows_share_the_link_between_the_switches(flows):
    rates = flows("0:2,1:3")
    assert 0.85 <= sum(rates.values()) <= 1.05
    assert min(rates.values()) >= 0.2


def test_directions_and_other_links_are_apart(flows):
    # Acknowledgements wait behind data of the other direction, but nobody has to share.
    assert min(flows("0:1,1:0,2:3").values()) >= 0.65
