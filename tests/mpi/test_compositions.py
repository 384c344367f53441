"""Compositions give native's bytes, whatever serves their parts, with any MPI library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.audit import audit_folder
from stagegen.catalogue import Algorithm, Part
from stagegen.errors import ScheduleError
from stagegen.generate import (
    Renderer,
    Toolchain,
    measuring_sources,
    run_make,
    session_build,
    write_files,
)
from stagegen.library import write_library
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.live import start_session
from stagegen.measure.records import Bound, Candidate
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.candidates import default_candidate
from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

COMPOSITIONS = tuple(a for a in support.CATALOGUE.algorithms if a.parts)

#: What serves parts here: of each collective one that does not reorder operands if there are any,
#: one that does, and one that follows the hosts.
SERVING = {
    "allgather": ("bruck", "logical_ring_lr1"),
    "allgatherv": ("recursive_doubling", "logical_ring_lr1"),
    "allreduce": ("recursive_doubling", "rab1_bruck", "logical_ring_lr1"),
    "alltoall": ("bruck", "aapc_sender"),
    "alltoallv": ("throttled_spreading", "ring"),
    "bcast": ("knomial", "topology_kary"),
    "gather": ("binomial", "topology_linear"),
    "reduce": ("knomial", "binomial", "topology_linear"),
    "reduce_scatter": ("pairwise", "circulant", "logical_ring"),
    "reduce_scatter_block": ("recursive_halving", "ring", "logical_ring"),
    "scatter": ("binomial", "topology_linear"),
}
TURNS = 3
RANKS = 4


def serves(part: Part, turn: int) -> Algorithm:
    names = SERVING[part.collective]
    return support.CATALOGUE.find(part.collective, names[turn % len(names)])


def bound(algorithm: Algorithm, turn: int) -> Candidate:
    """The composition with other routines for its parts in each turn."""
    parts = (
        Bound(part.collective, default_candidate(serves(part, turn + number)))
        for number, part in enumerate(algorithm.parts)
    )
    return Candidate(algorithm.name, (), tuple(parts))


@lru_cache
def some():
    """Compositions, and what serves their parts."""
    own = [serves(part, turn) for a in COMPOSITIONS for part in a.parts for turn in range(TURNS)]
    return support.few([*COMPOSITIONS, *own])


@pytest.fixture(scope="module")
def session(tmp_path_factory) -> Path:
    topology, catalogue = support.cluster(6), some()
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash)
    path = tmp_path_factory.mktemp("session")
    write_files(path, measuring_sources(session_build(topology, catalogue), renderer))
    run_make(path, support.toolchain())
    return path


@pytest.mark.parametrize("ranks", [2, 3, 6])
def test_a_session_checks_and_times_them_with_their_parts(session, tmp_path, ranks):
    process, _ = start_session(
        LocalLauncher(), support.cluster(ranks), session / "session", tmp_path
    )
    with closing(process) as talk:
        for collective in sorted({a.collective for a in COMPOSITIONS}):
            own = [a for a in COMPOSITIONS if a.collective == collective]
            candidates = [bound(a, turn) for a in own for turn in range(TURNS)]
            for check in talk.check(collective, candidates, 120):
                assert (check.wrong, check.first_wrong) == (0, ""), check.candidate.spec
                # Of fewer ranks than the cluster has, some parts cannot be served.
                assert check.cases > 10 or collective == "barrier" or ranks < 6


def test_a_session_refuses_parts_that_are_none(session):
    words = ("reduce/knomial", "bcast/knomial+reduce/knomial", "reduce/knomial+bcast/none", "bcast",
             "reduce/knomial+bcast/knomial+bcast/knomial")  # fmt: skip
    process, _ = start_session(LocalLauncher(), support.cluster(1), session / "session", session)
    with closing(process):
        for word in words:
            command = f"check allreduce of_reduce_and_bcast+{word}\n"
            process._stdin.write(command.encode())
            process._stdin.flush()
            assert "unknown routine" in process._answer("", 30)["error"], word
            assert process._answer("", 30) == {"done": True}


def rules(collective: str, ranks: int) -> Iterator[Rule]:
    """A composition for each range of sizes: a part's routine may not do all calls."""
    own = [a for a in COMPOSITIONS if a.collective == collective]
    for number, algorithm in enumerate(own or [support.CATALOGUE.find(collective, "native")]):
        start = support.STEP * number
        yield Rule(start, bound(algorithm, number), (start - 1, start) if number else None)


