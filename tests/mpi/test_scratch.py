"""How much memory a call takes: counted, and kept below ``LIBCOLL_SCRATCH``."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.catalogue import Catalogue, applicable
from stagegen.catalogue.algorithm import NATIVE
from stagegen.data import DRIVERS
from stagegen.generate import run_make
from stagegen.library import write_library
from stagegen.topology import Topology
from stagegen.tune.candidates import variants
from tests.mpi import support
from tests.strategies import make_topology

pytestmark = pytest.mark.mpi

#: A bound is at most so many times what the calls that were tried took, and some bytes.
LOOSE, LOOSE_BYTES = 5, 4096

#: Parts of the network may have any sizes, for which the bounds of these hold.
PARTS = ("sites", "switches")

WRAPPED = "-Wl," + ",".join(f"--wrap={name}" for name in ("malloc", "calloc", "realloc", "free"))


@lru_cache
def counter(folder: Path) -> Path:
    """The program that counts what a library's routines allocate."""
    program = folder / "build" / "scratch"
    paths = [f"-I{folder / name}" for name in ("src", "include", "check")] + [f"-I{DRIVERS}"]
    command = [support.toolchain().mpicc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-g"]
    command += ["-Werror", WRAPPED, *paths]
    command += [str(support.HERE / "scratch.c"), str(folder / "libcoll.a")]
    subprocess.run([*command, "-pthread", "-o", str(program)], check=True)
    return program


def candidates(topology: Topology, catalogue: Catalogue = support.CATALOGUE) -> list[str]:
    """Every algorithm of a library, with every value of its parameters."""
    return [
        f"{algorithm.collective}/{candidate.spec}"
        for algorithm in applicable(catalogue, topology)
        if algorithm.name != NATIVE
        for candidate in variants(algorithm, 16 * 1024, topology.rank_count)
    ]


def count(folder: Path, names: list[str], hosts: Sequence[str] | None = None, ranks: int = 0):
    """What each candidate took at each size, and may take, in bytes."""
    result = support.run(ranks or len(hosts or ()), counter(folder), *names, hosts=hosts)
    assert result.returncode == 0, result.stdout[-1000:] + result.stderr[-3000:]
    rows = [line.split() for line in result.stdout.splitlines()]
    assert {row[0] for row in rows} == set(names)
    return [(name, int(size), float(most), float(bound)) for name, size, most, bound in rows]


@pytest.mark.parametrize(
    "ranks", [3, 4, *(pytest.param(n, marks=pytest.mark.slow) for n in (6, 8))]
)
def test_no_routine_takes_more_than_it_says(ranks):
    rows = count(support.library(ranks), candidates(support.cluster(ranks)), ranks=ranks)
    of_parts = {a.full_name for a in support.CATALOGUE.algorithms if a.needs in PARTS}
    equal = [row for row in rows if row[0].partition(":")[0] not in of_parts]
    loose = [row for row in equal if LOOSE * max(row[2], 0) + LOOSE_BYTES < row[3] != float("inf")]
    assert not loose, "far more than they need"
    assert any(most > 100_000 for _, _, most, _ in rows)
    unknown = {name.partition("/")[0] for name, _, _, bound in rows if bound == float("inf")}
    assert unknown == {"alltoallv"}, "in place, where no rank knows what others have"


def test_leaders_take_no_more_than_they_say(tmp_path):
    """Leaders have memory for their hosts' ranks: here 4, 2, 1 and 1."""
    topology = make_topology([2, 2], [0], slots={"n0": 4, "n1": 2})
    needing = tuple(
        a
        for a in support.CATALOGUE.algorithms
        if a.needs in ("hosts", "leaders") or a.name == NATIVE or a.deterministic
    )
    users = {use for a in needing for use in getattr(a, "uses", ())}
    kept = (
        a for a in support.CATALOGUE.algorithms if a in needing or {a.routine, a.full_name} & users
    )
    catalogue = support.part(kept)
    assert len(catalogue.algorithms) > len(catalogue.collectives) + 3
    write_library(tmp_path, topology, catalogue, support.decision(topology, catalogue), {})
    for target in ("libcoll.a", "build/check"):
        run_make(tmp_path, support.toolchain(), target)
    rows = count(tmp_path, candidates(topology, catalogue), ranks=topology.rank_count)
    assert any(most > 100_000 for _, _, most, _ in rows)


RANKS = 3
LIMITS = {None: math.inf, "0": 0, "700": 700, "3k": 3 << 10, "1M": 1 << 20, "1G": 2**30}


def limits(value: str | None) -> tuple[dict, dict, str]:
    """Bounds of the routines and choices under a limit, by collective and size; stderr."""
    program = support.compiled("limits.c", RANKS, f"-I{support.library(RANKS) / 'src'}")
    sizes = max(len(support.CATALOGUE.of(name)) for name in support.CATALOGUE.collectives)
    variables = {} if value is None else {"LIBCOLL_SCRATCH": value}
    result = support.run(RANKS, program, sizes, variables=variables)
    assert result.returncode == 0, result.stderr
    bounds, choices = {}, {}
    for what, collective, *rest in map(str.split, result.stdout.splitlines()):
        if what == "bound":
            bounds[collective, rest[0], int(rest[1])] = float(rest[2])
        else:
            choices[collective, int(rest[0])] = rest[1]
    return bounds, choices, result.stderr


@pytest.mark.parametrize("value", LIMITS)
def test_a_limit_changes_the_choice_where_it_must(value):
    bounds, unlimited, _ = limits(None)
    _, choices, _ = limits(value)
    assert len(choices) > 100
    changed = 0
    for (collective, size), name in choices.items():
        wanted = unlimited[collective, size]
        bound = bounds[collective, wanted, size]
        assert name == (wanted if bound <= LIMITS[value] else NATIVE), (collective, size)
        # No rank knows what others pack for an alltoallv of plain bytes: no limit admits it.
        changed += name != wanted and bound < math.inf
    assert (changed > 0) == (LIMITS[value] < 1 << 20)


@pytest.mark.parametrize("value", ["much", "-1", "1.5k", "1kB", "k", " 1"])
def test_what_is_no_limit_is_reported_and_ignored(value):
    _, unlimited, _ = limits(None)
    _, choices, told = limits(value)
    assert told.count(f"libcoll: LIBCOLL_SCRATCH: '{value}' is ignored") == 1
    assert choices == unlimited


@pytest.mark.parametrize("value", ["0", "700", "3k"])
def test_results_are_right_under_a_limit(value):
    program = support.library(RANKS) / "build" / "check"
    result = support.run(RANKS, program, "quick", variables={"LIBCOLL_SCRATCH": value})
    assert result.returncode == 0, result.stdout + result.stderr
    assert ", 0 failed" in result.stdout
