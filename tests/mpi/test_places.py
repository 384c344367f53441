"""Which ranks of any communicator are next to each other, compared with Python and the checker.

The tests call the library's function without a job, and give it the hosts. So they can try many
communicators of random clusters, with any number of ranks on a host.
"""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

from stagegen.catalogue import Algorithm
from stagegen.generate import Build, Renderer, write_files
from stagegen.generate.sources import runtime_sources
from stagegen.schedule import Ring, depth_first_ranks
from stagegen.schedule.verify import verify
from stagegen.topology import Group, RankMap, Topology, restricted_to
from tests.mpi import support
from tests.strategies import make_topology

OTHER, HOSTS, CLUSTER = 1, 2, 3  # of enum coll_kind
COMMUNICATORS = 150
INT_MAX = 2**31 - 1


def random_cluster(seed: int) -> Topology:
    """A tree of switches, some without hosts, some hosts with several slots or without a rank."""
    chance = random.Random(seed)
    parents = [chance.randrange(i) for i in range(1, chance.randint(1, 6))]
    counts = [chance.randint(0, 4) for _ in range(len(parents) + 1)]
    counts[chance.randrange(len(counts))] = 4
    names = [f"n{i}" for i in range(sum(counts))]
    slots = {name: chance.randint(2, 3) for name in names if chance.random() < 0.3}
    ranks = [name for name in names for _ in range(slots.get(name, 1))]
    chance.shuffle(ranks)
    topology = make_topology(counts, parents, ranks[: max(4, len(ranks) - 2)], slots)
    used = sorted(set(topology.ranks))
    groups = {frozenset(chance.sample(used, chance.randint(2, len(used) - 1))) for _ in range(2)}
    named = (Group(f"group-{i}", tuple(sorted(hosts))) for i, hosts in enumerate(groups))
    return replace(topology, groups=tuple(named))


CLUSTERS = [random_cluster(seed) for seed in range(6)]
APART = ("communicator_cache", "gpu", "hosts", "peers", "types")


