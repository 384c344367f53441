"""Compositions: bound to what serves their parts, measured where they may win, kept if they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import pytest

from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.library import library_files
from stagegen.measure.records import (
    Bound,
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Request,
    Timing,
)
from stagegen.measure.source import LogSource
from stagegen.tune import DecisionTable
from stagegen.tune.candidates import part_size
from stagegen.tune.compositions import TOO_SLOW
from stagegen.tune.scope import Options
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import Tuned, tune
from tests.library.schemas import validate
from tests.measure.fakes import Model
from tests.strategies import make_topology
from tests.tune.recorder import Recorder

TOPOLOGY = make_topology([3, 3], [0])
SIZES = (64, 4096)
OPTIONS = Options(("allreduce", "bcast", "reduce"), SIZES, Timing(), 1.0)
COMPOSED = "of_reduce_and_bcast"
CATALOGUE = load_catalogue()
NAMES = {
    "allreduce": ("native", "ring", COMPOSED, "of_halves"),
    "bcast": ("native", "binomial", "topology_linear"),
    "reduce": ("native", "binomial", "topology_kary"),
}

#: Milliseconds of a call, whatever its size, that are not those of the native routine.
FAST = {
    ("reduce", "topology_kary"): 1.0,
    ("reduce", "binomial"): 2.0,
    ("bcast", "topology_linear"): 1.0,
    ("bcast", "binomial"): 2.0,
}
NATIVE = 8.0


@lru_cache
def catalogue(*without: str) -> Catalogue:
    chosen = tuple(
        algorithm
        for algorithm in CATALOGUE.algorithms
        if algorithm.name in NAMES.get(algorithm.collective, ("native",))
        and algorithm.name not in without
    )
    return replace(CATALOGUE, algorithms=chosen)


class Costs(Model):
    """Times of each collective's routines; a composition takes what its parts take, and more."""

    def __init__(self, fast=FAST, more: float = 1.0, **others):
        super().__init__(lambda candidate, size: 0.0, **others)
        self.fast, self.more = fast, more

    def milliseconds(self, collective: str, candidate: Candidate) -> float:
        parts = CATALOGUE.find(collective, candidate.algorithm).parts
        if parts:
            bound = candidate.bound or [Bound(p.collective, Candidate("native")) for p in parts]
            return self.more * sum(self.milliseconds(b.collective, b.candidate) for b in bound)
        return self.fast.get((collective, candidate.algorithm), NATIVE)

    def measure(self, asked):
        self.cost = lambda candidate, _: 1e-3 * self.milliseconds(asked.collective, candidate)
        return super().measure(asked)


def tuned(source, options: Options = OPTIONS, *without: str) -> Tuned:
    return tune(TOPOLOGY, catalogue(*without), options, source, lambda: True)


def choice(found: Tuned, kind: str, size: int = 4096, ranks: int = 6) -> Candidate:
    table = found.decision.table("allreduce", kind, Shape(ranks, 1))
    assert table is not None
    return table.choice(size)


def measured(model: Model) -> set[Candidate]:
    return {candidate for asked in model.asked for candidate in asked.candidates}


def bound_to(candidate: Candidate) -> list[str]:
    return [f"{bound.collective}/{bound.candidate.algorithm}" for bound in candidate.bound]


def test_parts_are_those_that_serve_each_kind_of_communicators():
    found = tuned(Costs())
    assert choice(found, "cluster").algorithm == choice(found, "other").algorithm == COMPOSED
    assert bound_to(choice(found, "cluster")) == ["reduce/topology_kary", "bcast/topology_linear"]
    assert bound_to(choice(found, "hosts")) == ["reduce/binomial", "bcast/topology_linear"]
    assert bound_to(choice(found, "other")) == ["reduce/binomial", "bcast/binomial"]
    tables = {table.collective: table for table in found.decision.tables if table.ranks == 6}
    own = {"reduce": tables["reduce"].choice(4096), "bcast": tables["bcast"].choice(4096)}
    assert [b.candidate for b in choice(found, "other").bound] == [own["reduce"], own["bcast"]]


