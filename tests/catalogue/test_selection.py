"""Selections: what competes, what is only compiled, and names that nothing has."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.catalogue import applicable, load_catalogue, runnable
from stagegen.catalogue.applicable import why_not
from stagegen.catalogue.cluster_schedules import schedules_of
from stagegen.catalogue.selection import EVERYTHING, Selection, patterns_of
from stagegen.data import TOPOLOGIES
from stagegen.errors import InputError
from stagegen.generate import session_build
from stagegen.measure.records import Timing
from stagegen.topology import load_topology
from stagegen.tune.scope import Options
from tests.strategies import make_topology

CATALOGUE = load_catalogue()
NAMES = [algorithm.full_name for algorithm in CATALOGUE.algorithms]
SIX = make_topology([3, 3], [0])


def selected(*patterns: str, without: tuple[str, ...] = (), topology: bool = True) -> set[str]:
    selection = Selection(patterns, without, not topology)
    return {a.full_name for a in CATALOGUE.algorithms if selection.admits(a)}


@given(st.sets(st.sampled_from(NAMES), min_size=1), st.sets(st.sampled_from(NAMES)))
def test_full_names_select_themselves_and_native(names, others):
    native = {name for name in NAMES if name.endswith("/native")}
    assert selected(*names, without=tuple(others)) == (names - others) | native


def test_a_name_is_of_every_collective_and_a_pattern_of_names_too():
    assert {"alltoall/ring", "allgather/ring"} <= selected("ring")
    rings = selected("ring*") - {name for name in NAMES if name.endswith("/native")}
    assert rings == {name for name in NAMES if name.partition("/")[2].startswith("ring")}
    assert "alltoall/ring" not in selected("allgather/*")


def test_without_topology_leaves_what_serves_any_ranks():
    left = selected(topology=False)
    for algorithm in CATALOGUE.algorithms:
        assert (algorithm.full_name in left) == (algorithm.needs is None)


@pytest.mark.parametrize(
    ("pattern", "near"),
    [("rng", "ring"), ("alltoall/apc_none", "alltoall/aapc_none"), ("*gossip*", "stagegen")],
)
def test_an_unknown_name_is_an_error_that_lists_similar_ones(pattern, near):
    for selection in (Selection((pattern,)), Selection((), (pattern,))):
        with pytest.raises(InputError, match=near):
            selection.require_known(CATALOGUE.algorithms)


@pytest.mark.parametrize("pattern", ["native", "bcast/native"])
def test_native_cannot_be_left_out_by_name(pattern):
    with pytest.raises(InputError, match="always competes"):
        Selection((), (pattern,)).require_known(CATALOGUE.algorithms)
    Selection((), ("*",)).require_known(CATALOGUE.algorithms)


def test_lists_are_sorted_and_each_pattern_is_there_once():
    assert patterns_of("ring,alltoall/*,ring,") == ("alltoall/*", "ring")
    assert patterns_of(None) == ()


def test_all_compete_unless_a_selection_says_otherwise():
    assert all(map(EVERYTHING.admits, CATALOGUE.algorithms))


def test_what_a_candidate_uses_is_compiled_but_is_no_candidate():
    user = next(a for a in CATALOGUE.algorithms if a.uses and a.needs is None)
    catalogue = CATALOGUE.selecting(Selection((user.full_name,)))
    candidates = {a.full_name for a in applicable(catalogue, SIX)}
    assert {name for name in candidates if not name.endswith("/native")} == {user.full_name}
    build = session_build(SIX, catalogue, (user.collective,))
    compiled = {routine.described.full_name for routine in build.routines}
    assert {user.full_name, *user.uses} <= compiled
    everything = session_build(SIX, CATALOGUE, (user.collective,))
    assert len(build.routines) < len(everything.routines) / 4


@pytest.mark.parametrize("name", ["chain-4x4-groups", "slots-4x2x2", "single-16", "three-level-48"])
def test_there_is_a_reason_exactly_where_an_algorithm_cannot_run(name):
    topology = load_topology(TOPOLOGIES / f"{name}.yaml")
    runs = set(runnable(CATALOGUE, replace(topology, groups=())))
    for algorithm in CATALOGUE.algorithms:
        reason = why_not(algorithm, topology)
        assert (reason is None) == (algorithm in runs)
        assert reason is None or len(reason) > 10
        serves = schedules_of(topology).serve(algorithm)
        assert (reason is None) == (serves and algorithm.works_for(topology.rank_count))


def test_a_selection_survives_json():
    chosen = Selection(("alltoall/*", "ring"), ("*barrier*",), True)
    options = Options(("alltoall",), (1, 2), Timing(), 1.0, selection=chosen)
    form = json.loads(json.dumps(options.to_json()))
    assert Options.from_json(form) == options
    del form["selection"]
    assert Options.from_json(form).selection == EVERYTHING
