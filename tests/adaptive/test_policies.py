"""Selection policies: the source's numbers, and what holds for whatever they hear."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.tools import adaptive_policies
from stagegen.adaptive.policies import Entrant, Policy, Settings, default_policy, policy_names
from stagegen.adaptive.replay import replay, told
from stagegen.adaptive.trace import COURSES, SOURCE_GROUPS, Trace, source_entrants, synthetic
from stagegen.catalogue import load_catalogue
from stagegen.errors import InputError
from tests.strategies import examples

SOURCE = ("star-basic", "star-enhanced")
SEEDS = range(1, 9)


def calls_until_selected(name, entrants, seconds):
    """Play a policy whose candidates take constant times."""
    policy = Policy(name, entrants)
    stage, calls, order = policy.first(), 0, []
    while not stage.is_monitoring:
        calls += stage.calls
        order.append(stage.candidate)
        times = [seconds[stage.candidate]] * stage.calls
        stage = policy.next(times, times)
    return calls, stage.candidate, order


#: Table 4.13: collective, bytes, the group of the algorithm that was selected, basic, enhanced.
TABLE_4_13 = [
    ("alltoall", 2048, 1, 90, 50),
    ("alltoall", 128 << 10, 4, 90, 60),
    ("allgather", 2048, 1, 120, 60),
    ("allgather", 128 << 10, 6, 120, 60),
    ("allreduce", 2048, 2, 200, 110),
    ("allreduce", 128 << 10, 2, 200, 110),
]


@pytest.mark.parametrize(("collective", "size", "group", "basic", "enhanced"), TABLE_4_13)
def test_invocations_until_selection_are_those_of_table_4_13(
    collective, size, group, basic, enhanced
):
    entrants = source_entrants(collective, size)
    members = [i for i, one in enumerate(entrants) if one.group == group]
    seconds = [1.0 + 0.01 * i for i in range(len(entrants))]
    for i in members:
        seconds[i] = 0.5
    seconds[members[-1]] = 0.4
    assert calls_until_selected("star-basic", entrants, seconds)[:2] == (basic, members[-1])
    calls, chosen, order = calls_until_selected("star-enhanced", entrants, seconds)
    assert (calls, chosen) == (enhanced, members[-1])
    assert len(set(order)) == len(order)


@pytest.mark.parametrize(
    ("collective", "count"),
    [("alltoall", 13), ("allgather", 12), ("allgatherv", 12), ("allreduce", 20)],
)
def test_the_catalogue_marks_the_sets_of_the_source(collective, count):
    marks = [
        one.adaptive
        for one in load_catalogue().algorithms
        if one.collective == collective and one.adaptive is not None and one.adaptive.group
    ]
    assert sum(not one.without_hosts for one in marks) == count
    groups = {one.group for one in marks}
    assert {one.group for one in marks if one.representative} == groups


def test_a_group_that_is_entered_later_is_examined_as_a_whole_before_it_is_used():
    entrants = [Entrant(group=g, is_representative=r) for g, r in ((1, 1), (2, 1), (2, 0), (2, 0))]
    policy = Policy("star-enhanced", entrants)
    seconds = [1.0, 1.5, 1.2, 1.4]
    stage, seen = policy.first(), []
    for _ in range(12):
        seen.append((stage.candidate, stage.is_monitoring))
        if stage.is_monitoring and stage.candidate == 0:
            seconds[0] = 3.0
        stage = policy.next([seconds[stage.candidate]] * stage.calls, [1.0] * stage.calls)
    assert seen[:6] == [(0, False), (1, False), (0, True), (2, False), (3, False), (2, True)]
    assert {one for one, _ in seen[5:]} == {2}


@pytest.mark.parametrize("name", SOURCE)
def test_a_period_doubles_up_to_its_bound_and_is_short_again_after_a_special_event(name):
    policy = Policy(name, [Entrant(group=1), Entrant(group=2)], Settings(delta_bound=12))
    stage, periods = policy.first(), []
    seconds = [1.0, 2.0]
    while len(periods) < 5:
        if stage.is_monitoring:
            periods.append(stage.calls)
        times = [seconds[stage.candidate]] * stage.calls
        stage = policy.next(times, times)
    assert periods == [20, 40, 80, 120, 120]
    event = [100.0] * (stage.calls - 10) + [1.0] * 10
    stage = policy.next(event, event)
    assert (stage.candidate, stage.calls) == (0, 20)
    assert "event" in stage.why
    slow = [4.0] * stage.calls
    stage = policy.next(slow, slow)
    assert (stage.candidate, stage.calls) == (1, 20)


entrant = st.builds(
    Entrant,
    st.sampled_from([0.0, 0.001, 0.002, 0.01]),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
times = st.floats(0, 10, allow_nan=False)


@examples(40)
@given(
    name=st.sampled_from(policy_names()),
    entrants=st.lists(entrant, min_size=1, max_size=8),
    heard=st.lists(st.lists(times, min_size=1, max_size=6), min_size=1, max_size=60),
    bound=st.integers(2, 8),
    short=st.booleans(),
)
def test_policies_choose_a_candidate_within_bounds_and_equal_policies_choose_alike(
    name, entrants, heard, bound, short
):
    chosen = Settings(iterations=5, delta_bound=bound)
    twins = [Policy(name, entrants, chosen) for _ in range(2)]
    assert twins[0].bytes <= 4096 + 1024 * len(entrants)
    stages = [one.first() for one in twins]
    for given_times in heard:
        assert stages[0] == stages[1]
        stage = stages[0]
        assert 0 <= stage.candidate < len(entrants)
        assert 1 <= stage.calls <= bound * 5 or (not stage.is_monitoring and stage.calls <= 64)
        assert stage.why
        count = 1 if short else stage.calls
        said = [given_times[i % len(given_times)] for i in range(count)]
        stages = [one.next(said, said) for one in twins]


def selected(name, trace):
    """What a policy chose first, and what it costs on the average of the trace against the best."""
    played = replay(trace, name)
    after = played.overheads.selected_after
    index = played.stages[-1].candidate
    mean = sum(played.trace.mean_s[index]) / trace.calls
    return after, mean / (played.best_s / trace.calls)


def bound_of(name, entrants, iterations=10):
    """The calls until selection that the docs state."""
    if name in SOURCE:
        return iterations * len(entrants)
    if name == "guard":
        return 0
    return 2 * len(entrants) * (len(entrants).bit_length() + 1) if name == "halving" else 500


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", policy_names())
def test_with_stationary_noise_each_selects_nearly_the_best_in_the_stated_number_of_calls(
    name, seed
):
    trace = synthetic("stationary", seed=seed)
    after, ratio = selected(name, trace)
    assert after is not None
    assert after <= bound_of(name, trace.entrants)
    slack = 1.25 if name in (*SOURCE, "guard") else 1.1  # no native; grouping; no search
    assert ratio <= slack


@pytest.mark.parametrize("collective", SOURCE_GROUPS)
def test_what_is_known_saves_four_fifths_of_the_communication_of_basic(collective):
    basic = known = 0.0
    losses = []
    for seed in SEEDS:
        trace = synthetic("stationary", seed=seed, collective=collective)
        star, source = replay(trace, "star"), replay(trace, "star-basic")
        basic += source.overheads.excess_s
        known += star.overheads.excess_s
        losses.append(selected("star", trace)[1] - selected("star-basic", trace)[1])
    assert known <= basic / 5
    assert max(losses) <= 0.02


def test_long_stages_are_heard_as_means_and_last_calls():
    times = [float(i) for i in range(100)]
    heard = told(times, 10)
    assert len(heard) == len(times)
    assert len(set(heard)) == 30 + 10
    assert heard[-10:] == times[-10:]
    assert sum(heard) == pytest.approx(sum(times))
    assert told(times, 10, rooted=True) == times[-10:]
    assert told(times[:42], 10, rooted=True) == times[:42]


def after_a_burst(seed):
    """Return how often each of three candidates serves the last of 1,500 calls.

    In calls 100 to 140, all take three times as long.
    """
    usual, calls = (1.0, 1.15, 1.3), range(1500)
    random = Random(seed)
    times = tuple(
        tuple(one * random.lognormvariate(0, 0.02) * (3 if 100 <= n < 140 else 1) for n in calls)
        for one in usual
    )
    entrants = tuple(Entrant(known_s=one) for one in usual)
    trace = Trace("burst", "alltoall", 1024, ("a", "b", "c"), entrants, times, times)
    played = replay(trace, "star")
    served = [stage.candidate for stage in played.stages for _ in range(stage.calls)]
    return [served[-300:].count(candidate) for candidate in range(3)]


@pytest.mark.parametrize("seed", range(8))
def test_what_was_left_in_a_burst_serves_again(seed):
    assert after_a_burst(seed)[0] > 0.9 * 300


def tried(entrants, seconds):
    """The candidates that the default policy tries before it has selected, in their order."""
    _, _, order = calls_until_selected("star", entrants, seconds)
    return list(dict.fromkeys(order))


NEAR = [1 + 0.015 * i for i in range(13)]


def test_trials_that_confirm_what_is_known_leave_out_what_is_known_to_be_slower():
    entrants = [Entrant(known_s=seconds) for seconds in NEAR]
    off = [1.3, 1.32, *[1.3] * 11]
    seconds = [factor * known for factor, known in zip(off, NEAR, strict=True)]
    assert tried(entrants, seconds) == [0, 1, 2]


def test_the_more_known_times_err_the_more_is_tried():
    entrants = [Entrant(known_s=seconds) for seconds in NEAR]
    counts = []
    for error in (1.32, 1.35, 1.4, 1.5, 1.6, 1.8):
        off = [1.3, error, *[1.3] * 11]
        seconds = [factor * known for factor, known in zip(off, NEAR, strict=True)]
        counts.append(len(tried(entrants, seconds)))
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (3, len(NEAR))
    assert len(set(counts)) > 4, "bit by bit"


def test_one_of_each_group_is_tried_first_and_then_the_group_of_the_fastest():
    """The table's choice and the native routine, too; known times err by as much as they differ."""
    groups = [1, 1, 2, 2, 3, 3, 0, 0]
    known = [1.0, 1.01, 1.02, 1.03, 1.05, 1.04, 1.06, 1.07]
    seconds = [2.0, 0.5, 0.6, 2.2, 1.7, 2.0, 1.9, 1.8]
    entrants = [
        Entrant(known_s=one, group=group, is_native=index == 7)
        for index, (one, group) in enumerate(zip(known, groups, strict=True))
    ]
    assert tried(entrants, seconds)[:6] == [0, 2, 5, 6, 7, 3]


