"""Trees of large clusters: within their time, verified."""

from __future__ import annotations

import time

import pytest

from stagegen.schedule import broadcast_tree
from stagegen.schedule.verify import verify
from tests.strategies import make_topology


def two_levels(switches: int, hosts: int):
    """Switches with so many hosts each around a bare one."""
    return make_topology([0] + [hosts] * switches, [0] * switches)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "switches", "hosts", "seconds"),
    [
        ("linear", 1563, 64, 5),
        ("binary", 64, 16, 1),
        ("binary", 625, 16, 20),
        ("kary", 625, 16, 20),
        ("binomial", 625, 16, 20),
    ],
)
def test_time(kind, switches, hosts, seconds):
    topology = two_levels(switches, hosts)
    started = time.process_time()
    tree = broadcast_tree(topology, 5, kind)
    assert time.process_time() - started < seconds
    verify(topology, tree)
    assert time.process_time() - started < seconds


@pytest.mark.slow
def test_a_long_chain_is_no_recursion():
    topology = make_topology([1] * 1500, range(1499))
    for kind in ("linear", "binary"):
        verify(topology, broadcast_tree(topology, 700, kind, orders=2))
