"""What routines and engines compute about their steps, compiled by itself and called from here."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from stagegen.catalogue import groups_of
from stagegen.data import ENGINES, TEMPLATES
from stagegen.generate import Renderer, Toolchain
from stagegen.generate.routines import routine_files
from tests.mpi import support

pytestmark = pytest.mark.mpi

RANKS = range(2, 70)


@pytest.fixture(scope="module")
def function(tmp_path_factory) -> Callable[..., ctypes.CDLL]:
    """The static functions of a routine, as a library."""
    topology = support.cluster(4)
    renderer = Renderer("a test", topology.name, topology.hash, support.CATALOGUE.hash)

    def load(collective: str, name: str, *functions: str) -> ctypes.CDLL:
        algorithm = support.CATALOGUE.find(collective, name)
        described = support.CATALOGUE.collective(collective)
        files = routine_files(algorithm, renderer, groups_of(topology)[0], described)
        text = files[f"{algorithm.routine}.c"]
        return static_functions(text, functions, tmp_path_factory.mktemp(algorithm.routine))

    return load


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Callable[[str], ctypes.CDLL]:
    """An engine that needs nothing of libcoll, as a library."""

    def load(name: str) -> ctypes.CDLL:
        return shared_library(TEMPLATES / ENGINES / f"{name}.c", tmp_path_factory.mktemp(name))

    return load


@pytest.fixture(scope="module")
def steps(tmp_path_factory) -> ctypes.CDLL:
    """What the engine of alltoalls in steps computes about them."""
    text = (TEMPLATES / ENGINES / "steps.c").read_text(encoding="utf-8")
    wanted = ("pair_steps", "pair_partner", "barrier_is_due")
    return static_functions(text, wanted, tmp_path_factory.mktemp("steps"))


def static_functions(text: str, wanted: Iterable[str], folder: Path) -> ctypes.CDLL:
    """Static functions of a C file, compiled in a folder and loaded."""
    source = "#include <stdbool.h>\n"
    for name in wanted:
        found = re.search(rf"^static (\w+ {name}\(.*?^}}\n)", text, re.MULTILINE | re.DOTALL)
        assert found is not None, name
        source += found[1]
    (folder / "functions.c").write_text(source, encoding="utf-8")
    return shared_library(folder / "functions.c", folder)


def shared_library(source: Path, folder: Path) -> ctypes.CDLL:
    """A C file, compiled in a folder and loaded."""
    library = folder / f"{source.stem}.so"
    command = [Toolchain.find().mpicc, "-std=c11", "-shared", "-fPIC", "-o", library, source]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def test_every_two_ranks_are_partners_in_one_step(steps):
    for p in RANKS:
        count = steps.pair_steps(p)
        assert count == p - 1 + p % 2
        met = []
        for step in range(1, count + 1):
            partners = [steps.pair_partner(rank, step, p) for rank in range(p)]
            assert [partners[partner] for partner in partners] == list(range(p))
            met += [(rank, partner) for rank, partner in enumerate(partners) if rank < partner]
        assert sorted(met) == list(itertools.combinations(range(p), 2))


def test_so_many_barriers_are_spread_evenly(steps):
    is_due = steps.barrier_is_due
    is_due.restype = ctypes.c_bool
    for count, barriers in itertools.product(range(1, 40), (*range(45), 2**31 - 1)):
        due = [step for step in range(1, count + 1) if is_due(step, count, barriers)]
        assert len(due) == min(barriers, count - 1)
        ends = [1, *due, count + 1]
        lengths = {b - a for a, b in itertools.pairwise(ends)}
        assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("dimensions", [2, 3])
def test_sides_of_meshes_need_the_fewest_messages(engine, dimensions):
    library = engine("mesh_sides")
    for p in range(2, 200):
        sides = (ctypes.c_int * dimensions)()
        library.coll_mesh_sides(p, dimensions, sides)
        assert math.prod(sides) == p
        divisors = [d for d in range(1, p + 1) if p % d == 0]
        shapes = itertools.product(divisors, repeat=dimensions)
        assert sum(sides) == min(sum(shape) for shape in shapes if math.prod(shape) == p)


def test_skips_of_the_circulant_graph_at_most_double_what_is_held(function):
    held_before = function("allgather", "circulant", "held_before").held_before
    for p in RANKS:
        rounds = math.ceil(math.log2(p))
        held = [held_before(p, left) for left in range(rounds, -1, -1)]
        assert (held[0], held[-1]) == (1, p)
        assert all(a < b <= 2 * a for a, b in itertools.pairwise(held))