def test_the_best_group_is_tried_also_if_the_native_routine_is_faster_than_who_stands_for_it():
    entrants = [
        Entrant(known_s=1.0, is_native=True),
        *(Entrant(known_s=s, group=g) for s, g in ((1.01, 2), (1.06, 6), (1.02, 2), (1.09, 2))),
    ]
    assert tried(entrants, [0.9, 1.0, 1.1, 0.8, 1.2]) == [0, 1, 2, 3, 4]


def test_the_others_of_a_slower_group_are_not_tried():
    entrants = [Entrant(known_s=s, group=g) for s, g in ((1, 1), (1.01, 1), (1.02, 2), (1.03, 2))]
    assert tried(entrants, [1.0, 1.3, 1.6, 1.4]) == [0, 2, 1]


def test_all_of_a_group_are_tried_if_nothing_is_known_of_them():
    entrants = [Entrant(group=group) for group in (1, 1, 1, 2, 2, 2)]
    assert sorted(tried(entrants, [1.0, 2.0, 2.0, 2.0, 0.5, 2.0])) == list(range(6))


def test_what_was_not_tried_is_predicted_in_proportion_where_calls_are_faster_than_known():
    """All take a fifth of what is known: the order stays, so the fastest one serves at once."""
    entrants = [Entrant(known_s=s, group=g) for s, g in ((10, 1), (12, 2), (14, 3), (11, 2))]
    _, serves, order = calls_until_selected("star", entrants, [2.0, 2.4, 2.8, 2.2])
    assert serves == 0
    assert 3 not in order or order.index(3) < 3


