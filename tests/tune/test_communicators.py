"""Which ranks a communicator has, by the name that it is asked for with."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from stagegen.catalogue import groups_of
from stagegen.errors import InputError
from stagegen.topology import Group, load_topology
from stagegen.tune.communicators import (
    as_seen_by,
    default_names,
    find_communicators,
    job_shapes,
)
from stagegen.tune.tuner import kinds_of
from tests.strategies import make_topology

#: Ranks are dealt to the three switches in turn: hosts n0 n3 n5, n1 n4 n6, n2 n7 by rank.
CYCLIC = make_topology([3, 3, 2], [0, 1], ranks=["n0", "n3", "n6", "n1", "n4", "n7", "n2", "n5"])
SLOTS = make_topology([2, 2], [0], slots={"n0": 3, "n3": 2})


def ranks(topology, name: str) -> tuple[int, ...]:
    (one,) = find_communicators(topology, [name])
    return one.ranks


def test_per_switch_has_one_rank_of_every_switch():
    hosts = [CYCLIC.ranks[rank] for rank in ranks(CYCLIC, "per-switch")]
    assert [CYCLIC.host_by_name[host].switch for host in hosts] == ["s0", "s1", "s2"]


def test_per_host_has_the_first_rank_of_every_host():
    assert ranks(CYCLIC, "per-host") == ranks(CYCLIC, "whole") == tuple(range(8))
    chosen = ranks(SLOTS, "per-host")
    assert sorted(SLOTS.ranks[rank] for rank in chosen) == ["n0", "n1", "n2", "n3"]
    assert all(SLOTS.ranks.index(SLOTS.ranks[rank]) == rank for rank in chosen)


def places(name: str) -> list[int]:
    """The places of a communicator's ranks in depth-first order, in which n0 … n7 are as named."""
    return sorted(int(CYCLIC.ranks[rank].removeprefix("n")) for rank in ranks(CYCLIC, name))


def test_half_are_every_other_in_depth_first_order():
    assert places("half") == [0, 2, 4, 6]


@pytest.mark.parametrize("count", range(2, 8))
def test_a_number_is_of_ranks_that_are_spread_evenly_in_depth_first_order(count):
    found = ranks(CYCLIC, str(count))
    assert len(set(found)) == count
    assert list(found) == sorted(found)
    spread = places(str(count))
    gaps = [after - before for before, after in pairwise([*spread, spread[0] + 8])]
    assert max(gaps) - min(gaps) <= 1


def test_each_communicator_is_there_once_and_in_the_order_that_was_asked_for():
    names = [one.name for one in find_communicators(CYCLIC, ["3", "whole", "3", "half"])]
    assert names == ["3", "whole", "half"]


@pytest.mark.parametrize(
    "name", ["", "everyone", "1", "8", "9", "-2", "2.5", "left", "9x1", "2x2", "0x2", "x1"]
)
def test_an_unknown_communicator_is_refused_with_the_known_ones(name):
    with pytest.raises(InputError, match="choose from whole, per-switch, per-host, half, or"):
        find_communicators(CYCLIC, [name])


def test_a_single_rank_is_no_communicator_to_tune_for():
    with pytest.raises(InputError, match="per-switch has 1 rank"):
        find_communicators(make_topology([4], []), ["per-switch"])


def test_by_default_all_ranks_the_named_groups_and_jobs_on_parts_are_tuned_for():
    assert default_names(CYCLIC) == ("whole", "4x1", "2x1")
    groups = (Group("left", ("n0", "n3")), Group("edge", ("n7", "n1", "n2")))
    assert default_names(replace(CYCLIC, groups=groups)) == ("whole", "left", "edge", "4x1", "2x1")


@pytest.mark.parametrize(
    ("name", "jobs"),
    [
        ("slots-4x2x2", ["4x2", "8x1", "2x2", "4x1", "1x2", "2x1"]),
        ("chain-4x4-cyclic", ["8x1", "4x1", "2x1"]),
        ("three-level-48", ["24x1", "12x1", "6x1", "2x1"]),
        ("fig-3-2", ["3x1", "2x1"]),
    ],
)
def test_jobs_have_1_and_2_and_an_eighth_a_quarter_and_half_of_the_hosts(name, jobs):
    topology = load_topology(f"topologies/{name}.yaml")
    assert default_names(topology) == (*(g.name for g in groups_of(topology)), *jobs)
    for one in find_communicators(topology, jobs):
        assert str(one.shape) == one.name
        assert len(one.ranks) == one.shape.ranks


@pytest.mark.parametrize("hosts", [4, 8, 16, 32])
def test_ranks_that_share_a_host_are_tuned_for_however_many_hosts_there_are(hosts):
    """From 16 hosts on, an eighth of them are several."""
    slots = {f"n{number}": 2 for number in range(hosts)}
    topology = make_topology([hosts // 2] * 2, [0], slots=slots)
    found = find_communicators(topology, default_names(topology))
    assert [one.name for one in found if "one-host" in kinds_of(found)[one]] == ["1x2"]


def test_a_job_has_full_hosts_that_are_next_to_each_other():
    (job,) = find_communicators(CYCLIC, ["4x1"])
    assert {CYCLIC.ranks[rank] for rank in job.ranks} == {"n0", "n1", "n2", "n3"}
    assert job.ranks == tuple(sorted(job.ranks))
    (pair,) = find_communicators(SLOTS, ["2x2"])
    assert [SLOTS.ranks[rank] for rank in pair.ranks] == ["n0", "n0", "n3", "n3"]
    assert [str(shape) for shape in job_shapes(SLOTS)] == ["2x2", "4x1", "1x3", "2x1"]


def test_hosts_with_different_numbers_of_ranks_have_their_mean_rounded_up():
    (whole,) = find_communicators(SLOTS, ["whole"])
    assert (len(whole.ranks), str(whole.shape)) == (7, "4x2")


def test_the_cluster_as_a_communicator_sees_it_has_its_ranks_and_their_distances():
    (half,) = find_communicators(CYCLIC, ["half"])
    seen = as_seen_by(CYCLIC, half)
    assert seen.ranks == tuple(CYCLIC.ranks[rank] for rank in half.ranks)
    assert seen.tree.hops(0, 1) == CYCLIC.tree.hops(*half.ranks[:2])


def test_measurements_on_one_host_serve_one_host():
    topology = replace(
        make_topology([3], [], slots={"n0": 3, "n1": 3}),
        groups=(Group("alone", ("n1",)), Group("pair", ("n0", "n2"))),
    )
    found = find_communicators(topology, ["whole", "alone", "per-host", "pair"])
    assert [one.hosts for one in found] == [3, 1, 3, 2]
    assert {one.name: kinds for one, kinds in kinds_of(found).items()} == {
        "whole": ("cluster", "hosts", "other"),
        "alone": ("group alone", "one-host"),
        "per-host": ("hosts", "other"),
        "pair": ("group pair", "hosts", "other"),
    }


def test_measurements_of_a_shape_serve_once():
    found = find_communicators(CYCLIC, ["whole", "per-host", "half", "4", "4x1"])
    made = {one.name: kinds for one, kinds in kinds_of(found).items()}
    assert made == {
        "whole": ("cluster", "hosts", "other"),
        "per-host": (),
        "half": ("hosts", "other"),
        "4": (),
        "4x1": (),
    }
