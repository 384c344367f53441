"""What a program does not call, but what may serve parts of its calls."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from docs.tools.bench_tuning.by_model import Modelled
from docs.tools.bench_tuning.drawn import draw_program
from docs.tools.bench_tuning.plan import CATALOGUE, MODEL, Setting
from docs.tools.bench_tuning.truth import CatalogueCluster, CatalogueTruth
from stagegen.catalogue import applicable
from stagegen.cli._tune_log import new_header
from stagegen.measure.source import LogSource
from stagegen.patterns import typical_calls
from stagegen.tune.bounds import bound_or_none
from stagegen.tune.communicators import name_of
from stagegen.tune.decision import CLUSTER
from stagegen.tune.part_subjects import part_subjects
from stagegen.tune.program import options_for, program_of
from stagegen.tune.scope import Options, Wanted
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import tune
from tests.library.schemas import validate
from tests.tune.recorder import Recorder

SETTING = Setting.of("program", MODEL)
TOPOLOGY = SETTING.topology
USES = {
    name: {
        part.collective
        for algorithm in applicable(CATALOGUE, TOPOLOGY)
        if algorithm.collective == name
        for part in algorithm.parts
    }
    for name in CATALOGUE.collectives
}
#: With the true times of this seed, which change with the catalogue, a composition with a part of
#: `reduce` serves best.
SEED = 4
CALLED = (Wanted("reduce_scatter", "whole", (1, 20000)),)


def options(wanted: tuple[Wanted, ...], total: float | None = None) -> Options:
    names = tuple(sorted({one.collective for one in wanted}))
    sizes = tuple(sorted({size for one in wanted for size in one.sizes}))
    return replace(SETTING.options(), collectives=names, sizes=sizes, wanted=wanted, total=total)


def with_parts() -> tuple[Wanted, ...]:
    return (*CALLED, *part_subjects(CALLED, CATALOGUE, TOPOLOGY))


def model() -> CatalogueCluster:
    return CatalogueCluster(CatalogueTruth(TOPOLOGY, CATALOGUE, SETTING.communicators, SEED), 1)


def seconds_of_calls(tuned) -> float:
    table = tuned.decision.table("reduce_scatter", CLUSTER, Shape(16, 1))
    truth = CatalogueTruth(TOPOLOGY, CATALOGUE, SETTING.communicators, SEED)
    return sum(truth("reduce_scatter", table.choice(s), s, "whole") for s in CALLED[0].sizes)


@pytest.mark.parametrize("name", CATALOGUE.collectives)
def test_parts_of_each_collective_are_what_its_compositions_use(name):
    data = CATALOGUE.collective(name).has_data
    called = (Wanted(name, "whole", (1, 4096, 262144) if data else (0,)),)
    found = part_subjects(called, CATALOGUE, TOPOLOGY)
    assert {one.collective for one in found} == USES[name] - {name}
    assert all(one.part and one.communicator == "whole" for one in found)
    for one in found:
        assert all(high > 2 * low for low, high in pairwise(one.sizes))
        of_call = bound_or_none(TOPOLOGY, CATALOGUE.collective(name), called[0].sizes[-1])
        for size in one.sizes:
            part = bound_or_none(TOPOLOGY, CATALOGUE.collective(one.collective), size)
            if part is not None and part.seconds > 0.005:
                assert of_call is not None
                assert (part.seconds - 0.005) / of_call.seconds <= 1.3


def test_what_is_called_itself_is_no_mere_part():
    called = (*CALLED, Wanted("reduce", "whole", (8,)))
    names = {one.collective for one in part_subjects(called, CATALOGUE, TOPOLOGY)}
    assert names
    assert not names & {"reduce", "reduce_scatter"}


def test_a_composition_of_what_is_not_called_wins_and_its_parts_have_no_table():
    alone = tune(TOPOLOGY, CATALOGUE, options(CALLED), model(), lambda: False)
    records: list = []
    source = LogSource([], Recorder(model(), records))
    tuned = tune(TOPOLOGY, CATALOGUE, options(with_parts()), source, lambda: False)
    assert seconds_of_calls(tuned) < 0.97 * seconds_of_calls(alone)
    table = tuned.decision.table("reduce_scatter", CLUSTER, Shape(16, 1))
    assert "reduce" in {bound.collective for bound in table.choice(CALLED[0].sizes[-1]).bound}
    assert {one.collective for one in tuned.decision.tables} == {"reduce_scatter"}
    assert {one.collective for one in tuned.outcomes} == {"reduce_scatter"}
    assert {one.collective for one in tuned.parts} == {o.collective for o in with_parts()[1:]}
    later = {r["collective"] for r in records if r["kind"] == "measurement" and r.get("launch")}
    assert later == {"reduce_scatter"}
    again = tune(TOPOLOGY, CATALOGUE, options(with_parts()), LogSource(records), lambda: False)
    assert again == tuned


def test_parts_are_looked_at_within_a_budget_too():
    asked = options(with_parts(), total=600.0)
    tuned = tune(TOPOLOGY, CATALOGUE, asked, model(), lambda: False)
    assert {one.collective for one in tuned.decision.tables} == {"reduce_scatter"}
    assert "reduce" in {
        bound.collective
        for table in tuned.decision.tables
        for bound in table.choice(CALLED[0].sizes[-1]).bound
    }
    assert tuned.decision.spending.unknown == 0


def test_the_log_says_what_is_there_for_parts():
    asked = options(with_parts())
    header = new_header(TOPOLOGY, CATALOGUE, asked)
    validate("measurements", header)
    assert Options.from_json(header) == asked
    assert [one.get("part", False) for one in header["wanted"]] == [o.part for o in with_parts()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
def test_tuning_for_a_program_is_fast_and_loses_little(seed):
    """At most 20 % of the time of the full tuning, and 3 % of the program's time lost."""
    found = Modelled(Setting.of("program", MODEL, seed=seed)).result()
    assert found["seconds"] <= 0.2 * found["full_seconds"]
    assert found["loss"] <= 0.03


def test_options_for_a_program_hold_calls_and_parts():
    calls = draw_program(TOPOLOGY, CATALOGUE, ("allreduce", "gather"), 1, lambda *_: 1e-3, 4096)
    program = program_of(calls, TOPOLOGY)
    found = options_for(program, SETTING.options(), CATALOGUE, TOPOLOGY)
    assert tuple(one for one in found.wanted if not one.part) == program.wanted
    assert set(found.collectives) == {one.collective for one in found.wanted}
    assert {one.collective for one in found.wanted if one.part} == (
        (USES["allreduce"] | USES["gather"]) - {"allreduce", "gather"}
    )


def test_options_for_a_program_keep_the_patterns():
    calls = draw_program(TOPOLOGY, CATALOGUE, ("allreduce",), 1, lambda *_: 1e-3, 4096)
    patterns = typical_calls(TOPOLOGY.rank_count)
    given = replace(SETTING.options(), patterns=patterns)
    found = options_for(program_of(calls, TOPOLOGY), given, CATALOGUE, TOPOLOGY)
    assert set(map(name_of, patterns)) < set(found.communicators)
    assert {one.collective for one in patterns} < set(found.collectives)
    assert all(found.wants(one.collective, name_of(one)) for one in patterns)
    assert found.wants("allreduce", "whole")
    assert not found.wants("alltoallv", "whole")