def test_what_was_measured_is_what_serves():
    model = Costs()
    found = tuned(model)
    asked = measured(model)
    rules = [rule for table in found.decision.tables for rule in table.rules]
    options = {option for rule in rules for option in rule.options if option.bound}
    assert options
    assert options <= asked
    assert {c for c in asked if c.bound} <= set(model.checked), "timed without a check"
    assert all(c.bound for c in asked if c.algorithm == COMPOSED)
    assert not [b for c in asked for b in c.bound if b.candidate.algorithm.startswith("of_")]


def test_compositions_come_after_all_other_searches():
    """So the records of a log without them are the first ones of a log with them."""
    with_them: list = []
    without: list = []
    tuned(Recorder(Costs(noise=0.01), with_them))
    tuned(Recorder(Costs(noise=0.01), without), OPTIONS, COMPOSED, "of_halves")
    scouted = [record for record in without if record.get("launch", 0) == 0]
    assert with_them[: len(scouted)] == scouted
    later = [one for one in with_them[len(scouted) :] if one.get("launch", 0) == 0]
    assert {record["collective"] for record in later} == {"allreduce"}
    assert all("of_" in json.dumps(record) for record in later)


def test_a_log_gives_the_same_decision_and_keeps_to_the_schema():
    records: list = []
    found = tuned(Recorder(Costs(noise=0.01), records))
    lines = [json.loads(json.dumps(record)) for record in records]
    for line in lines:
        validate("measurements", line)
    assert any(f"{COMPOSED}+reduce/" in spec for line in lines for spec in line.get("seconds", ()))
    again = tuned(LogSource(lines))
    assert (again.decision, again.outcomes) == (found.decision, found.outcomes)


def test_a_search_that_was_stopped_anywhere_goes_on_to_the_same_decision():
    records: list = []
    found = tuned(Recorder(Costs(), records))
    for cut in range(0, len(records), 5):
        known = list(records[:cut])
        resumed = tuned(LogSource(known, Recorder(Costs(), known)))
        assert resumed.decision == found.decision, f"cut after {cut} records"
        assert known == records


def test_the_decision_table_and_the_library_have_the_parts():
    found = tuned(Costs()).decision
    data = json.loads(found.to_text())
    validate("decision", data)
    assert DecisionTable.from_json(data) == found
    files = library_files(TOPOLOGY, catalogue(), found)
    for name in ("reduce_topology_kary", "reduce_binomial", "bcast_binomial"):
        assert f"src/{name}.c" in files
    assert "of_reduce_and_bcast */, {.parts = (const struct coll_part[]){{&" in files["src/rules.c"]


@pytest.mark.parametrize(("of_best", "is_measured"), [(TOO_SLOW + 0.01, False), (1.15, True)])
def test_what_its_parts_make_too_slow_is_not_measured(of_best, is_measured):
    slow = {**dict.fromkeys(FAST, NATIVE * of_best / 2), ("allreduce", "ring"): NATIVE}
    model = Costs(slow, more=0.1)  # it would win
    slow["reduce", "native"] = slow["bcast", "native"] = NATIVE * of_best / 2
    found = tuned(model)
    assert (COMPOSED in {c.algorithm for c in measured(model)}) == is_measured
    assert (choice(found, "other").algorithm == COMPOSED) == is_measured
    assert any(c.algorithm == COMPOSED for c in model.checked) == is_measured


@pytest.mark.parametrize(("share", "wins"), [(1.0, False), (0.99, False), (0.9, True)])
def test_a_tie_goes_to_what_is_no_composition(share, wins):
    found = tuned(Costs({**FAST, ("allreduce", "ring"): 2.0}, more=share, noise=0.001))
    assert (choice(found, "cluster").algorithm == COMPOSED) == wins


def test_half_of_a_call_is_counted_twice():
    """At latency alone two halves take twice as long: tried only where that time is unknown."""
    model = Costs()
    tuned(model)
    sizes = {r.size for r in model.asked for c in r.candidates if c.algorithm == "of_halves"}
    assert sizes == {SIZES[0]}


