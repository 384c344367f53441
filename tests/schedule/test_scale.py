"""Nothing in making and proving schedules grows faster than it should: 256 hosts in seconds.

The limits are generous, for a busy machine; what takes cubic time more than it has to misses
them by far. ``make bench-schedule`` measures up to a thousand hosts.
"""

from __future__ import annotations

import time

import pytest

from stagegen.schedule import alltoall_schedule
from stagegen.schedule.verify import verify
from tests.strategies import make_topology

CLUSTERS = {
    "two levels": make_topology([0] + [16] * 16, [0] * 16),
    "chain": make_topology([16] * 16, list(range(15))),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_an_alltoall_of_256_hosts(name):
    topology = CLUSTERS[name]
    begin = time.process_time()
    schedule = alltoall_schedule(topology, "receiver")
    made = time.process_time()
    verify(topology, schedule)
    proven = time.process_time()
    assert made - begin < 10
    assert proven - made < 15
