"""Algorithms that use others: what they must ask for, and which files a build has of them."""

from __future__ import annotations

import pytest

from stagegen.catalogue import load_catalogue, with_native
from stagegen.catalogue.algorithm import NATIVE
from stagegen.data import TOPOLOGIES
from stagegen.errors import GenerateError, InputError
from stagegen.generate import Build, Renderer, runtime_sources
from stagegen.topology import load_topology
from tests.catalogue.test_front_matter import GOOD, describe, load, write

CATALOGUE = load_catalogue()
NATIVES = tuple(a for a in CATALOGUE.algorithms if a.name == NATIVE)
USES = f"{GOOD}\nuses: [bcast/other]"

# (what the used algorithm's front matter says more, what that of its user does)
REFUSED = {
    "power of two": ("constraints: [power_of_two]", ""),
    "order": ("needs: order", ""),
    "ring": ("needs: ring\nkind: lr2", "needs: order"),
    "other ring": ("needs: ring\nkind: lr2", "needs: ring\nkind: lr3"),
    "leaders": ("needs: leaders", "needs: order"),
    "ranks": ("max_ranks: 8", "max_ranks: 16"),
    "arguments": ("constraints: [unprepared]", ""),
}
ALLOWED = {
    "anything": ("", ""),
    "the same": ("needs: ring\nkind: lr2\nmax_ranks: 8", "needs: ring\nkind: lr2\nmax_ranks: 8"),
    "order, with tables": ("needs: order", "needs: ring\nkind: lr2"),
    "more": ("constraints: [commutative]", "constraints: [commutative, power_of_two]"),
}


def load_pair(root, used: str, user: str):
    write(root, f"{{#---\n{GOOD}\n{used}\n---#}}\n", "bcast/other.c.j2")
    describe(root, "bcast")
    return load(root, f"{USES}\n{user}")


@pytest.mark.parametrize(("used", "user"), REFUSED.values(), ids=REFUSED)
def test_a_user_that_asks_for_less_than_the_used_routine_is_refused(tmp_path, used, user):
    with pytest.raises(InputError, match="bcast/other asks for more than this") as caught:
        load_pair(tmp_path, used, user)
    assert caught.value.file == str(tmp_path / "alltoall/mine.c.j2")


@pytest.mark.parametrize(("used", "user"), ALLOWED.values(), ids=ALLOWED)
def test_a_user_that_serves_no_more_than_the_used_routine_is_accepted(tmp_path, used, user):
    catalogue = load_pair(tmp_path, used, user)
    mine = catalogue.find("alltoall", "mine")
    assert catalogue.used_by(mine) == (catalogue.find("bcast", "other"),)


def test_the_used_one_must_be_there_and_use_none_itself(tmp_path):
    with pytest.raises(InputError, match="no algorithm 'other' of bcast"):
        load(tmp_path / "a", USES)
    with pytest.raises(InputError, match="bcast/other uses others itself"):
        load_pair(tmp_path / "b", "uses: [alltoall/native]", "")


def test_a_library_has_what_is_used():
    chosen = CATALOGUE.find("allreduce", "rab1_bruck")
    names = {a.routine for a in with_native(CATALOGUE, [chosen])}
    assert {"allreduce_rab1_bruck", "allgather_bruck", "reduce_scatter_recursive_halving"} <= names
    assert names.isdisjoint({"allgather_ring", "allreduce_rab1_ring"})


def test_a_build_without_what_is_used_is_refused():
    topology = load_topology(TOPOLOGIES / "quickstart.yaml")
    alone = (*NATIVES, CATALOGUE.find("allreduce", "rab1_bruck"))
    renderer = Renderer("a test", "name", "0" * 64, "1" * 64)
    with pytest.raises(GenerateError, match=r"allreduce_rab1_bruck uses .*allgather/bruck"):
        runtime_sources(Build.of(topology, CATALOGUE, alone), renderer)
