"""What a recording's communicators are for tuning: the cluster, a group, some hosts, or others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.recording.model import Communicator
from stagegen.recording.profile import profile_of
from stagegen.topology import Group, Topology
from stagegen.tune.recorded_program import trace_form
from tests.mpi import support
from tests.recording import made

RANKS = 6


def topology(slots: int = 1) -> Topology:
    """A cluster of so many ranks per host, with a group of its first two hosts."""
    return replace(support.cluster(RANKS, slots), groups=(Group("two", ("n0", "n1")),))


def recording(parts: list[tuple[int, ...]], hosts: list[str]):
    """A recording in which each part of the ranks makes one call."""
    whole = made.recording([made.Call("alltoall", (0.0,) * RANKS, (1.0,) * RANKS)], size=RANKS)
    ranks = [replace(rank, host=host) for rank, host in zip(whole.ranks, hosts, strict=True)]
    for number, part in enumerate(parts):
        for rank in part:
            ranks[rank] = replace(ranks[rank], communicators=(number,))
    silent = set(range(RANKS)) - {rank for part in parts for rank in part}
    for rank in silent:
        ranks[rank] = replace(ranks[rank], events=ranks[rank].events[:0])
    communicators = tuple(Communicator(part, (), 0) for part in parts)
    return replace(whole, communicators=communicators, ranks=tuple(ranks))


def kinds(parts, hosts, slots=1):
    """Return communicator, ranks and hosts of each entry of the histogram."""
    calls = trace_form(profile_of(recording(parts, hosts)), topology(slots))["calls"]
    return sorted((one["communicator"], one["ranks"], one["hosts"]) for one in calls)


OWN = [f"n{rank}" for rank in range(RANKS)]
PAIRS = [f"n{rank // 2}" for rank in range(RANKS)]
ALL = tuple(range(RANKS))


@pytest.mark.parametrize(
    ("parts", "hosts", "slots", "found"),
    [
        ([ALL], OWN, 1, ("cluster", 6, 6)),
        ([ALL], [name.upper() for name in OWN], 1, ("cluster", 6, 6)),
        ([ALL], PAIRS, 2, ("cluster", 6, 3)),
        ([ALL], PAIRS, 1, ("hosts", 6, 3)),
        ([(1, 0)], OWN, 1, ("group two", 2, 2)),
        ([(0, 1, 2, 3)], PAIRS, 2, ("group two", 4, 2)),
        ([(0, 2)], PAIRS, 2, ("hosts", 2, 2)),
        ([(1, 2)], OWN, 1, ("hosts", 2, 2)),
        ([(2, 3)], PAIRS, 2, ("one-host", 2, 1)),
        ([(0, 1)], ["x", "y", *OWN[2:]], 1, ("other", 2, None)),
        ([(0, 1)], ["x", "x", *OWN[2:]], 1, ("one-host", 2, 1)),
        ([ALL], [f"{name}.cluster.example" for name in OWN], 1, ("cluster", 6, 6)),
    ],
)
def test_the_kind_of_a_communicator_is_that_of_its_hosts(parts, hosts, slots, found):
    assert kinds(parts, hosts, slots) == [found]


def test_no_table_serves_an_intercommunicator():
    """Its ranks are those of both groups, and these are on all hosts of the cluster."""
    whole = recording([ALL], OWN)
    halves = Communicator(ALL[:3], ALL[3:], 0), Communicator(ALL[3:], ALL[:3], 0)
    calls = trace_form(profile_of(replace(whole, communicators=halves[:1])), topology())["calls"]
    assert [(one["communicator"], one["hosts"]) for one in calls] == [("other", None)]


@pytest.mark.parametrize("changes", [{"size": 1 << 31}, {"collective": "alltoallw"}])
def test_calls_that_the_library_leaves_to_mpi_count_as_what_no_table_serves(changes):
    """Else the summary would say that tuning covers all of the program's time."""
    found = profile_of(recording([ALL], OWN))
    (row,) = found.by_hosts
    more = replace(found, by_hosts=(row, replace(row, **changes)))
    calls = trace_form(more, topology())["calls"]
    assert [(one["communicator"], one["hosts"]) for one in calls] == [
        ("cluster", 6),
        ("other", None),
    ]


def test_the_blocks_of_an_alltoallv_are_known():
    found = profile_of(recording([ALL], OWN))
    (row,) = found.by_hosts
    more = replace(found, by_hosts=(replace(row, collective="alltoallv", size=1 << 20),))
    assert [one["bytes"] for one in trace_form(more, topology())["calls"]] == [1 << 20]


def test_communicators_of_as_many_hosts_are_told_apart_by_their_names():
    """The profile has one row of them; the histogram has an entry for each set of hosts."""
    hosts = [*OWN[:4], "x", "y"]
    parts = [(0, 1), (2, 3), (4, 5)]
    assert kinds(parts, hosts) == [("group two", 2, 2), ("hosts", 2, 2), ("other", 2, None)]
    profile = profile_of(recording(parts, hosts))
    assert [row.calls for row in profile.rows] == [3]
    assert [row.calls for row in profile.by_hosts] == [1, 1, 1]
