"""All ranks of the topology, in any order, get its routines; other communicators get others."""

from __future__ import annotations

import random

import pytest

from tests.mpi import support

pytestmark = pytest.mark.mpi

RANKS = 4
HOSTS = [f"n{i}" for i in range(RANKS)]
ORDERS = {
    "as in the file": HOSTS,
    "reversed": HOSTS[::-1],
    "rotated": HOSTS[2:] + HOSTS[:2],
    "random": random.Random(7).sample(HOSTS, RANKS),
    "whole names": [f"{host}.cluster.example" for host in HOSTS],
    "in capitals": [host.upper() for host in HOSTS],
}
#: Hosts of the ranks, and the kind of tables that serve them.
OTHERS = {
    "one host twice": ([*HOSTS[:-1], HOSTS[0]], "hosts"),
    "a stranger": ([*HOSTS[:-1], "n99"], "other"),
    "two strange hosts": (["n98", "n99"] * (RANKS // 2), "other"),
}
#: Of rules that were measured over a network, none serves these.
ONE_HOST = {
    "of the cluster": [HOSTS[2]] * RANKS,
    "by two names": [HOSTS[2], f"{HOSTS[2].upper()}.cluster.example"] * (RANKS // 2),
    "strange": ["n99"] * RANKS,
    "strange, by two names": ["n99", "N99"] * (RANKS // 2),
}


def choices(hosts: list[str], variables: dict[str, str] | None = None) -> dict[str, set[str]]:
    """Return, by communicator, which routines serve."""
    program = support.compiled("choices.c", RANKS)
    collectives = support.CATALOGUE.collectives
    result = support.run(RANKS, program, *collectives, hosts=hosts, variables=variables)
    assert result.returncode == 0, result.stdout + result.stderr
    found: dict[str, set[str]] = {}
    for line in result.stdout.splitlines():
        name, collective, _, algorithm = line.split()
        found.setdefault(name, set()).add(f"{collective}_{algorithm}")
    return found


def routines(kind: str) -> set[str]:
    """The routines of all rules; collectives with one rule have but the first."""
    topology, found = support.cluster(RANKS), set()
    for one in support.CATALOGUE.described:
        serving = support.serving(topology, one.name, kind)
        found |= {a.routine for a in (serving[:1] if one.has_one_rule else serving)}
    return found


NATIVE = {f"{name}_native" for name in support.CATALOGUE.collectives}


@pytest.mark.parametrize("hosts", ORDERS.values(), ids=ORDERS)
def test_any_order_of_the_hosts_is_the_cluster(hosts):
    found = choices(hosts)
    assert found["world"] == found["reversed"] == routines("cluster")
    assert found["part"] == NATIVE  # nothing was tuned for three ranks
    assert found["self"] == NATIVE


@pytest.mark.parametrize(("hosts", "kind"), OTHERS.values(), ids=OTHERS)
def test_other_hosts_are_not_the_cluster(hosts, kind):
    found = choices(hosts)
    assert found["world"] == found["reversed"] == routines(kind)


@pytest.mark.parametrize("hosts", ONE_HOST.values(), ids=ONE_HOST)
def test_ranks_that_share_a_host_are_not_served_by_rules_of_the_network(hosts):
    assert choices(hosts)["world"] == NATIVE
    forced = choices(hosts, {"LIBCOLL_FORCE": "bcast=binomial"})
    assert forced["world"] == {*NATIVE, "bcast_binomial"} - {"bcast_native"}


def test_disabled_is_native_everywhere():
    assert choices(HOSTS, {"LIBCOLL_DISABLE": "1"})["world"] == NATIVE


@pytest.mark.parametrize(
    "name",
    [
        "random",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("rotated", "reversed")),
    ],
)
def test_results_are_right_in_any_order(name):
    program = support.library(RANKS) / "build" / "check"
    result = support.run(RANKS, program, "quick", hosts=ORDERS[name])
    assert result.returncode == 0, result.stdout + result.stderr
    assert ", 0 failed" in result.stdout
