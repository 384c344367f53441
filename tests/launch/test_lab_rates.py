"""The lab's links are as fast as the topology says, and shared where it says so.

What else runs on the machine takes rate from a link and never gives it any. So no attempt may be
faster than the link, and one attempt of several must reach what the link gives by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.alone, pytest.mark.lab, pytest.mark.mpi]

FLOWS = Path(__file__).with_name("flows.py")
RATE = 10e6  # of every link, in bit/s
SECONDS = "1.5"
ATTEMPTS = 12
Rates = dict[str, float]


@pytest.fixture
def attempts(run) -> Callable[[str, Callable[[Rates], bool]], list[Rates]]:
    """Stream between ranks at the same time until the rates, as parts of a link's, satisfy."""

    def stream(pairs: str, satisfy: Callable[[Rates], bool]) -> list[Rates]:
        seen: list[Rates] = []
        while len(seen) < ATTEMPTS:
            status, lines = run(sys.executable, str(FLOWS), pairs, SECONDS, "n0,n1,n2,n3")
            assert status == 0
            seen.append({line.split()[0]: float(line.split()[1]) / RATE for line in lines})
            if satisfy(seen[-1]):
                return seen
        pytest.fail(f"no attempt reached the rates: {seen}")

    return stream


@pytest.mark.parametrize("pair", ["0:1", "0:3"])
def test_one_flow_has_a_link_to_itself(attempts, pair):
    seen = attempts(pair, lambda rates: rates[pair] >= 0.88)
    assert max(rates[pair] for rates in seen) <= 1.0


def test_two_flows_share_the_link_between_the_switches(attempts):
    seen = attempts("0:2,1:3", lambda r: sum(r.values()) >= 0.85 and min(r.values()) >= 0.2)
    assert max(sum(rates.values()) for rates in seen) <= 1.05


def test_directions_and_other_links_are_apart(attempts):
    # Acknowledgements wait behind data of the other direction, but no flow has to share a link.
    seen = attempts("0:1,1:0,2:3", lambda rates: min(rates.values()) >= 0.65)
    assert max(max(rates.values()) for rates in seen) <= 1.0
