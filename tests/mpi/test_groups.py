"""Communicators of some ranks of a cluster: groups of the topology file, and any others.

A library for a chain of three switches, with two ranks on some hosts and two groups, has every
routine that needs to know where ranks are. Each communicator gets those that fit it, and they do
what the MPI library does.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.catalogue import Algorithm, applicable, groups_of, runnable
from stagegen.catalogue.algorithm import NATIVE
from stagegen.generate import run_make
from stagegen.library import write_library
from stagegen.topology import Group, Site, Topology
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.ranges import of_all_shapes
from stagegen.tune.search import default_candidate
from tests.mpi import support
from tests.strategies import make_topology

pytestmark = pytest.mark.mpi

OTHER, HOSTS, CLUSTER = 1, 2, 3  # of enum coll_kind

#: Ranks in turn on the switches, so that no order is depth-first by chance.
RANKS = ["n0", "n2", "n4", "n1", "n3", "n5", "n0", "n3"]
TOPOLOGY = replace(
    make_topology([2, 2, 2], [0, 1], RANKS, {"n0": 2, "n3": 2}),
    groups=(Group("left", ("n3", "n0", "n2")), Group("ends", ("n0", "n4", "n5", "n1"))),
    sites=(Site("ends", ("s0", "s2")), Site("middle", ("s1",))),
)

#: By name: the ranks of MPI_COMM_WORLD, in order, then the kind and group of the communicator.
COMMUNICATORS: dict[str, tuple[list[int], int, int]] = {
    "all, reversed": (list(range(8))[::-1], CLUSTER, 0),
    "the first group": ([0, 1, 4, 6, 7], CLUSTER, 1),
    "the first group, shuffled": ([7, 0, 6, 1, 4], CLUSTER, 1),
    "the second group": ([2, 6, 5, 3, 0], CLUSTER, 2),
    "a group without one of its ranks": ([0, 1, 4, 7], HOSTS, -1),
    "one rank of each switch": ([5, 3, 1], HOSTS, -1),
    "several ranks on a host": ([7, 6, 4, 0, 3], HOSTS, -1),
    "one host only": ([6, 0], HOSTS, -1),
}


def fits(topology: Topology, ranks: list[int], kind: int, group: int) -> dict[tuple[str, str], int]:
    """The routines that need a topology and can serve these ranks, with whose tables."""
    hosts = [RANKS[rank] for rank in ranks]
    numbers = {
        "leaders": {host: host for host in hosts},
        "switches": topology.switch_numbers,
        "sites": topology.site_numbers,
    }
    divided = {
        need: 1 < len({number[host] for host in hosts}) < len(hosts)
        for need, number in numbers.items()
    }
    found = {}
    for algorithm in _algorithms(topology):
        name = (algorithm.collective, algorithm.name)
        level = "leaders" if algorithm.serves_other_hosts else algorithm.needs
        if algorithm.needs == "order" or divided.get(level):
            found[name] = max(group, 0) if algorithm.serves_other_hosts else 0
        elif algorithm.has_tables and kind == CLUSTER:
            own = groups_of(topology)[group].topology
            if algorithm.routine in {a.routine for a in applicable(support.CATALOGUE, own)}:
                found[name] = group
    powers = {(a.collective, a.name) for a in _algorithms(topology) if not a.works_for(len(ranks))}
    return {name: number for name, number in found.items() if name not in powers}


def _algorithms(topology: Topology):
    return [a for a in runnable(support.CATALOGUE, topology) if a.topology_specific]


def _rules(topology: Topology) -> Iterator[Table]:
    """For groups a schedule with tables, for other ranks the order: one rule for every size."""
    wanted: Mapping[str, tuple[str, str]] = {
        "alltoall": ("aapc_sender", "hierarchical_ring"),
        "bcast": ("topology_kary", "topology_linear"),
    }
    for collective, names in wanted.items():
        with_tables, in_order = (
            Rule(0, default_candidate(support.CATALOGUE.find(collective, name))) for name in names
        )
        kinds = ["cluster", *(f"group {group.name}" for group in topology.groups)]
        for kind, group in zip(kinds, groups_of(topology), strict=True):
            ranks = group.topology.ranks
            yield Table.exactly(collective, kind, len(ranks), len(set(ranks)), (with_tables,))
        measured = Table.exactly(collective, "hosts", 5, 3, (in_order,))
        yield from of_all_shapes(collective, [measured])


def _holding(algorithms: Iterable[Algorithm]) -> Iterator[Table]:
    """Tables that nothing uses, so that the library holds these algorithms."""
    by_collective = defaultdict(list)
    for algorithm in algorithms:
        if algorithm.name != NATIVE:
            by_collective[algorithm.collective].append(default_candidate(algorithm))
    for collective, (first, *others) in by_collective.items():
        rules = (Rule(0, first, None, tuple(others)),)
        yield Table.exactly(collective, "other", 1, 1, rules)


@lru_cache
def program() -> Path:
    """The program with a library of all routines that need a topology."""
    folder = support.scratch() / "groups"
    algorithms = [
        a
        for a in support.CATALOGUE.algorithms
        if a.topology_specific or a.name == NATIVE or a.deterministic or a.routine in _used()
    ]
    catalogue = support.part(algorithms)
    tables = (*_rules(TOPOLOGY), *_holding(runnable(catalogue, TOPOLOGY)))
    name = (TOPOLOGY.name, TOPOLOGY.hash, catalogue.hash)
    write_library(folder, TOPOLOGY, support.CATALOGUE, DecisionTable(*name, False, tables), {})
    run_make(folder, support.toolchain(), "libcoll.a")
    checks = folder / "check" / "conformance.c"
    command = [support.toolchain().mpicc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
    command += ["-Werror", "-g", f"-I{folder / 'src'}", f"-I{folder / 'include'}"]
    command += [f"-I{folder / 'check'}", str(support.HERE / "subsets.c"), str(checks)]
    command += [str(folder / "libcoll.a"), "-pthread", "-o", str(folder / "subsets")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder / "subsets"


def _used() -> set[str]:
    """The routines that routines of a topology call."""
    of = (a for a in support.CATALOGUE.algorithms if a.topology_specific)
    return {name.replace("/", "_") for algorithm in of for name in algorithm.uses}


def answers(
    names: list[str], hosts: list[str] | None = None, **variables: str
) -> dict[str, dict[str, list[list[str]]]]:
    """Run the program; by communicator and first word, the rest of each line."""
    arguments = [" ".join(map(str, COMMUNICATORS[name][0])) for name in names]
    result = support.run(len(RANKS), program(), *arguments, hosts=hosts or RANKS,
                         variables=variables, timeout=400)  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    found: dict[str, dict[str, list[list[str]]]] = {name: defaultdict(list) for name in names}
    for line in result.stdout.splitlines():
        number, what, *rest = line.split()
        found[names[int(number) - 1]][what].append(rest)
    return found


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_this_size(monkeypatch_module):
    monkeypatch_module.setattr(support, "cluster", lambda _: TOPOLOGY)


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@lru_cache
def of_all() -> dict[str, dict[str, list[list[str]]]]:
    return answers(list(COMMUNICATORS))


@pytest.mark.parametrize("name", COMMUNICATORS)
def test_each_communicator_has_the_routines_that_fit_it(name):
    ranks, kind, group = COMMUNICATORS[name]
    found = of_all()[name]
    assert found["kind"] == [[str(kind), "group", str(group)]]
    told = {(collective, algorithm): int(k) for collective, algorithm, _, k in found["routine"]}
    assert told == fits(TOPOLOGY, ranks, kind, group)


@pytest.mark.parametrize("name", COMMUNICATORS)
def test_the_rule_for_a_communicator_serves_it(name):
    ranks, kind, _ = COMMUNICATORS[name]
    choices = dict(of_all()[name]["choice"])
    hosts = {RANKS[rank] for rank in ranks}
    by_leaders = "hierarchical_ring" if 1 < len(hosts) < len(ranks) else NATIVE
    in_order = "topology_linear" if len(hosts) > 1 else NATIVE
    assert choices["alltoall"] == ("aapc_sender" if kind == CLUSTER else by_leaders)
    assert choices["bcast"] == ("topology_kary" if kind == CLUSTER else in_order)


def test_a_forced_algorithm_is_that_of_the_group():
    names = ["the first group, shuffled", "one rank of each switch"]
    found = answers(names, LIBCOLL_FORCE="alltoall=aapc_receiver_window,reduce=topology_binary")
    choices = [dict(found[name]["choice"]) for name in names]
    assert (choices[0]["alltoall"], choices[0]["reduce"]) == (
        "aapc_receiver_window",
        "topology_binary",
    )
    assert (choices[1]["alltoall"], choices[1]["reduce"]) == (NATIVE, NATIVE)


def test_with_a_strange_host_a_communicator_is_none_of_the_cluster():
    names = ["the first group", "one rank of each switch"]
    found = answers(names, ["n0", "n2", "n4", "n1", "stranger", "n5", "n0", "n3"])
    assert found["the first group"]["kind"] == [[str(OTHER), "group", "-1"]]
    assert found["the first group"]["routine"] == []
    assert found["one rank of each switch"]["kind"] == [[str(HOSTS), "group", "-1"]]


#: Other numbers of ranks on the hosts than the topology has: 3 + 1 + 2 ranks on three of them, and
#: all hosts with 2 on two.
UNEVEN = {
    "3 + 1 + 2": (["n3", "n0", "n3", "n1", "n0", "n3", "n5", "n4"], [4, 2, 3, 0, 1, 5]),
    "1 + 3 + 2, in order": (["n0", "n2", "n2", "n2", "n5", "n5", "n1", "n4"], [0, 1, 2, 3, 4, 5]),
    "all hosts": (["n5", "n1", "n0", "n1", "n4", "n3", "n2", "n4"], [6, 0, 7, 5, 1, 3, 2, 4]),
    "7 on a host, 1 on another": (["n2"] * 4 + ["n4"] + ["n2"] * 3, [7, 6, 5, 4, 3, 2, 1, 0]),
}


@pytest.mark.parametrize("name", UNEVEN)
def test_leaders_are_those_of_the_communicator_whatever_ranks_its_hosts_have(name, monkeypatch):
    hosts, ranks = UNEVEN[name]
    monkeypatch.setitem(COMMUNICATORS, name, (ranks, HOSTS, -1))
    found = answers([name], hosts)[name]
    assert found["kind"] == [[str(HOSTS), "group", "-1"]]
    served = {(collective, algorithm) for collective, algorithm, *_ in found["routine"]}
    by_leaders = {
        (a.collective, a.name)
        for a in _algorithms(TOPOLOGY)
        if a.needs == "leaders" or a.serves_other_hosts
    }
    assert len(by_leaders) >= 8
    assert by_leaders <= served