def test_a_collective_that_is_not_tuned_is_left_to_the_mpi_library():
    fast = {("reduce", "native"): 1.0, ("bcast", "native"): 1.0}
    found = tuned(Costs(fast), replace(OPTIONS, collectives=("allreduce",)))
    assert choice(found, "cluster").spec == f"{COMPOSED}+reduce/native+bcast/native"


@pytest.mark.parametrize("total", [None, 1e6])
def test_parts_that_are_not_tuned_take_their_lower_bound_at_least(total):
    """An allreduce by an allgather of whole vectors cannot win where they are long."""
    few, many = 64, 1 << 20
    wanted = {"allreduce/native", "allreduce/ring", "allreduce/of_allgather", "allgather/native"}
    chosen = tuple(one for one in CATALOGUE.algorithms if one.full_name in wanted)
    options = replace(OPTIONS, collectives=("allreduce",), sizes=(few, many), total=total)
    model = Costs({("allgather", "native"): 1.0})
    found = tune(TOPOLOGY, replace(CATALOGUE, algorithms=chosen), options, model, lambda: True)
    asked = {r.size for r in model.asked for c in r.candidates if c.algorithm == "of_allgather"}
    assert few in asked
    assert many not in asked
    assert choice(found, "cluster", few).spec == "of_allgather+allgather/native"


def test_a_composition_that_is_wrong_with_its_parts_is_never_timed():
    class Picky(Costs):
        def check(self, collective, given, communicator="whole"):
            checks = super().check(collective, given, communicator)
            return [replace(one, wrong=1) if one.candidate.bound else one for one in checks]

    model = Picky()
    found = tuned(model)
    assert COMPOSED in {check.candidate.algorithm for check in found.wrong}
    assert not [candidate for candidate in measured(model) if candidate.bound]
    assert choice(found, "cluster").algorithm == "native"


def test_a_composition_that_fails_is_left_out_everywhere():
    class Deadly(Costs):
        def measure(self, asked):
            for candidate in asked.candidates:
                if candidate.bound and asked.size == SIZES[-1]:
                    failed = ("allreduce", asked.size, candidate, "x", asked.communicator)
                    raise CandidateFailed(Failure(*failed))
            return super().measure(asked)

    model = Deadly()
    found = tuned(model, replace(OPTIONS, communicators=("whole", "2")))
    failures = [failure for outcome in found.outcomes for failure in outcome.failures]
    assert [failure.candidate.algorithm for failure in failures] == [COMPOSED]
    assert choice(found, "cluster", SIZES[0]).algorithm == "native"
    later = [asked for asked in model.asked if asked.communicator == "2"]
    assert later
    assert COMPOSED not in {c.algorithm for asked in later for c in asked.candidates}


@pytest.mark.parametrize("total", [None, 1e6])
def test_where_one_composition_fails_the_others_are_looked_at(total):
    """At the first size, where both have a look."""

    class Deadly(Costs):
        def measure(self, asked):
            for candidate in asked.candidates:
                if candidate.algorithm == "of_halves":
                    failed = ("allreduce", asked.size, candidate, "x", asked.communicator)
                    raise CandidateFailed(Failure(*failed))
            return super().measure(asked)

    options = replace(OPTIONS, total=total)
    records: list = []
    found = tuned(Recorder(Deadly(), records), options)
    failed = [f.candidate.algorithm for outcome in found.outcomes for f in outcome.failures]
    assert failed == ["of_halves"]
    assert choice(found, "cluster", SIZES[0]).algorithm == COMPOSED
    assert tuned(LogSource(records), options).decision == found.decision


class LeaderEnds(Costs):
    """The ring leads, and ends the job as soon as compositions are timed beside it."""

    def __init__(self) -> None:
        super().__init__(fast={**FAST, ("allreduce", "ring"): 3.0})
        self.ended = False

    def measure(self, asked):
        if asked.collective == "allreduce" and asked.size == SIZES[0]:
            rings = [one for one in asked.candidates if one.algorithm == "ring"]
            self.ended |= bool(rings) and any(one.bound for one in asked.candidates)
            if self.ended and rings:
                failed = ("allreduce", asked.size, rings[0], "x", asked.communicator)
                raise CandidateFailed(Failure(*failed))
        return super().measure(asked)


