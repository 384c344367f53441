"""Trees of large clusters are proven. How the work grows is counted in `test_scale.py`."""

from __future__ import annotations

import pytest

from stagegen.schedule import broadcast_tree
from stagegen.schedule.verify import verify
from tests.strategies import make_topology


def two_levels(switches: int, hosts: int):
    """Switches with so many hosts each around a bare one."""
    return make_topology([0] + [hosts] * switches, [0] * switches)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("construction", "switches", "hosts"),
    [
        ("linear", 1563, 64),
        ("binary", 64, 16),
        ("binary", 625, 16),
        ("kary", 625, 16),
        ("binomial", 625, 16),
    ],
)
def test_a_tree_of_many_hosts_is_proven(construction, switches, hosts):
    topology = two_levels(switches, hosts)
    verify(topology, broadcast_tree(topology, 5, construction))


@pytest.mark.slow
def test_a_long_chain_is_no_recursion():
    topology = make_topology([1] * 1500, range(1499))
    for construction in ("linear", "binary"):
        verify(topology, broadcast_tree(topology, 700, construction, orders=2))