@lru_cache
def program(index: int, source: str = "places.c", *algorithms: Algorithm) -> Path:
    """The program for a cluster: a file of this folder around the library's own."""
    topology, folder = CLUSTERS[index], support.scratch() / f"{Path(source).stem}-{index}"
    renderer = Renderer("a test", topology.name, topology.hash, support.CATALOGUE.hash)
    files = runtime_sources(Build.of(topology, support.CATALOGUE, algorithms), renderer)
    wanted = [
        "catalogue.h",
        "coll.h",
        "persistent.h",
        "cluster.c",
        "communicator.c",
        *(f"{name}.c" for name in APART),
    ]
    wanted += [f"{algorithm.routine}.c" for algorithm in algorithms]
    write_files(folder, {name: files[name] for name in wanted})
    apart = [str(folder / f"{name}.c") for name in ("cluster", *APART)]
    sources = [str(support.HERE / source), *apart]
    command = [support.toolchain().mpicc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
    command += ["-Werror", "-g", f"-I{folder}", *sources, "-pthread", "-o", str(folder / "program")]
    subprocess.run(command, check=True)
    return folder / "program"


@dataclass(frozen=True)
class Told:
    """What the program prints about a communicator."""

    kind: int
    group: int
    hosts: int
    order: list[int]
    place_of: list[int]
    first_place: list[int]
    depth_before: list[int]
    host_of: list[int]
    rank_of: list[int]
    position_of: list[int]


def told(index: int, communicators: list[list[str | None]]) -> list[Told]:
    """Ask for communicators, each given as the hosts of its ranks."""
    lines = (line_of(CLUSTERS[index], hosts) for hosts in communicators)
    answers = ask(program(index), lines)
    return [_told(numbers, len(c)) for numbers, c in zip(answers, communicators, strict=True)]


def line_of(topology: Topology, hosts: list[str | None]) -> str:
    """The arguments that give the programs the hosts of all ranks."""
    number = {host.name: at for at, host in enumerate(topology.hosts)}
    return " ".join(map(str, [len(hosts), *(number.get(host, -1) for host in hosts)]))


def ask(program: Path, lines: Iterable[str]) -> list[list[int]]:
    answer = subprocess.run(
        [program], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=60
    )
    return [list(map(int, line.split())) for line in answer.stdout.splitlines()]


def _told(numbers: list[int], size: int) -> Told:
    (kind, group, hosts), rest = numbers[:3], numbers[3:]
    parts = []
    for length in (size, size, hosts + 1, size - 1, size, size, size):
        parts.append(rest[:length])
        rest = rest[length:]
    assert not rest
    return Told(kind, group, hosts, *parts)


def communicators(topology: Topology, chance: random.Random) -> list[list[str]]:
    """Random ranks on the cluster's hosts; some are a group's, some the whole cluster's."""
    names = [host.name for host in topology.hosts]
    some = [
        [chance.choice(chance.sample(names, min(len(names), 5))) for _ in range(size)]
        for size in (chance.randint(2, 20) for _ in range(COMMUNICATORS))
    ]
    subsets = [chance.sample(names, chance.randint(2, len(names))) for _ in range(COMMUNICATORS)]
    exact = [list(restricted_to(topology, g.hosts).ranks) for g in topology.groups] * 3
    exact += [list(topology.ranks)] * 3
    for hosts in exact:
        chance.shuffle(hosts)
    return [*some, *subsets, *exact]


def group_of(topology: Topology, hosts: list[str]) -> int:
    wanted = [topology.ranks, *(restricted_to(topology, g.hosts).ranks for g in topology.groups)]
    return next((k for k, ranks in enumerate(wanted) if Counter(ranks) == Counter(hosts)), -1)


@pytest.mark.parametrize("index", range(len(CLUSTERS)))
def test_any_ranks_are_ordered_by_their_hosts(index):
    topology = CLUSTERS[index]
    names = tuple(dict.fromkeys((*topology.ranks, *(host.name for host in topology.hosts))))
    everyone = replace(topology, rank_map=RankMap("list", names), groups=())
    around = [names[rank] for rank in depth_first_ranks(everyone)]
    asked = communicators(topology, random.Random(index))
    groups = Counter()
    for hosts, found in zip(asked, told(index, asked), strict=True):
        size, here = len(hosts), sorted(set(hosts), key=around.index)
        order = [rank for host in here for rank in range(size) if hosts[rank] == host]
        assert found.order == order
        assert [found.order[place] for place in found.place_of] == list(range(size))
        assert found.hosts == len(here)
        assert found.first_place == [
            sum(hosts.count(h) for h in here[:i]) for i in range(len(here) + 1)
        ]
        assert found.host_of == [here.index(host) for host in hosts]
        assert found.group == group_of(topology, hosts)
        assert found.kind == (HOSTS if found.group < 0 else CLUSTER)
        groups[found.group] += 1
    assert set(groups) == {-1, 0, *range(1, len(topology.groups) + 1)}


@pytest.mark.parametrize("index", range(len(CLUSTERS)))
def test_the_order_is_free_of_contention_as_the_checker_sees_it(index):
    """Around it no edge is used twice, whichever the ranks are: the lemma of docs/theory.md."""
    topology = CLUSTERS[index]
    asked = communicators(topology, random.Random(100 + index))
    for hosts, found in zip(asked, told(index, asked), strict=True):
        seen = replace(topology, rank_map=RankMap("list", tuple(hosts)), groups=())
        pairs = zip(found.order, [*found.order[1:], found.order[0]], strict=True)
        hops = max(seen.hops(one, other) for one, other in pairs)
        proof = verify(seen, Ring(seen.ranks, "lr1", tuple(found.order), hops))
        assert "no network edge is used more than once" in proof.checked


@pytest.mark.parametrize("index", range(len(CLUSTERS)))
def test_places_meet_at_their_lowest_common_ancestor(index):
    """At their common ancestor in the tree that hangs on the switch of the first host."""
    topology = CLUSTERS[index]
    tree = nx.Graph(link.ends for link in topology.links)
    tree.add_edges_from((host.name, host.switch) for host in topology.hosts)
    everyone = tuple(dict.fromkeys((*topology.ranks, *(host.name for host in topology.hosts))))
    (root,) = tree[everyone[0]]
    hanging = nx.bfs_tree(tree, root)
    depth = nx.single_source_shortest_path_length(hanging, root)
    asked = communicators(topology, random.Random(300 + index))
    for hosts, found in zip(asked, told(index, asked), strict=True):
        for pair, said in zip(pairwise(found.order), found.depth_before, strict=True):
            one, other = (hosts[rank] for rank in pair)
            above = nx.lowest_common_ancestor(hanging, one, other)
            assert said == (INT_MAX if one == other else depth[above])


@pytest.mark.parametrize("index", range(len(CLUSTERS)))
def test_ranks_of_a_group_take_the_positions_of_their_hosts(index):
    topology = CLUSTERS[index]
    wholes = [topology, *(restricted_to(topology, group.hosts) for group in topology.groups)]
    asked = communicators(topology, random.Random(200 + index))
    for hosts, found in zip(asked, told(index, asked), strict=True):
        if found.kind != CLUSTER:
            assert found.rank_of == found.position_of == []
            continue
        assert [hosts[rank] for rank in found.rank_of] == list(wholes[found.group].ranks)
        assert [found.rank_of[p] for p in found.position_of] == list(range(len(hosts)))
        for host in set(hosts):
            positions = [p for rank, p in enumerate(found.position_of) if hosts[rank] == host]
            assert positions == sorted(positions)


def test_a_rank_on_an_unknown_host_leaves_only_the_number_of_hosts_known():
    topology = CLUSTERS[0]
    hosts = list(topology.ranks)
    strangers = [[*hosts[:at], None, *hosts[at + 1 :]] for at in range(len(hosts))]
    for row, found in zip(strangers, told(0, strangers), strict=True):
        assert (found.kind, found.group, found.hosts) == (OTHER, -1, len(set(row)))
        assert found.order == found.place_of == found.depth_before == []


def test_more_ranks_on_a_host_than_it_has_slots_are_ordered_too():
    topology = CLUSTERS[1]
    host = topology.hosts[0]
    hosts = [*topology.ranks, *[host.name] * (host.slots + 1)]
    assert hosts.count(host.name) > host.slots
    (found,) = told(1, [hosts])
    assert (found.kind, found.group) == (HOSTS, -1)
    assert len(found.order) == len(hosts)