@lru_cache
def library(mpi: builds.Mpi) -> Path:
    """A library whose rules have compositions with parts."""
    folder = support.scratch() / f"compositions-{mpi.mpicc.replace('/', '-')}"
    topology = support.cluster(RANKS)
    tables = tuple(
        Table.exactly(name, "cluster", RANKS, RANKS, tuple(rules(name, RANKS)))
        for name in support.CATALOGUE.collectives
    )
    decision = DecisionTable(topology.name, topology.hash, some().hash, False, tables)
    write_library(folder, topology, support.CATALOGUE, decision, {})
    run_make(folder, Toolchain(mpi.mpicc, support.toolchain().make), "libcoll.a")
    return folder


MPIS = {
    "wheel": builds.Mpi.of_environment,
    "mpich": lambda: builds.Mpi.of_system("mpich"),
    "openmpi": lambda: builds.Mpi.of_system("openmpi"),
}


@pytest.mark.parametrize(
    "name", ["wheel", "openmpi", pytest.param("mpich", marks=pytest.mark.slow)]
)
def test_a_library_serves_calls_with_them(name):
    mpi = MPIS[name]()
    program = builds.c_program(mpi, library(mpi), "served.c")
    result = builds.run(mpi, RANKS, program, variables={"LIBCOLL_TRACE": "1"})
    assert result.returncode == 0, result.stdout + result.stderr
    served = set(re.findall(r"rank 0: (\w+) +(of_\w+) ", result.stderr))
    barriers = {("barrier", a.name) for a in COMPOSITIONS}  # whose first rule serves all
    assert served - barriers == {(a.collective, a.name) for a in COMPOSITIONS} - barriers
    assert served & barriers


#: Compositions without a reduction whose part is one that allocates by the size of an element.
OF_ELEMENTS = {
    "barrier": ("of_allreduce", "allreduce", "logical_ring_lr1"),
    "gather": ("of_reduce", "reduce", "topology_linear"),
    "allgather": ("of_allreduce", "allreduce", "rab1_bruck"),
}


def test_types_that_say_nothing_on_some_ranks_are_not_asked():
    """What a part allocates follows from bytes there."""
    mpi = MPIS["wheel"]()

    def tables(topology, catalogue):
        for table in support.tables(topology, catalogue):
            if table.collective not in OF_ELEMENTS:
                yield table
                continue
            name, part, routine = OF_ELEMENTS[table.collective]
            of_part = Bound(part, default_candidate(support.CATALOGUE.find(part, routine)))
            yield replace(table, rules=(Rule(0, Candidate(name, (), (of_part,))),))

    folder = builds.of_catalogue(mpi, RANKS, "of elements", some(), tables=tables)
    program = builds.c_program(mpi, folder, "unset_types.c")
    result = builds.run(mpi, RANKS, program, variables={"LIBCOLL_TRACE": "1"})
    assert result.returncode == 0, result.stdout + result.stderr
    served = set(re.findall(r"rank 0: (\w+) +(of_\w+) ", result.stderr))
    assert served == {(collective, name) for collective, (name, _, _) in OF_ELEMENTS.items()}


@pytest.mark.parametrize("name", ["wheel", "openmpi"])
def test_all_calls_give_the_same_bytes_as_native(name):
    """Whatever the types and operations; MPICH 4.0 has faults of its own there."""
    mpi = MPIS[name]()
    folder = library(mpi)
    run_make(folder, Toolchain(mpi.mpicc, support.toolchain().make), "build/check")
    result = builds.run(mpi, RANKS, folder / "build" / "check", "quick", timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(rf"^{RANKS} ranks: \d+ passed, 0 failed$", result.stdout, re.MULTILINE)


def test_the_library_has_the_routines_of_the_parts_and_they_are_proven(tmp_path):
    folder = library(builds.Mpi.of_environment())
    names = {proof.routine for proof in audit_folder(folder)}
    assert {"bcast_topology_kary", "alltoall_aapc_sender", "allreduce_of_reduce_and_bcast"} <= names
    text = (folder / "src" / "rules.c").read_text()
    (arity,) = set(re.findall(r"\.arity = (\d+)", text))
    for path in folder.rglob("*"):
        if path.is_file() and "build" not in path.relative_to(folder).parts:
            copy = tmp_path / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    damaged = text.replace(f".arity = {arity}", ".arity = 99", 1)
    (tmp_path / "src" / "rules.c").write_text(damaged)
    with pytest.raises(ScheduleError, match="arity is 99"):
        list(audit_folder(tmp_path))