@pytest.mark.parametrize("total", [None, 1e6])
def test_what_led_may_end_the_job_beside_compositions(total):
    """The size is looked at again without it, and the tuning goes on."""
    options = replace(OPTIONS, total=total)
    records: list = []
    model = LeaderEnds()
    found = tuned(Recorder(model, records), options)
    assert model.ended
    failed = [f.candidate.algorithm for outcome in found.outcomes for f in outcome.failures]
    assert failed == ["ring"]
    assert choice(found, "cluster", SIZES[0]).algorithm == COMPOSED
    assert tuned(LogSource(records), options).decision == found.decision


class Ends(Costs):
    """One routine of bcast ends the job, from some command of some communicator on."""

    def __init__(self, routine: str, where: Callable[[Request], bool]):
        super().__init__()
        self.routine, self.where = routine, where
        self.ended = False

    def measure(self, asked):
        if asked.collective == "bcast" and self.where(asked):
            for candidate in asked.candidates:
                if candidate.algorithm == self.routine:
                    self.ended = True
                    failed = ("bcast", asked.size, candidate, "x", asked.communicator)
                    raise CandidateFailed(Failure(*failed))
        if self.ended:
            assert not any(self._is_made_of_it(c) for c in asked.candidates)
        return super().measure(asked)

    def check(self, collective, given, communicator="whole"):
        assert not self.ended or not any(self._is_made_of_it(c) for c in given)
        return super().check(collective, given, communicator)

    def _is_made_of_it(self, candidate: Candidate) -> bool:
        return f"bcast/{self.routine}" in bound_to(candidate)


@pytest.mark.parametrize(
    ("routine", "where"),
    [
        pytest.param("binomial", lambda asked: asked.communicator == "2", id="in scouting"),
        pytest.param("topology_linear", lambda asked: asked.launch == 2, id="in a launch"),
    ],
)
@pytest.mark.parametrize("total", [None, 1e6])
def test_a_routine_that_fails_serves_no_part_from_then_on(routine, where, total):
    options = replace(OPTIONS, communicators=("whole", "2"), total=total)
    records: list = []
    model = Ends(routine, where)
    found = tuned(Recorder(model, records), options)
    assert model.ended
    rules = [rule for table in found.decision.tables for rule in table.rules]
    assert not [o for rule in rules for o in rule.options if f"bcast/{routine}" in bound_to(o)]
    assert tuned(LogSource(records), options).decision == found.decision


class Crossing(Ends):
    """In bcast one routine is fast at the first size, another one at the last."""

    def measure(self, asked):
        short = asked.size <= SIZES[0]
        self.fast = {
            **FAST,
            ("bcast", "topology_linear"): 1.0 if short else 4.0,
            ("bcast", "binomial"): 4.0 if short else 1.0,
        }
        return super().measure(asked)


@pytest.mark.parametrize("total", [None, 1e6])
def test_a_routine_that_fails_in_a_duel_serves_no_part_of_what_was_concluded_before(total):
    options = replace(OPTIONS, total=total)
    routine = "topology_linear"
    assert choice(tuned(Crossing(routine, lambda _: False), options), "cluster", SIZES[0]).bound
    model = Crossing(routine, lambda asked: asked.size not in SIZES)
    records: list = []
    found = tuned(Recorder(model, records), options)
    assert model.ended
    rules = [rule for table in found.decision.tables for rule in table.rules]
    assert not [o for rule in rules for o in rule.options if f"bcast/{routine}" in bound_to(o)]
    assert tuned(LogSource(records), options).decision == found.decision


def test_specs_say_what_serves_the_parts():
    parts = (Bound("reduce", Candidate("native")), Bound("bcast", Candidate("k", (("r", 4),))))
    candidate = Candidate(COMPOSED, (), parts)
    assert candidate.spec == f"{COMPOSED}+reduce/native+bcast/k:r=4"
    assert Candidate.from_spec(candidate.spec) == candidate
    check = Check("allreduce", candidate, 9, 0, "")
    assert Check.from_json(check.to_json()) == check


