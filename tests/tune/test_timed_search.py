"""Whatever a search asks for, looks and duels too, a repetition has the calls that timing says."""

from __future__ import annotations

from functools import lru_cache

import pytest

from stagegen.measure.iterations import PRESETS, Iterations
from stagegen.measure.records import Candidate, Request
from stagegen.measure.timing import CALLS_LEAST, Timing
from stagegen.tune.scope import Options
from stagegen.tune.tuner import tune
from tests.measure.fakes import Model
from tests.tune.test_tuner import TOPOLOGY, catalogue

SIZES = (64, 8192, 1 << 19)

#: Seconds of a call: from microseconds up to where a call takes longer than a repetition must.
SPEEDS = (1e-5, 1e-3, 0.05, 4.0)


@lru_cache
def asked(timing: Timing, speed: float) -> tuple[Request, ...]:
    """All requests of a tuning in which a call of the native routine takes ``speed`` seconds."""

    def cost(candidate: Candidate, size: int) -> float:
        share = {"native": 1.0, "binomial": 0.9, "topology_binary": 0.95}
        return speed * share.get(candidate.algorithm, 1.2)

    model = Model(cost, noise=0.05)
    tune(TOPOLOGY, catalogue(), Options(("bcast",), SIZES, timing, 100.0), model, lambda: True)
    assert {request.size for request in model.asked} >= set(SIZES)
    return tuple(model.asked)


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("mechanism", ["mpptest", "computation"])
def test_without_a_barrier_every_repetition_has_several_calls(mechanism, speed):
    assert all(one.calls >= CALLS_LEAST for one in asked(Timing(mechanism), speed))


def test_with_a_barrier_long_calls_are_made_one_at_a_time():
    assert all(one.calls == 1 for one in asked(Timing("barrier"), 4.0))


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("mechanism", ["mpptest", "barrier"])
@pytest.mark.parametrize("iterations", [PRESETS["source"], Iterations.parse("3,8KiB:2")])
def test_iterations_by_size_hold_everywhere(mechanism, speed, iterations):
    timing = Timing(mechanism, iterations=iterations)
    assert all(one.calls == iterations.at(one.size) for one in asked(timing, speed))


@pytest.mark.parametrize("metric", ["slowest", "mean"])
def test_every_request_names_mechanism_and_metric(metric):
    timing = Timing("computation", 25.0, metric)
    assert {one.timing for one in asked(timing, 1e-3)} == {timing}
