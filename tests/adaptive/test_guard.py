"""The guard: when it tries rivals, what it pays for, and how rarely ranks meet for it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from statistics import fmean

import pytest

from stagegen.adaptive.policies import Entrant, Policy, Settings
from stagegen.adaptive.replay import replay
from stagegen.adaptive.trace import SOURCE_GROUPS, Trace, synthetic

SEEDS = range(1, 9)


def test_guard_leaves_a_degraded_choice_within_50_calls_and_goes_back():
    trace = synthetic("degraded", calls=2000, seed=2)
    played = replay(trace, "guard")
    served = [stage.candidate for stage in played.stages for _ in range(stage.calls)]
    assert set(served[:500]) == {0}
    assert 0 not in served[550:559]
    assert served[-1] == 0


@pytest.mark.parametrize("collective", SOURCE_GROUPS)
def test_guard_takes_at_most_one_percent_where_processes_come_late(collective):
    """Their waiting varies from call to call, and no rival has less of it."""
    for seed in SEEDS:
        trace = synthetic("late", calls=2000, seed=seed, collective=collective)
        played = replay(trace, "guard")
        assert played.seconds <= 1.01 * sum(trace.mean_s[0])


def served(course, rival, known=1.1):
    """Return the candidate of each call: the table's choice takes as course says."""
    random = Random(1)
    calls = range(3000)
    times = (
        tuple(course(n) * random.lognormvariate(0, 0.02) for n in calls),
        tuple(rival * random.lognormvariate(0, 0.02) for n in calls),
    )
    entrants = (Entrant(known_s=1.0), Entrant(known_s=known))
    trace = Trace("steps", "alltoall", 1024, ("a", "b"), entrants, times, times)
    played = replay(trace, "guard")
    return [stage.candidate for stage in played.stages for _ in range(stage.calls)]


def test_guard_tries_rivals_at_once_where_calls_are_slower_than_before_the_last_trial():
    """The first trial found nothing and took 3 s longer: it is not paid after 200 calls."""
    order = served(lambda n: 1.3 if 50 <= n < 200 else 4.0 if n >= 200 else 1.0, 2.6)
    assert order[50:200].count(1) == 3
    assert order[250:300].count(1) > 40


def test_guard_pays_for_a_trial_before_the_next_one_of_the_same_slowness():
    """Steps up and down: each is slow enough for a trial, none is worse than the first."""
    order = served(lambda n: 1.3 if n // 25 % 2 else 1.0, 2.6)
    assert 1 <= order.count(1) // 3 <= 5, "trials of three calls"


@pytest.mark.parametrize(("known", "tried"), [(1.2, True), (1.4, False)])
def test_guard_tries_no_rival_that_was_slower_by_more_than_calls_are_now(known, tried):
    """What slows calls down makes no routine faster."""
    order = served(lambda n: 1.3 if n >= 50 else 1.0, 2.0, known)
    assert (1 in order) == tried


def test_guard_tries_rivals_again_once_earlier_trials_are_paid():
    order = served(lambda n: 1.3 if n in range(50, 75) or n in range(2500, 2525) else 1.0, 2.6)
    assert 1 in order[50:100]
    assert 1 in order[2500:2550]


def test_guard_changes_if_late_processes_make_another_routine_better():
    """From call 300 on, all wait for the last process with one; with the other, few of them do."""
    random = Random(4)
    waits = [random.uniform(0, 2) if n >= 300 else 0.0 for n in range(1500)]
    noise = [[random.lognormvariate(0, 0.02) for _ in waits] for _ in range(2)]
    times = (
        tuple(error + wait for error, wait in zip(noise[0], waits, strict=True)),
        tuple(1.1 * error + wait / 8 for error, wait in zip(noise[1], waits, strict=True)),
    )
    entrants = (Entrant(known_s=1.0), Entrant(known_s=1.1))
    trace = Trace("skewed", "alltoall", 1024, ("a", "b"), entrants, times, times)
    order = [one.candidate for one in replay(trace, "guard").stages for _ in range(one.calls)]
    assert set(order[:300]) == {0}
    assert order[400:].count(1) > 0.9 * len(order[400:])


def test_guard_searches_nothing_while_the_choice_is_as_measured():
    trace = synthetic("stationary", seed=3)
    played = replay(trace, "guard")
    assert {stage.candidate for stage in played.stages} == {0}


@pytest.mark.parametrize("meeting_ms", [0.1, 1.0, 20.0])
def test_watching_takes_at_most_half_a_percent_of_the_time(meeting_ms):
    """Not less than half of ITER calls are watched, and at the end of a job a period is begun."""
    trace = replace(synthetic("stationary", calls=4000, seed=3), meeting_s=meeting_ms / 1e3)
    played = replay(trace, "guard")
    lengths = [stage.calls for stage in played.stages if stage.is_monitoring]
    meetings = len(lengths) * trace.meeting_s
    assert min(lengths[:-1]) >= 5
    assert meetings <= 0.005 * played.seconds + trace.meeting_s or set(lengths[:-1]) == {5}
    assert len(lengths) > 4


@pytest.mark.parametrize(
    ("delay", "least", "most"), [(0, 5, 5.5), (0.0005, 9, 13), (0.05, 150, 250)]
)
def test_a_meeting_costs_what_it_delays_the_calls_that_it_goes_on_with(delay, least, most):
    """The second of two such calls is delayed; a delay is at most a call."""
    random = Random(4)
    policy = Policy("guard", [Entrant(known_s=0.01)] * 2, Settings(meeting_s=1e-9))
    stage, lengths = policy.first(), []
    for i in range(60):
        times = [0.01 * random.lognormvariate(0, 0.01) for _ in range(stage.calls)]
        times[1] += delay if i else 0
        stage = policy.next(times, times)
        lengths.append(stage.calls)
    assert least <= fmean(lengths[20:]) <= most


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_meeting_is_paid_at_the_price_of_its_time(factor):
    """The price of meetings changes half-way: earlier ones are not priced anew."""
    policy = Policy("guard", [Entrant(known_s=0.01)] * 2, Settings(meeting_s=0.001))

    def period(stage):
        times = [0.01] * stage.calls
        return policy.next(times, times)

    stage = policy.first()
    for _ in range(100):
        stage = period(stage)
    assert stage.calls == pytest.approx(20, abs=1)
    policy._problem.hidden_s *= factor
    lengths = []
    for _ in range(10):
        stage = period(stage)
        lengths.append(stage.calls)
    assert lengths[2:] == pytest.approx([20 * factor] * 8, abs=2)
