"""What routines and engines compute about their steps, compiled by itself and called from here."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from stagegen.data import ENGINES, TEMPLATES
from stagegen.generate.depth_first import depth_first_places, meeting_depths
from stagegen.topology import Topology
from tests.generate.runtime import compile_c, runtime_folder
from tests.strategies import oracle_paths, topologies

pytestmark = pytest.mark.mpi

RANKS = range(2, 70)

#: The algorithms whose functions are tested; the engine of steps comes along with the pair's.
TESTED = ("allgather/circulant", "allreduce/arrival_chain", "alltoall/pair")

#: Everything that the wanted functions do not call is left out, so no other file is needed.
APART = ("-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")

#: A pointer to a function, by whose name it is found in the library.
POINTER = '__attribute__((visibility("default"))) __typeof__({0}) *const pointer_to_{0} = {0};\n'

Functions = dict[str, Any]


@pytest.fixture(scope="module")
def function(tmp_path_factory) -> Callable[..., Functions]:
    """Static functions of a C file of the library, by name."""

    def load(file: str, *names: str) -> Functions:
        source = tmp_path_factory.mktemp(file.removesuffix(".c")) / "functions.c"
        source.write_text(f'#include "{file}"\n' + "".join(map(POINTER.format, names)))
        library = shared_library(source, f"-I{runtime_folder(*TESTED)}", *APART)
        return {name: _pointed_to(library, f"pointer_to_{name}") for name in names}

    return load


def _pointed_to(library: ctypes.CDLL, name: str) -> Any:
    address = ctypes.c_void_p.in_dll(library, name).value
    assert address is not None
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)


@pytest.fixture(scope="module")
def sides(tmp_path_factory) -> ctypes.CDLL:
    """The engine that finds the sides of meshes: it needs nothing of libcoll."""
    source = tmp_path_factory.mktemp("sides") / "sides.c"
    source.write_text(f'#include "{TEMPLATES / ENGINES / "mesh_sides.c"}"\n')
    return shared_library(source)


@pytest.fixture(scope="module")
def steps(function) -> Functions:
    """What the engine of alltoalls in steps computes about them."""
    return function("steps.c", "pair_steps", "pair_partner", "barrier_is_due")


def shared_library(source: Path, *options: str) -> ctypes.CDLL:
    """A C file, compiled and loaded."""
    library = source.with_suffix(".so")
    return ctypes.CDLL(str(compile_c(source, library, "-shared", "-fPIC", *options)))


def test_every_two_ranks_are_partners_in_one_step(steps):
    for p in RANKS:
        met = []
        for step in range(1, steps["pair_steps"](p) + 1):
            partners = [steps["pair_partner"](rank, step, p) for rank in range(p)]
            assert [partners[partner] for partner in partners] == list(range(p))
            met += [(rank, partner) for rank, partner in enumerate(partners) if rank < partner]
        assert sorted(met) == list(itertools.combinations(range(p), 2))


def test_barriers_are_spread_evenly_over_the_steps(steps):
    is_due = steps["barrier_is_due"]
    is_due.restype = ctypes.c_bool
    for count, barriers in itertools.product(range(1, 40), (*range(45), 2**31 - 1)):
        due = [step for step in range(1, count + 1) if is_due(step, count, barriers)]
        assert len(due) == min(barriers, count - 1)
        ends = [1, *due, count + 1]
        lengths = {b - a for a, b in itertools.pairwise(ends)}
        assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("dimensions", [2, 3])
def test_sides_of_meshes_need_the_fewest_messages(sides, dimensions):
    for p in range(2, 200):
        found = (ctypes.c_int * dimensions)()
        sides.coll_mesh_sides(p, dimensions, found)
        assert math.prod(found) == p
        divisors = [d for d in range(1, p + 1) if p % d == 0]
        shapes = itertools.product(divisors, repeat=dimensions)
        assert sum(found) == min(sum(shape) for shape in shapes if math.prod(shape) == p)


def test_skips_of_the_circulant_graph_at_most_double_what_is_held(function):
    held_before = function("allgather_circulant.c", "held_before")["held_before"]
    for p in RANKS:
        rounds = math.ceil(math.log2(p))
        held = [held_before(p, left) for left in range(rounds, -1, -1)]
        assert (held[0], held[-1]) == (1, p)
        assert all(a < b <= 2 * a for a, b in itertools.pairwise(held))


@pytest.fixture(scope="module")
def walk(function) -> Callable[..., list[int]]:
    """The places along the walk from one to another, by how deep each meets the one before."""
    find_walk = function("allreduce_arrival_chain.c", "find_walk")["find_walk"]

    def find(depths: Sequence[int] | None, p: int, first: int, last: int) -> list[int]:
        found = (ctypes.c_int * p)()
        before = (ctypes.c_int * p)(*depths) if depths is not None else None
        find_walk(before, p, first, last, found)
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
