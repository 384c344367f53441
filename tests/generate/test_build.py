"""Sessions and libraries are parts of the build of all that can run, and are as if made alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.errors import GenerateError
from stagegen.generate import Build, library_build, session_build
from stagegen.topology import load_topology

CATALOGUE = load_catalogue()
TOPOLOGY = load_topology("topologies/chain-4x4-groups.yaml")
WHOLE = Build.of_all(TOPOLOGY, CATALOGUE)


@pytest.mark.parametrize(
    "names", [("alltoall/aapc_receiver",), ("allreduce/rab1_lr1", "bcast/binomial")]
)
def test_a_library_is_the_part_of_the_whole_build_that_was_chosen(names):
    chosen = [CATALOGUE.find(*name.split("/")) for name in names]
    alone = library_build(TOPOLOGY, CATALOGUE, chosen)
    assert library_build(TOPOLOGY, CATALOGUE, chosen, WHOLE) == alone
    assert [one.index for one in alone.routines] == list(range(len(alone.routines)))


def test_a_session_is_the_part_that_competes():
    alone = session_build(TOPOLOGY, CATALOGUE, ("alltoall",))
    assert WHOLE.session(("alltoall",)) == alone
    assert {one.group for one in alone.routines} == {0, 1, 2}


def test_a_part_is_made_without_looking_at_schedules_again(monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError("worked out anew")

    assert WHOLE.runnable
    monkeypatch.setattr("stagegen.generate.build.describe", fail)
    monkeypatch.setattr("stagegen.generate.build.groups_of", fail)
    monkeypatch.setattr("stagegen.generate.build.runnable", fail)
    assert WHOLE.session(("bcast",)).routines
    chosen = [CATALOGUE.find("bcast", "binomial")]
    assert library_build(TOPOLOGY, CATALOGUE, chosen, WHOLE).routines


def test_what_the_cluster_cannot_run_is_in_no_part():
    few = Build.of_all(load_topology("topologies/two-sites-6.yaml"), CATALOGUE)
    with pytest.raises(GenerateError, match="two-sites-6 cannot run allgather_logical_ring_lr2"):
        few.only([CATALOGUE.find("allgather", "logical_ring_lr2")])


def test_an_algorithm_is_left_out_if_the_catalogue_lacks_what_it_uses():
    left = tuple(a for a in CATALOGUE.algorithms if a.full_name != "alltoall/ring")
    whole = Build.of_all(TOPOLOGY, replace(CATALOGUE, algorithms=left))
    names = {one.algorithm for one in whole.routines if one.collective == "allreduce"}
    assert "rab2_pair" in names
    assert "rab2_ring" not in names