@pytest.mark.parametrize("spec", ["a+b", "a+/b", "a+b/", "a+b/c+", "a+b/c/d", "+b/c", "a b/c"])
def test_what_is_no_spec_is_refused(spec):
    with pytest.raises(ValueError, match="is no routine"):
        Candidate.from_spec(spec)


@pytest.mark.parametrize(
    ("collective", "name", "size", "ranks", "sizes"),
    [
        ("allgather", "of_gather_and_bcast", 64, 16, [64, 1024]),
        ("allreduce", "of_reduce_scatter_block_and_allgather", 80, 4, [24, 24]),
        ("alltoall", "of_halves", 7, 4, [3, 4]),
        ("allreduce", "of_halves", 24, 4, [8, 16]),
        ("barrier", "of_allreduce", 0, 4, [1]),
        ("bcast", "of_scatter_and_allgather", 10, 4, [3, 3]),
    ],
)
def test_sizes_of_parts_follow_from_the_call(collective, name, size, ranks, sizes):
    parts = CATALOGUE.find(collective, name).parts
    assert [part_size(part, size, ranks) for part in parts] == sizes


#: Algorithms of the source that are made of tuned ones, and the collectives of their parts.
SOURCE = {
    "of_allgather": ("allgather",),
    "of_alltoall_and_allgather": ("alltoall", "allgather"),
    "of_reduce_scatter_block_and_allgather": ("reduce_scatter_block", "allgather"),
    "of_reduce_and_bcast": ("reduce", "bcast"),
}
#: Of each collective one that is fast for parts of few bytes, and one for longer ones.
SHORT_AND_LONG = {
    "allgather": ("bruck", "ring"),
    "alltoall": ("bruck", "pair"),
    "bcast": ("binomial", "pipelined_linear"),
    "reduce": ("binomial", "pipelined_linear"),
    "reduce_scatter_block": ("recursive_halving", "ring"),
}
FEW_BYTES = 1024


class BySize(Costs):
    """Each of the two takes a millisecond where it is the fast one, and others take eight."""

    def measure(self, asked):
        for collective, names in SHORT_AND_LONG.items():
            short, long = names if asked.size <= FEW_BYTES else names[::-1]
            if collective == asked.collective:
                self.fast = {**self.fast, (collective, short): 1.0, (collective, long): 2.0}
        return super().measure(asked)


@pytest.mark.parametrize("name", SOURCE)
def test_a_part_runs_what_the_table_has_for_its_own_size(name):
    """Faraj 2006, §4.1.1.4: at 4 KiB on six ranks a block of Rab2 has 688 bytes."""
    wanted = {f"{c}/{n}" for c in SOURCE[name] for n in SHORT_AND_LONG[c]} | {f"allreduce/{name}"}
    chosen = tuple(a for a in CATALOGUE.algorithms if a.full_name in wanted or a.name == "native")
    options = replace(OPTIONS, collectives=tuple(sorted({"allreduce", *SOURCE[name]})))
    options = replace(options, sizes=(64, FEW_BYTES, 4096))
    model = BySize({}, more=0.5)
    found = tune(TOPOLOGY, replace(CATALOGUE, algorithms=chosen), options, model, lambda: True)
    tables = {t.collective: t for t in found.decision.tables if t.communicator == "cluster"}
    for size in options.sizes:
        candidate = tables["allreduce"].choice(size)
        parts = CATALOGUE.find("allreduce", name).parts
        assert candidate.algorithm == name
        assert [bound.collective for bound in candidate.bound] == list(SOURCE[name])
        for bound, part in zip(candidate.bound, parts, strict=True):
            own = part_size(part, size, 6)
            assert bound.candidate == tables[part.collective].choice(own)
            short, long = SHORT_AND_LONG[part.collective]
            assert bound.candidate.algorithm == (short if own <= FEW_BYTES else long)
    validate("decision", json.loads(found.decision.to_text()))
