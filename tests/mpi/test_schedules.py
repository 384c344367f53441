"""Routines made from schedules, with every value of their parameters, on clusters of all kinds.

All sends are synchronous. Each routine is compared with the MPI library's own on derived types,
in place, and with different types on the two sides; see `drivers/conformance.c`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest

from stagegen.catalogue import applicable
from stagegen.catalogue.algorithm import NATIVE
from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.records import Candidate
from stagegen.topology import Topology, load_topology
from tests.mpi import support

pytestmark = pytest.mark.mpi

#: By name; what routines each adds to those of the others.
CLUSTERS = {
    "several ranks on a host, fast uplinks": """
        switches: {s0: {hosts: "n[0-1]"}, s1: {hosts: "n[2-3]"}}
        links: [{ends: [s0, s1], bandwidth: 3Gbit}]
        hosts: {n0: {slots: 2}, n3: {slots: 2}}
        ranks: cyclic
    """,
    "a slow link in a chain of hosts": """
        switches: {s0: {hosts: [n0]}, s1: {hosts: [n1]}, s2: {hosts: [n2]}, s3: {hosts: [n3, n4]}}
        links: [{ends: [s0, s1]}, {ends: [s1, s2], bandwidth: 300Mbit}, {ends: [s2, s3]}]
    """,
    "two hops around three switches": """
        switches: {s0: {hosts: "n[0-1]"}, s1: {hosts: "n[2-3]"}, s2: {hosts: "n[4-5]"}}
        links: [{ends: [s0, s1], count: 2}, {ends: [s0, s2]}]
        sites: {a: [s0, s1], b: [s2]}
        hosts: {n5: {bandwidth: 10Gbit}}
    """,
}
#: Bytes. Messages of the check are multiples of 24 bytes up to 16 KB, of broadcasts up to 288 KB.
SEGMENTS = (100, 5000)
SPECIFIC = [a for a in support.CATALOGUE.algorithms if a.topology_specific]
USED = {name.replace("/", "_") for algorithm in SPECIFIC for name in algorithm.uses}
FROM_SCHEDULES = support.part(
    a
    for a in support.CATALOGUE.algorithms
    if a in SPECIFIC or a.name == NATIVE or a.routine in USED
)


@lru_cache
def cluster(name: str) -> Topology:
    number = list(CLUSTERS).index(name)
    file = support.scratch() / f"cluster-{number}.yaml"
    lines = [line.strip() for line in CLUSTERS[name].strip().splitlines()]
    defaults = "defaults: {bandwidth: 1Gbit, latency: 50us}"
    file.write_text("\n".join([f"name: cluster-{number}", defaults, *lines]) + "\n")
    return load_topology(file)


@lru_cache
def session(name: str) -> Path:
    """The measuring session with the routines of schedules only, all sends synchronous."""
    topology, catalogue = cluster(name), FROM_SCHEDULES
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash)
    files = measuring_sources(session_build(topology, catalogue), renderer)
    header = support.SYNCHRONOUS
    files["Makefile"] = files["Makefile"].replace("?= -O2", f"= -O0 -include {header}")
    folder = support.scratch() / topology.name
    write_files(folder, files)
    run_make(folder, support.toolchain())
    return folder / "session"


def candidates(collective: str, topology: Topology) -> list[Candidate]:
    """Every value of every parameter, but of the sizes of segments only short ones."""
    found: list[Candidate] = []
    for algorithm in applicable(FROM_SCHEDULES, topology):
        if algorithm.collective != collective or algorithm.name == NATIVE:
            continue
        ranks = topology.rank_count
        values = {p.name: p.sample_at(0, ranks) for p in algorithm.parameters}
        if "segment_size" in values:
            values["segment_size"] = SEGMENTS
        found += (
            Candidate(algorithm.name, tuple(sorted(zip(values, choice, strict=True))))
            for choice in product(*values.values())
        )
    return found


def answers(name: str, commands: list[str]) -> list[dict[str, Any]]:
    folder = support.scratch()
    (folder / "commands").write_text("\n".join([*commands, "quit\n"]))
    with (
        (folder / "commands").open("rb") as commands_of,
        (folder / "out").open("wb") as out,
        (folder / "err").open("wb") as err,
    ):
        job = Job((str(session(name)),), {"LIBCOLL_PLACEMENT": "rank"}, (),
                  streams=Streams(commands_of, out, err))  # fmt: skip
        with LocalLauncher().start(job, cluster(name)) as running:
            status = running.wait(240)
    assert status == 0, (folder / "err").read_text()
    return [json.loads(line) for line in (folder / "out").read_text().splitlines()]


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_value_of_every_parameter_gives_the_bytes_of_native(name):
    specs = {
        collective: [candidate.spec for candidate in candidates(collective, cluster(name))]
        for collective in FROM_SCHEDULES.collectives
    }
    commands = ["hello"] + [f"check {c} {' '.join(each)}" for c, each in specs.items()]
    hello, *checks = [a for a in answers(name, commands) if a != {"done": True}]
    assert hello["kind"] == "cluster"
    assert [check["routine"] for check in checks] == list(chain.from_iterable(specs.values()))
    with_data = sum(map(len, specs.values())) - len(specs["barrier"])
    assert sum(check["cases"] > 20 for check in checks) >= with_data
    assert all(check["cases"] > 0 for check in checks)
    assert {c["routine"]: c["first_wrong"] for c in checks if c["wrong"]} == {}


def test_the_clusters_have_every_routine_together():
    found = {a.routine for name in CLUSTERS for a in applicable(FROM_SCHEDULES, cluster(name))}
    assert found == {a.routine for a in FROM_SCHEDULES.algorithms}
