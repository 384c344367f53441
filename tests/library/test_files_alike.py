"""C files of libraries for different clusters differ in what is compiled, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.catalogue.c_tokens import tokens
from stagegen.library import library_files
from tests.mpi import support

#: Their heads say what was proven about them for the cluster.
PROVEN = {f"src/{a.routine}.c" for a in support.CATALOGUE.algorithms if a.topology_specific}


def c_files(topology):
    files = library_files(topology, support.CATALOGUE, support.decision(topology))
    return {name: text for name, text in files.items() if name.endswith((".c", ".h"))}


@pytest.fixture(scope="module")
def four():
    return c_files(support.cluster(4))


@pytest.mark.parametrize("other", [support.cluster(6), replace(support.cluster(4), name="another")])
def test_what_compiles_alike_is_the_same_to_the_byte(four, other):
    """So a compiler cache compiles it once, and `diff` shows what a cluster has of its own."""
    others = c_files(other)
    different = {name for name in four.keys() & others.keys() if four[name] != others[name]}
    in_comments = {n for n in different if [*tokens(four[n])] == [*tokens(others[n])]}
    assert "src/cluster.c" in different
    assert in_comments <= PROVEN
