"""Searches in which routines end the job when they are timed."""

from __future__ import annotations

import pytest

from stagegen.catalogue import Parameter
from stagegen.measure.records import CandidateFailed, Failure
from stagegen.measure.source import LogSource
from tests.measure.fakes import Model
from tests.tune.recorder import Recorder
from tests.tune.test_race_search import (
    ALGORITHMS,
    _request_of,
    algorithm,
    by_name,
    line,
    noisy,
    rules,
    search,
)


class Deadly(Model):
    """Some algorithms end the job from a size on."""

    def __init__(self, *args, deadly: dict[str, int], **more):
        super().__init__(*args, **more)
        self.deadly = deadly

    def measure(self, asked):
        for candidate in asked.candidates:
            if asked.size >= self.deadly.get(candidate.algorithm, 1 << 40):
                failure = Failure(asked.collective, asked.size, candidate, "the job has ended")
                raise CandidateFailed(failure)
        return super().measure(asked)


def deadly(seed: int, **sizes: int) -> Deadly:
    model = noisy(seed)
    return Deadly(model.cost, noise=0.1, seed=seed, deadly=sizes)


def test_a_routine_that_fails_at_one_size_is_never_chosen_at_any():
    costs = by_name(native=line(1, 0), quick=line(1e-3, 0), ring=line(0.5, 0))
    model = Deadly(costs, deadly={"quick": 4096})
    outcome = search(model, [algorithm(n) for n in ("native", "quick", "ring")])
    assert rules(outcome) == [(0, "ring")]
    (failure,) = outcome.failures
    assert (failure.candidate.algorithm, failure.size) == ("quick", 4096)


def test_a_routine_that_fails_between_two_sizes_is_never_chosen_at_any():
    costs = by_name(native=line(1e-3, 1e-7), quick=line(1e-4, 2e-7), ring=line(5e-4, 2e-7))

    class Between(Deadly):
        def measure(self, asked):
            self.deadly = {} if asked.size in (1, 65536) else {"quick": 0}
            return super().measure(asked)

    model = Between(costs, deadly={})
    records: list = []
    algorithms = [algorithm(n) for n in ("native", "quick", "ring")]
    outcome = search(Recorder(model, records), algorithms, sizes=(1, 65536))
    assert [name for _, name in rules(outcome)] == ["ring", "native"]
    assert [failure.candidate.algorithm for failure in outcome.failures] == ["quick"]
    assert search(LogSource(records), algorithms, sizes=(1, 65536)) == outcome


def test_a_routine_fails_as_a_whole_also_when_its_parameters_are_tuned():
    parameter = Parameter("segment", "bytes", (1, 8, 64), 8)
    model = Deadly(by_name(native=line(1, 0), linear=line(0.1, 0)), deadly={"linear": 64})
    linear = algorithm("linear", parameters=(parameter,))
    outcome = search(model, [algorithm("native"), linear])
    assert rules(outcome) == [(0, "native")]
    assert [failure.size for failure in outcome.failures] == [64]


DEADLY = {"a0": 64, "a1": 4096, "a2": 4096, "a3": 131072}


@pytest.mark.parametrize("seed", range(3))
def test_a_log_with_failures_replays_to_the_same_decision(seed):
    records: list = []
    outcome = search(Recorder(deadly(seed, **DEADLY), records), ALGORITHMS)
    assert outcome.failures
    assert search(LogSource(records), ALGORITHMS) == outcome


def test_a_search_with_failures_that_was_stopped_anywhere_goes_on():
    records: list = []
    outcome = search(Recorder(deadly(1, **DEADLY), records), ALGORITHMS)
    for cut in range(0, len(records), 2):
        known = list(records[:cut])
        model = deadly(1, **DEADLY)
        model.asked += [_request_of(one) for one in known if one["kind"] == "measurement"]
        resumed = search(LogSource(known, Recorder(model, known)), ALGORITHMS)
        assert resumed == outcome, f"cut after {cut} records"
        assert known == records


class FailsLate(Model):
    """One algorithm ends the job in the second of the launches that decide."""

    def __init__(self, costs, late: str):
        super().__init__(costs)
        self.late = late

    def measure(self, asked):
        for candidate in asked.candidates:
            if candidate.algorithm == self.late and asked.launch == 2:
                failure = Failure(asked.collective, asked.size, candidate, "the job has ended")
                raise CandidateFailed(failure)
        return super().measure(asked)


@pytest.mark.parametrize(
    ("late", "chosen", "first"),
    [("near", "quick", 1), ("quick", "near", 2)],
)
def test_only_where_a_routine_led_is_all_timed_again_without_it(late, chosen, first):
    costs = by_name(native=line(6e-4, 6e-7), quick=line(5e-4, 5e-7), near=line(5.1e-4, 5.1e-7))
    model = FailsLate(costs, late)
    records: list = []
    algorithms = [algorithm(n) for n in ("native", "quick", "near")]
    outcome = search(Recorder(model, records), algorithms)
    assert rules(outcome) == [(0, chosen)]
    assert [failure.candidate.algorithm for failure in outcome.failures] == [late]
    for samples in outcome.samples.values():
        assert {c.algorithm for c in samples} == {"native", chosen}
        (sample,) = (one for c, one in samples.items() if c.algorithm == chosen)
        assert min(sample.launches) == first
    assert search(LogSource(records), algorithms) == outcome
