"""What routines and engines compute about their steps, compiled by itself and called from here."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from stagegen.catalogue import groups_of
from stagegen.data import ENGINES, TEMPLATES
from stagegen.generate import Renderer, Toolchain
from stagegen.generate.depth_first import depth_first_places, meeting_depths
from stagegen.generate.routines import routine_files
from stagegen.topology import Topology
from tests.mpi import support
from tests.strategies import oracle_paths, topologies

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
    """Static functions and structs of a C file, compiled in a folder and loaded."""
    source = "#include <limits.h>\n#include <stdbool.h>\n#include <stddef.h>\n"
    for name in wanted:
        starts = rf"{name} \{{" if name.startswith("struct ") else rf"static ([\w ]+[ *]{name}\()"
        found = re.search(rf"^{starts}.*?^}};?\n", text, re.MULTILINE | re.DOTALL)
        assert found is not None, name
        source += found[0].removeprefix("static ")
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


#: What the walk of the allreduce is made of, in the order of its file.
WALK = ("depth_at", "lesser", "struct span", "span_below", "is_in", "spread", "find_walk")


@pytest.fixture(scope="module")
def walk(function) -> Callable[..., list[int]]:
    """The places along the walk from one to another, by how deep each meets the one before."""
    library = function("allreduce", "arrival_chain", *WALK)

    def find(depths: Sequence[int] | None, p: int, first: int, last: int) -> list[int]:
        found = (ctypes.c_int * p)()
        before = (ctypes.c_int * p)(*depths) if depths is not None else None
        library.find_walk(before, p, first, last, found)
        return list(found)

    return find


def in_depth_first_order(topology: Topology) -> tuple[list[int], list[int]]:
    """The ranks by their places, and how deep each meets the one before: as in libcoll."""
    hosts = [host.name for host in topology.hosts]
    place_of = dict(zip(hosts, depth_first_places(topology), strict=True))
    order = sorted(
        range(len(topology.ranks)), key=lambda rank: (place_of[topology.ranks[rank]], rank)
    )
    places = [place_of[topology.ranks[rank]] for rank in order]
    depths = meeting_depths(topology)
    between = (depths[a + 1 : b + 1] for a, b in itertools.pairwise(places))
    return order, [0, *(min(those, default=2**31 - 1) for those in between)]


@given(topologies(max_hosts=9, max_switches=6, max_ranks=10))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_walk_that_is_closed_passes_each_link_once_each_way(walk, topology):
    """Between any two places: the message from the last one to the first closes it."""
    order, depths = in_depth_first_order(topology)
    paths, every = oracle_paths(topology), range(len(order))
    for first, last in itertools.permutations(every, 2):
        found = walk(depths, len(order), first, last)
        assert (found[0], found[-1]) == (first, last)
        assert sorted(found) == list(every)
        ranks = [order[place] for place in found]
        steps = itertools.pairwise([*ranks, ranks[0]])
        edges = [edge for step in steps for edge in paths[step]]
        assert len(edges) == len(set(edges))


def test_without_known_hosts_a_walk_goes_by_the_numbers(walk):
    assert walk(None, 6, 2, 4) == [2, 3, 5, 0, 1, 4]
