"""Where one rule serves calls of all sizes, it is nowhere slower than the native routine."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Candidate, CandidateFailed, Failure, Timing
from stagegen.measure.source import LogSource
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.field import Sample
from stagegen.tune.one_rule import choose_one, promising, ranked
from stagegen.tune.scope import Options
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import tune
from tests.library.schemas import validate
from tests.measure.fakes import Model
from tests.strategies import make_topology
from tests.tune.recorder import Recorder

CATALOGUE = load_catalogue()
TOPOLOGY = make_topology([4, 4], [0])
SHORT, MIDDLE, LONG = SIZES = (1, 1024, 65536)
OPTIONS = Options(("alltoallv",), SIZES, Timing(), 1.0)
RING, WINDOWS, OTHER = (Candidate(name) for name in ("ring", "own_windows", "pair"))


def samples(**times: tuple[float, ...]) -> dict[int, dict[Candidate, Sample]]:
    """Return samples of scouting, by the seconds of each routine at the sizes."""
    return {
        size: {Candidate(name): Sample((seconds[place],)) for name, seconds in times.items()}
        for place, size in enumerate(SIZES)
    }


@pytest.mark.parametrize(
    ("ring", "chosen"),
    [
        ((1.0, 1.0, 0.5), "ring"),
        ((1.02, 1.0, 0.5), "ring"),
        ((1.1, 1.0, 0.5), "native"),
        ((4.0, 1.0, 0.1), "native"),
        ((0.5, 1.0, 1.1), "native"),
        ((0.9, 1.0, 1.0), "ring"),
        ((0.98, 0.98, 0.98), "native"),
    ],
)
def test_what_is_slower_anywhere_does_not_serve(ring, chosen):
    assert choose_one(samples(native=(1.0, 1.0, 1.0), ring=ring), 0.03).algorithm == chosen


@pytest.mark.parametrize(
    ("ring", "gain", "chosen"),
    [
        ((1.0, 1.0, 0.8), 0.1, "ring"),
        ((1.01, 1.0, 0.8), 0.1, "native"),
        ((1.02, 1.0, 0.8), 0.01, "native"),
        ((1.0, 1.0, 0.92), 0.1, "native"),
    ],
)
def test_what_must_gain_more_may_lose_nothing(ring, gain, chosen):
    assert choose_one(samples(native=(1.0, 1.0, 1.0), ring=ring), gain).algorithm == chosen


def test_what_launches_have_not_timed_does_not_serve_if_they_have_timed_others():
    """A look is often lucky."""
    launches = dict.fromkeys(range(1, 6), (0.8,))
    given = samples(native=(1.0, 1.0, 1.0), ring=(0.8, 0.8, 0.8), own_windows=(0.7, 0.7, 0.7))
    for of_size in given.values():
        of_size[RING] = Sample((0.8,) * 5, launches=launches)
        of_size[NATIVE_CANDIDATE] = Sample((1.0,), dropped=True)
    assert choose_one(given, 0.03) == RING


@pytest.mark.parametrize(
    ("ratios", "chosen"),
    [((1.05, 0.96, 1.06, 0.98, 1.04), RING), ((1.05, 1.04, 1.06, 1.05, 1.04), NATIVE_CANDIDATE)],
    ids=["noise", "slower in each launch"],
)
def test_what_is_slower_by_noise_alone_serves(ratios, chosen):
    given = samples(native=(1.0, 1.0, 1.0), ring=(1.0, 1.0, 0.5))
    for size, of_size in given.items():  # one round in each launch
        times = ratios if size == SHORT else (0.5 if size == LONG else 1.0,) * 5
        for candidate, launched in ((RING, times), (NATIVE_CANDIDATE, (1.0,) * 5)):
            launches = {number: (one,) for number, one in enumerate(launched, start=1)}
            of_size[candidate] = Sample(launched, launches=launches)
    assert choose_one(given, 0.03) == chosen


def test_lucky_looks_at_short_calls_make_no_finalist():
    """The look at a ring is lucky where looks differ by 25 %; windows win with long blocks."""
    given = samples(native=(3.0, 1.0, 1.0), ring=(2.0, 1.0, 0.35), own_windows=(3.2, 1.0, 0.25))
    noises = {SHORT: 0.25, MIDDLE: 0.01, LONG: 0.01}
    assert promising(given, noises, 0.03) == [WINDOWS, RING]
    assert promising(given, dict.fromkeys(SIZES, 0.01), 0.03) == [RING, WINDOWS]


def test_the_best_of_all_sizes_together_serves():
    given = samples(native=(1.0,) * 3, ring=(1.0, 0.9, 0.5), own_windows=(0.7, 0.7, 0.7))
    assert ranked(given, 0.03) == [WINDOWS, RING, NATIVE_CANDIDATE]
    assert choose_one(given, 0.03) == WINDOWS


def test_what_was_not_timed_at_all_sizes_does_not_serve():
    given = samples(native=(1.0,) * 3, ring=(1.0, 0.9, 0.5))
    del given[SHORT][RING]
    assert ranked(given, 0.03) == [NATIVE_CANDIDATE]


def seconds(candidate: Candidate, size: int) -> float:
    """Return milliseconds: a ring is best with long blocks, and worst with short ones."""
    native = {SHORT: 1e-3, MIDDLE: 2e-3, LONG: 4e-2}[size]
    factor = {
        "native": (1.0, 1.0, 1.0),
        "ring": (3.0, 1.2, 0.5),
        "own_windows": (1.0, 0.95, 0.7),
    }.get(candidate.algorithm, (2.0, 2.0, 2.0))[SIZES.index(size)]
    value = dict(candidate.parameters).get("bytes_in_flight", 16384)
    return native * factor * (1.0 if value == 16384 or size < LONG else 1.2)


def tuned(source, **options):
    asked = replace(OPTIONS, **options)
    return tune(TOPOLOGY, CATALOGUE, asked, source, lambda: True)


def rule(found, kind: str = "cluster"):
    table = found.decision.table("alltoallv", kind, Shape(8, 1))
    assert table is not None
    (only,) = table.rules
    return only


@pytest.mark.parametrize("total", [None, 1e4])
def test_the_fastest_with_long_blocks_is_left_out_if_short_ones_take_longer(total):
    model = Model(seconds)
    found = tuned(model, total=total)
    assert rule(found).candidate == Candidate("own_windows", (("bytes_in_flight", 16384),))
    assert {asked.size for asked in model.asked} == set(SIZES)
    timed = {(r.size, c.algorithm) for r in model.asked if r.launch for c in r.candidates}
    assert {(size, "own_windows") for size in SIZES} <= timed
    assert (LONG, "ring") not in timed
    validate("decision", json.loads(found.decision.to_text()))


def test_what_short_calls_rule_out_is_not_looked_at_with_long_ones():
    model = Model(seconds)
    tuned(model)
    asked = {(asked.size, c.algorithm) for asked in model.asked for c in asked.candidates}
    assert {(SHORT, "ring"), (SHORT, "own_windows"), (LONG, "own_windows")} <= asked
    assert not {(MIDDLE, "ring"), (LONG, "ring")} & asked


def test_values_that_are_best_for_long_blocks_are_timed_with_short_ones():
    """Two messages in flight are best with long blocks, and slower than native with short ones."""
    short, long = {2: 1.5, 4: 1.0}, {2: 0.5, 4: 0.6}

    def cost(candidate: Candidate, size: int) -> float:
        value = dict(candidate.parameters).get("in_flight", 0)
        throttled = long.get(value, 0.9) if size == LONG else short.get(value, 0.98)
        factor = {"native": 1.0, "throttled_spreading": throttled}.get(candidate.algorithm, 3.0)
        return 1e-3 * factor * (1 + size / 1e3)

    found = rule(tuned(Model(cost))).candidate
    assert found == Candidate("throttled_spreading", (("in_flight", 4),))


@pytest.mark.parametrize("failing", ["own_windows", "simple"])
@pytest.mark.parametrize("at", SIZES)
@pytest.mark.parametrize("total", [None, 1e4])
def test_what_fails_is_left_out_and_all_others_are_timed_at_all_sizes(failing, at, total):
    class Deadly(Model):
        def measure(self, asked):
            for candidate in asked.candidates:
                if candidate.algorithm == failing and asked.size == at:
                    failed = ("alltoallv", asked.size, candidate, "x", asked.communicator)
                    raise CandidateFailed(Failure(*failed))
            return super().measure(asked)

    def cost(candidate: Candidate, size: int) -> float:
        fast = {"own_windows": 0.5, "simple": 0.7, "native": 1.0}
        return 1e-3 * fast.get(candidate.algorithm, 2.0) * (1 + size / 1e3)

    (other,) = {"own_windows", "simple"} - {failing}
    assert rule(tuned(Deadly(cost), total=total)).candidate.algorithm == other


def test_if_what_was_passed_on_loses_with_long_blocks_all_others_are_looked_at():
    """A ring wins on all ranks, and another routine on four of them."""

    def cost(candidate: Candidate, size: int, few: bool) -> float:
        fast = {"native": 1.0, "ring": 1.5 if few and size == LONG else 0.6, "simple": 0.8}
        return 1e-3 * fast.get(candidate.algorithm, 2.0) * (1 + size / 1e3)

    class Two(Model):
        def measure(self, asked):
            self.cost = lambda c, size: cost(c, size, asked.communicator == "4")
            return super().measure(asked)

    decision = tuned(Two(seconds), communicators=("whole", "4")).decision
    served = [decision.table("alltoallv", "hosts", Shape(ranks, 1)) for ranks in (8, 4)]
    assert [table.rules[0].candidate.algorithm for table in served] == ["ring", "simple"]


def test_other_communicators_begin_with_what_serves_all_sizes():
    model = Model(seconds)
    found = tuned(model, communicators=("whole", "4"))
    own = found.decision.table("alltoallv", "hosts", Shape(4, 1))
    assert own is not None
    assert own.rules[0].candidate.algorithm == "own_windows"
    asked = {c.algorithm for r in model.asked if r.communicator == "4" for c in r.candidates}
    assert "own_windows" in asked
    assert "ring" not in asked


def test_a_log_gives_the_same_decision_and_goes_on_wherever_it_ends():
    records: list = []
    found = tuned(Recorder(Model(seconds), records))
    for cut in range(0, len(records) + 1, 7):
        known = list(records[:cut])
        again = tuned(LogSource(known, Recorder(Model(seconds), known)))
        assert again.decision == found.decision, f"cut after {cut} records"
