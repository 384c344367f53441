"""How long commands may take: generous where nothing is known, then what was learned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.measure.records import Candidate, Measurement
from stagegen.measure.timing import Timing
from stagegen.measure.watchdog import Watchdog
from tests.measure.fakes import request

RING, FLAT = Candidate("ring"), Candidate("flat")


def watchdog(seconds_per_byte: float = 0.0) -> Watchdog:
    return Watchdog(lambda name, size: seconds_per_byte * size)


def answer(*seconds: float, size: int = 1024, candidate: Candidate = RING) -> Measurement:
    return Measurement(request(candidate, size=size, repetitions=len(seconds)), (seconds,))


def test_what_was_measured_sets_the_limit_and_never_above_the_first_one():
    one = watchdog()
    assert one.of(request(RING), 1.0) == 30.0
    assert one.of(request(RING), 1.0, 1) == one.of(request(RING), 1.0, 2) == 120.0
    one.measured(answer(0.5, 2.0), 2.5)
    assert one.of(request(RING), 1.0) == pytest.approx(30.0)
    assert one.of(request(RING, repetitions=3), 1.0) == pytest.approx(70.0)
    assert one.of(request(RING, repetitions=1000), 1.0) == 120.0


def test_a_check_may_take_as_long_as_its_calls_should():
    """A quick check tells nothing of one whose calls are of 16 KiB over slow links."""
    one = watchdog(1e-3)
    one.checked(0.5)
    assert one.of_check("alltoall", 1.0) > 4 * 16.384
    assert watchdog().of_check("alltoall", 1.0) == 30.0


def test_an_attempt_after_a_failure_may_take_longer():
    one = watchdog()
    one.measured(answer(0.1), 0.1)
    assert one.of(request(RING), 1.0) == pytest.approx(11.0)
    assert one.of(request(RING), 1.0, 1) == pytest.approx(44.0)
    assert one.of(request(RING), 1.0, 9) == 120.0


def test_an_unmeasured_routine_is_expected_to_take_no_longer_than_the_slowest():
    one = watchdog()
    one.measured(answer(0.1, candidate=RING), 0.1)
    one.measured(answer(0.5, candidate=Candidate("pair")), 0.5)
    assert one.of(request(FLAT), 1.0) == pytest.approx(15.0)
    assert one.of(request(RING, FLAT), 1.0) == pytest.approx(16.0)


def test_another_collective_or_communicator_is_foreseen_from_what_is_known():
    """It takes what the slowest call took at the least size, and a multiple of its own bound."""
    one = watchdog(1e-3)
    one.measured(answer(0.1, size=10), 0.1)
    one.measured(answer(7.0, size=1000), 7.0)
    for asked in (
        replace(request(RING, size=50), collective="bcast"),
        replace(request(RING, size=50), communicator="half"),
    ):
        assert one.of(asked, 1.0) == pytest.approx(16.0)  # of a bound of 0.05 s
        assert one.of(asked, 0.5) > one.of(asked, 1.0)
        assert one.of(asked, 1.0, 9) == pytest.approx(125.0)


def test_the_first_hang_costs_less_than_the_patience():
    one = watchdog(1.0)
    assert one.of(request(RING, size=10), 1.0) == pytest.approx(280.0)  # of a bound of 10 s
    assert one.of(request(RING, size=10), 1.0, 1) == pytest.approx(1120.0)


def test_larger_messages_may_take_longer_in_proportion_and_smaller_ones_as_long():
    one = watchdog(1.0)
    one.measured(answer(0.1, size=999), 0.1)
    assert one.of(request(RING, size=1999), 1.0) == pytest.approx(12.0)
    assert one.of(request(RING, size=1), 1.0) == pytest.approx(11.0)


def test_beyond_short_messages_the_bound_says_how_times_grow():
    one = watchdog(1e-6)
    one.measured(answer(0.001, size=1), 0.001)
    assert one.of(request(RING, size=1_000_000), 1.0) == pytest.approx(110.0099)
    assert one.of(request(RING, size=1_000_000), 0.5) == pytest.approx(210.0098)


def test_a_command_that_takes_long_beside_its_calls_makes_later_limits_longer():
    one = watchdog()
    one.measured(answer(0.5), 3.5)
    assert one.of(request(RING), 1.0) == pytest.approx(35.0)
    one.measured(answer(0.5), 0.5)
    assert one.of(request(RING), 1.0) == pytest.approx(35.0)


def test_a_rank_that_computes_before_each_call_gets_the_time_for_it():
    one = watchdog()
    asked = request(RING)
    asked = replace(asked, timing=replace(asked.timing, computation_ms=2000.0))
    assert one.of(asked, 1.0, 1) == pytest.approx(320.0)
    one.measured(Measurement(asked, ((0.1,),)), 2.1)
    assert one.of(asked, 1.0) == pytest.approx(31.0)


def test_the_limit_of_a_check_follows_from_earlier_checks():
    one = watchdog()
    assert one.of_check("bcast", 1.0) == 30.0
    assert one.of_check("bcast", 1.0, 1) == 120.0
    one.checked(0.1)
    assert one.of_check("bcast", 1.0) == pytest.approx(10.0)
    one.checked(3.0)
    one.checked(0.2)
    assert one.of_check("alltoall", 1.0) == pytest.approx(30.0)
    assert one.of_check("alltoall", 1.0, 1) == pytest.approx(120.0)


def test_waiting_for_other_sessions_of_a_round_is_no_excess():
    """2 s of calls and computation, and 12 s beside them; the command took 13 s: 1 s besides."""
    one, alone = watchdog(), watchdog()
    long = replace(request(RING), timing=Timing("computation", 10_000.0), communicator="left")
    short = replace(request(RING), timing=Timing("computation", 1_000.0), communicator="right")
    one.measured_together([Measurement(long, ((2.0,),)), Measurement(short, ((1.0,),))], 13.0)
    alone.measured(Measurement(short, ((1.0,),)), 3.0)
    for asked in (short, replace(request(RING), communicator="right")):
        assert one.of(asked, 1.0) == pytest.approx(alone.of(asked, 1.0))
