"""Engines: plain C that several routines share, in a library if one of its files includes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from stagegen.catalogue import Catalogue, applicable, load_catalogue, with_native
from stagegen.data import DRIVERS, ENGINES, TEMPLATES
from stagegen.generate.pattern_templates import pattern_root
from stagegen.library import library_files
from stagegen.parts.trees import root_of
from stagegen.patterns import Pattern
from stagegen.topology import Topology
from stagegen.trees import make_tree, shape_of
from tests.mpi import support
from tests.strategies import make_topology

FOLDER = TEMPLATES / ENGINES
LIBCOLL = TEMPLATES / "libcoll"
NAMES = sorted(path.stem for path in FOLDER.glob("*.c"))
INCLUDE = re.compile(r'#include "(\w+)\.h"')
JINJA = re.compile(r"""\{%-? *(?:include|from|import) *["']([^"']+)["']""")


def engines_of(text: str) -> set[str]:
    """The engines that a file includes, by itself or by others that it includes."""
    found: set[str] = set()
    for name in INCLUDE.findall(text):
        if name in NAMES:
            found |= {name, *engines_of((FOLDER / f"{name}.h").read_text(encoding="utf-8"))}
            own = (FOLDER / f"{name}.c").read_text(encoding="utf-8")
            found |= engines_of(own.replace(f'#include "{name}.h"', ""))
    for template in JINJA.findall(text):
        found |= engines_of((TEMPLATES / template).read_text(encoding="utf-8"))
    return found


def with_files(topology: Topology) -> Catalogue:
    """The catalogue with the routines of a tree file and of a file of patterns, too."""
    trees = root_of([make_tree(topology, shape_of("flat"), "flat")], topology)
    count = topology.rank_count
    rows = tuple(tuple(100 * (a + b) for b in range(count)) for a in range(count))
    uneven = [Pattern(name, "alltoallv", rows) for name in ("one", "other")]
    return load_catalogue(added=[trees, pattern_root(topology, uneven, "a test")])


@pytest.fixture(scope="module")
def used() -> dict[str, set[str]]:
    """The engines of each algorithm, by its full name."""
    catalogue = with_files(support.cluster(4, 2))
    return {
        a.full_name: engines_of(catalogue.templates.text(a.template.as_posix()))
        | engines_in(f"{a.collective}/view.c")
        for a in catalogue.algorithms
    }


def engines_in(file: str) -> set[str]:
    return engines_of((TEMPLATES / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_has_a_header_and_more_than_one_algorithm(name, used):
    assert (FOLDER / f"{name}.h").is_file()
    assert len([full_name for full_name, engines in used.items() if name in engines]) > 1


def test_a_library_has_the_engines_of_its_routines_and_no_others(used):
    topology = support.cluster(4)
    for wanted in ("alltoall/pair", "bcast/flat"):
        catalogue = support.few([support.CATALOGUE.find(*wanted.split("/"))])
        files = library_files(topology, catalogue, support.decision(topology, catalogue))
        present = {name for name in NAMES if f"src/{name}.c" in files}
        assert present == {name for name in NAMES if f"src/{name}.h" in files}
        routines = (used[a.full_name] for a in catalogue.algorithms)
        assert present == set().union(*routines)
        assert wanted != "alltoall/pair" or "steps" in present
        makefile = files["Makefile"]
        assert all(f"src/{name}.c" in makefile for name in present)


@pytest.fixture(scope="module")
def files() -> Mapping[str, str]:
    """The files of a library with all algorithms that a cluster of two ranks per host can run."""
    topology = make_topology([2, 2], [0], slots={"n0": 2, "n1": 2, "n2": 2, "n3": 2})
    catalogue = with_files(topology)
    users = applicable(catalogue, topology)
    catalogue = replace(catalogue, algorithms=with_native(catalogue, users))
    return library_files(topology, catalogue, support.decision(topology, catalogue))


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_is_copied_unchanged_below_its_banner(name, files):
    """Its text is the repository's, below a comment with the origin."""
    assert files[f"src/{name}.c"].endswith((FOLDER / f"{name}.c").read_text(encoding="utf-8"))


def test_no_engine_takes_the_name_of_another_file():
    """It would replace this file in a session or a library."""
    others = {file.name.split(".")[0] for file in (*LIBCOLL.iterdir(), *DRIVERS.iterdir())}
    others |= {a.full_name.replace("/", "_") for a in support.CATALOGUE.algorithms}
    others |= {f"view_{collective}" for collective in support.CATALOGUE.collectives}
    assert others & set(NAMES) == set()
