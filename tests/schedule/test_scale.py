"""Making and proving schedules takes no more work than there is to do, however large the cluster.

Work is counted in lines of Python at two sizes. What NumPy does within a line is not counted: large
clusters run into the time limit of all tests if that grows much faster than it should. Nothing here
is timed; ``make bench-schedule`` measures, up to a thousand hosts and more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest

from stagegen.schedule import alltoall_schedule, broadcast_tree, logical_ring
from stagegen.schedule.verify import verify
from stagegen.topology import Topology
from tests.schedule.work import lines_of
from tests.strategies import make_topology

#: By how much the powers that are found may be above those that are expected.
SLACK = 0.3


def power(work: Callable[[int], int], size: int) -> float:
    """Return the power of the size that work grows with, from a size to twice that size."""
    return math.log2(work(2 * size) / work(size))


def making(make: Callable, shape: Callable[[int], Topology], size: int) -> int:
    """Return the work to make a schedule, and the tree of its cluster."""
    return lines_of(partial(make, shape(size)))


def proving(make: Callable, shape: Callable[[int], Topology], size: int) -> int:
    """Return the work to prove a schedule that was made."""
    topology = shape(size)
    return lines_of(partial(verify, topology, make(topology)))


def two_levels(hosts: int) -> Topology:
    """Switches with 20 hosts each around a bare one."""
    switches = hosts // 20
    return make_topology([0] + [20] * switches, [0] * switches)


def chain(hosts: int) -> Topology:
    """A row of switches with one host each."""
    return make_topology([1] * hosts, range(hosts - 1))


#: Of binary and k-ary trees one order is tried: how many more depends on what is found.
LINEAR = {
    "ring": (logical_ring, two_levels),
    "ring along a chain": (logical_ring, chain),
    "linear tree": (partial(broadcast_tree, construction="linear"), two_levels),
    "binary tree": (partial(broadcast_tree, construction="binary", orders=1), two_levels),
    "k-ary tree": (partial(broadcast_tree, construction="kary", orders=1), two_levels),
    "binomial tree": (partial(broadcast_tree, construction="binomial"), two_levels),
}


@pytest.mark.parametrize("work", [making, proving])
@pytest.mark.parametrize(("make", "shape"), LINEAR.values(), ids=LINEAR)
def test_the_work_for_rings_and_trees_grows_with_the_hosts(make, shape, work):
    assert power(partial(work, make, shape), 500) <= 1 + SLACK


def racks(hosts: int) -> Topology:
    """Eight switches with so many hosts each around a bare one."""
    return make_topology([0] + [hosts] * 8, [0] * 8)


def row(hosts: int) -> Topology:
    """Eight switches with so many hosts each in a row."""
    return make_topology([hosts] * 8, range(7))


@pytest.mark.parametrize("work", [making, proving])
@pytest.mark.parametrize("shape", [racks, row])
def test_the_work_for_an_alltoall_grows_with_its_messages(shape, work):
    """They are as many as the square of the hosts."""
    make = partial(alltoall_schedule, sync="receiver")
    assert power(partial(work, make, shape), 8) <= 2 + SLACK


CLUSTERS = {
    "two levels": make_topology([0] + [16] * 16, [0] * 16),
    "chain": make_topology([16] * 16, list(range(15))),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_an_alltoall_of_256_hosts_is_proven_to_have_the_fewest_phases(name):
    topology = CLUSTERS[name]
    proof = verify(topology, alltoall_schedule(topology, "receiver"))
    # 16 hosts on a switch and 240 elsewhere; 128 on either side of the middle.
    assert proof.phases == proof.bound_phases == {"two levels": 16 * 240, "chain": 128**2}[name]