def test_after_the_trials_the_fastest_serves_and_none_is_tried_again():
    entrants = [Entrant(known_s=1.0) for _ in range(8)]
    calls, _, order = calls_until_selected("star", entrants, [1.0, *[1.9, 1.1] * 3, 3.0])
    assert order == [*range(8), 0, 0]
    assert calls == 3 * 8 + 2 + 4


def test_what_every_process_adds_to_each_call_is_no_error_of_what_is_known():
    entrants = [Entrant(known_s=seconds) for seconds in NEAR]
    assert tried(entrants, [seconds + 5.0 for seconds in NEAR]) == [0, 1, 2]


def test_trials_that_contradict_what_is_known_leave_out_nothing():
    entrants = [Entrant(known_s=seconds) for seconds in NEAR]
    assert sorted(tried(entrants, NEAR[::-1])) == list(range(len(NEAR)))


def test_the_native_routine_is_tried_however_slow_it_is_known_to_be():
    entrants = [*(Entrant(known_s=s) for s in NEAR[:4]), Entrant(known_s=1.4, is_native=True)]
    assert tried(entrants, [*NEAR[:4], 0.5])[:4] == [0, 1, 2, 4]


def test_a_replay_of_a_collective_with_a_root_goes_by_the_maximum():
    """The first candidate lets most ranks go early, and the last one late."""
    calls, entrants = 400, (Entrant(), Entrant())
    mean, most = ((1.0,) * calls, (1.5,) * calls), ((3.0,) * calls, (2.0,) * calls)
    trace = Trace("made", "bcast", 8, ("early", "even"), entrants, mean, most)
    by_mean, by_maximum = (replay(trace, "star-basic", rooted=one) for one in (False, True))
    assert (by_mean.last, by_mean.best, by_mean.best_s) == ("early", "early", calls)
    assert (by_maximum.last, by_maximum.best, by_maximum.best_s) == ("even", "even", 2 * calls)


@pytest.mark.parametrize("course", COURSES)
def test_equal_seeds_make_equal_traces_and_others_do_not(course):
    assert synthetic(course, calls=50) == synthetic(course, calls=50)
    assert synthetic(course, calls=50) != synthetic(course, calls=50, seed=2)


def test_an_unknown_policy_is_refused_with_the_names_of_all():
    with pytest.raises(InputError, match=r"star-basic.*thompson"):
        Policy("nonsense", [Entrant()])
    assert Policy("star", [Entrant()]).name == default_policy()


def test_the_page_has_the_rows_that_the_policies_make_now():
    text = adaptive_policies.PAGE.read_text(encoding="utf-8")
    assert f"`star` stands for `{default_policy()}`" in text
    for row in adaptive_policies.rows(["degraded", "heavy-tail"]):
        assert row in text
