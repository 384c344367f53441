"""The combining tree of any communicator: a barrier, along the switches, as simulated here.

The tests call the routine without a job, and it prints its tokens. So they can try many
communicators of random clusters, with any number of ranks on a host.
"""

from __future__ import annotations

import random
from collections import deque

import pytest

from stagegen.topology import Topology
from tests.mpi import support
from tests.mpi.test_places import CLUSTERS, ask, communicators, line_of, program

TREE = support.CATALOGUE.find("barrier", "combining_tree")
(ARITY,) = TREE.parameters
VALUES = ARITY.sample_at(0, 17)

Steps = list[list[int]]  # for each rank: a rank it sends a token to, or -1 - r if it waits for r


def steps_of(index: int, arity: int, asked: list[list[str]]) -> list[Steps]:
    """What every rank of the communicators does, each given as the hosts of its ranks."""
    lines = (f"{arity} {line_of(CLUSTERS[index], hosts)}" for hosts in asked)
    answers = ask(program(index, "combining.c", TREE), lines)
    told, again = answers[::2], answers[1::2]
    assert told == again, "a second barrier without the tables of the first"
    found, at = [], 0
    for hosts in asked:
        found.append(told[at : at + len(hosts)])
        at += len(hosts)
    assert at == len(told)
    return found


def run(steps: Steps) -> list[set[int]]:
    """Run a barrier with synchronous sends; return which ranks each one knows of at its end."""
    left = [deque(of) for of in steps]
    knows = [{rank} for rank in range(len(steps))]
    ready = list(range(len(steps)))
    while ready:
        rank = ready.pop()
        while left[rank] and left[rank][0] >= 0:
            other = left[rank][0]
            if not left[other] or left[other][0] != -1 - rank:
                break
            left[rank].popleft()
            left[other].popleft()
            knows[other] |= knows[rank]
            ready.append(other)
        if left[rank] and left[rank][0] < 0:
            sender = -1 - left[rank][0]
            if left[sender] and left[sender][0] == rank:
                ready.append(sender)
    assert not any(left), "ranks that wait for ever"
    return knows


def edges(steps: Steps) -> list[tuple[int, int]]:
    """The tree: (rank, its child)."""
    downwards = set()
    for rank, of in enumerate(steps):
        waited = {-1 - step for step in of if step < 0}
        sent = [step for step in of if step >= 0]
        parent = next((r for r in waited if of.index(-1 - r) > of.index(r)), None)
        downwards |= {(rank, child) for child in sent if child != parent}
    return sorted(downwards)


def switches_of(topology: Topology) -> dict[str, str]:
    return {host.name: host.switch for host in topology.hosts}


@pytest.mark.parametrize("arity", VALUES)
@pytest.mark.parametrize("index", range(len(CLUSTERS)))
def test_a_barrier_holds_all_ranks_and_follows_the_switches(index, arity):
    topology = CLUSTERS[index]
    switch = switches_of(topology)
    asked = communicators(topology, random.Random(400 + index))
    for hosts, steps in zip(asked, steps_of(index, arity, asked), strict=True):
        everyone = set(range(len(hosts)))
        assert all(knows == everyone for knows in run(steps))
        tree = edges(steps)
        assert len({child for _, child in tree}) == len(tree) == len(hosts) - 1
        between = [(hosts[one], hosts[other]) for one, other in tree]
        assert sum(a != b for a, b in between) == len(set(hosts)) - 1
        used = {switch[host] for host in hosts}
        assert sum(switch[a] != switch[b] for a, b in between) == len(used) - 1


def test_a_rank_has_up_to_as_many_children_as_the_arity():
    """20 ranks of one host reach the limit, which also holds among the hosts of a switch."""
    topology = next(t for t in CLUSTERS if any(h.slots > 2 for h in t.hosts))
    host = next(h for h in topology.hosts if h.slots > 2).name
    hosts = [host] * 20
    for arity in VALUES:
        (steps,) = steps_of(CLUSTERS.index(topology), arity, [hosts])
        below = [sum(parent == rank for parent, _ in edges(steps)) for rank in range(20)]
        assert max(below) == arity
        assert sum(below) == 19
