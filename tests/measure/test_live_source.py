"""Sources whose sessions fail: what is tried again, which routine is to blame, what is logged."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from stagegen.errors import MeasurementError
from stagegen.measure.arrivals import Imbalance
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter, read_log
from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Measurement,
    Request,
    Timing,
)
from stagegen.measure.session import Members, Session, SessionError
from stagegen.measure.source import LogSource
from stagegen.measure.watchdog import LONGER
from tests.measure.fakes import request
from tests.measure.test_session import DIE, FLAT, GOOD, RING, session

# A driver that ends when the words are in a command.
ENDS = GOOD.replace(
    "    words = line.split()\n",
    "    words = line.split()\n    if all(word in line for word in {words}): sys.exit(3)\n",
)


def live(tmp_path, *scripts: str) -> LiveSource:
    """A source whose sessions run one script after the other."""
    log = LogWriter(tmp_path / "log.jsonl")
    log.write({"kind": "log", "version": 1})
    rest = iter(scripts)
    return LiveSource(lambda: session(next(rest), tmp_path), log, lambda name, size: 0.0)


def test_a_routine_that_ends_the_job_is_wrong_and_the_next_is_checked(tmp_path):
    source = live(tmp_path, DIE, DIE, GOOD)
    checks = source.check("alltoall", (RING, FLAT))
    source.close()
    assert [check.wrong for check in checks] == [-1, 0]
    assert "checking alltoall" in checks[0].first_wrong
    assert [record["wrong"] for record in read_log(tmp_path / "log.jsonl")[1]] == [-1, 0]


def test_a_session_that_cannot_start_is_no_wrong_routine(tmp_path):
    def start() -> Session:
        raise MeasurementError("the session did not start")

    log = LogWriter(tmp_path / "log.jsonl")
    source = LiveSource(start, log, lambda name, size: 0.0)
    with pytest.raises(MeasurementError, match="did not start"):
        source.check("alltoall", (RING,))
    assert (tmp_path / "log.jsonl").read_bytes() == b""


def test_building_is_no_time_of_a_command(tmp_path, monkeypatch):
    """A budget for the whole tuning pays for what commands took, and not for the compiler."""
    built = []
    clock = time.monotonic

    def build() -> None:
        built.append(True)
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 1000.0 * len(built))

    for first_check in (True, False):
        source = LiveSource(
            lambda: session(GOOD, tmp_path), NoLog(), lambda name, size: 0.0, build=build
        )
        checks = source.check("alltoall", (RING,)) if first_check else []
        took = [check.took for check in checks]
        took.append(source.measure(request(RING)).took)
        source.close()
        assert all(seconds is not None and seconds < 500.0 for seconds in took)
    assert len(built) == 2


def test_measurements_are_in_the_log_when_they_are_answered(tmp_path):
    source = live(tmp_path, GOOD)
    asked = Request("bcast", 64, Timing("computation", 7.5), True, 2, 3, (RING, FLAT))
    measured = source.measure(asked)
    (record,) = read_log(tmp_path / "log.jsonl")[1]
    source.close()
    assert type(measured).from_json(record) == measured
    assert measured.request == asked


def test_a_check_that_fails_once_is_made_again_in_a_new_session(tmp_path):
    source = live(tmp_path, DIE, GOOD)
    (check,) = source.check("alltoall", (RING,))
    source.close()
    assert (check.wrong, check.cases) == (0, 3)


def test_a_measurement_that_fails_once_is_made_again_in_a_new_session(tmp_path):
    source = live(tmp_path, DIE, GOOD)
    assert source.measure(request(FLAT)).seconds == ((0.5,),)
    source.close()
    assert [one["kind"] for one in read_log(tmp_path / "log.jsonl")[1]] == ["measurement"]


def ends(*words: str) -> str:
    return ENDS.replace("{words}", repr(list(words)))


NATIVE = Candidate("native")


def test_the_candidate_that_ends_the_job_is_found_and_the_others_are_timed(tmp_path):
    source = live(tmp_path, *[ends("measure", "ring")] * 6)
    with pytest.raises(CandidateFailed, match="ring") as caught:
        source.measure(request(NATIVE, FLAT, RING, size=4096))
    assert caught.value.failure.candidate == RING
    assert source.measure(request(NATIVE, FLAT, size=4096)).seconds == ((0.5,), (0.5,))
    source.close()
    failure, measured = read_log(tmp_path / "log.jsonl")[1]
    assert failure == caught.value.failure.to_json()
    assert (failure["kind"], failure["size"], failure["routine"]) == ("failure", 4096, RING.spec)
    assert list(measured["seconds"]) == ["native", "flat"]


@pytest.mark.parametrize("words", [("measure",), ("measure", "native")])
def test_where_the_native_routine_fails_no_candidate_is_blamed(tmp_path, words):
    source = live(tmp_path, *[ends(*words)] * 6)
    with pytest.raises(MeasurementError) as caught:
        source.measure(request(NATIVE, RING))
    source.close()
    assert not isinstance(caught.value, CandidateFailed)
    assert read_log(tmp_path / "log.jsonl")[1] == []


def test_where_only_two_together_fail_each_is_timed_alone_from_then_on(tmp_path):
    """A tuning that ended here would end here again whenever it went on."""
    used: list[str] = []

    def start() -> Session:
        used.append("session")
        return session(ends("ring", "flat"), tmp_path)

    log = LogWriter(tmp_path / "log.jsonl")
    log.write({"kind": "log", "version": 1})
    source = LiveSource(start, log, lambda name, size: 0.0)
    asked = request(RING, FLAT)
    for size in (1024, 4096):
        measured = source.measure(replace(asked, size=size))
        assert measured.request == replace(asked, size=size)
        assert measured.seconds == ((0.5,), (0.5,))
        assert len(used) == 3, "the second of two failures, and what came after it"
    source.close()
    records = read_log(tmp_path / "log.jsonl")[1]
    assert [list(one["seconds"]) for one in records] == [[RING.spec], [FLAT.spec]] * 2
    assert LogSource(records).measure(asked).seconds == ((0.5,), (0.5,))


@pytest.mark.parametrize("words", [("measure", "ring"), ("measure", "native")])
def test_what_fails_alone_is_found_also_where_each_is_timed_alone(tmp_path, words):
    """Nothing is logged of the others: the request without the one that failed has an answer."""
    failing = ends(*words)
    source = live(tmp_path, *[ends("ring", "flat")] * 3, *[failing] * 6)
    source.measure(request(RING, FLAT))
    source._timing.close()
    with pytest.raises(MeasurementError, match=words[1]) as caught:
        source.measure(request(NATIVE, FLAT, RING, size=4096))
    blamed = isinstance(caught.value, CandidateFailed)
    assert blamed == (words[1] == "ring")
    written = [one["kind"] for one in read_log(tmp_path / "log.jsonl")[1]]
    assert written == ["measurement"] * 2 + ["failure"] * blamed
    source.close()


class Hurried:
    """A session that fails at once, and keeps how long it might have taken."""

    def __init__(self, scale: float):
        self.scale = scale
        self.timeouts: list[float] = []

    def use(self, communicators):
        pass

    def check(self, collective, candidates, timeout, *, again=False):
        self.timeouts.append(timeout)
        raise MeasurementError("that was all")

    def measure(self, request, timeout):
        self.check(request.collective, request.candidates, timeout)

    def close(self):
        pass


class NoLog:
    """A log that keeps nothing."""

    def write(self, *records):
        pass


def time_out(ask, seconds_per_byte: float, scale: float = 1.0, elsewhere: bool = False) -> float:
    """Return the time limit of a request, if a byte takes at least this long.

    It is the limit of a second attempt: the first one has a part of it.
    """
    one = Hurried(scale)
    bound = lambda name, size: seconds_per_byte * size  # noqa: E731
    source = LiveSource(lambda: one, NoLog(), bound, None, (lambda: one) if elsewhere else None)
    with suppress(MeasurementError):
        ask(source)
    return LONGER * one.timeouts[0]


def check_of_a_ring(source: LiveSource) -> None:
    source.check("alltoall", (RING,))


def measure(source: LiveSource) -> None:
    """Three repetitions of two routines, each of four calls and one before them: 30 calls."""
    source.measure(Request("alltoall", 1000, Timing(), True, 4, 3, (NATIVE, RING)))


def test_all_calls_may_take_a_hundred_times_their_bound_and_there_is_patience_beyond():
    """30 calls of 1 ms; at a quarter of the rates they take four times as long."""
    patience = time_out(measure, 0.0)
    assert patience > 1
    assert time_out(measure, 1e-6) - patience == pytest.approx(3)
    assert time_out(measure, 1e-6, scale=0.25) - patience == pytest.approx(12)


def measure_with_computation(source: LiveSource) -> None:
    """The same, with 20 ms of computation before each call."""
    timing = Timing("computation", 20.0)
    source.measure(Request("alltoall", 1000, timing, True, 4, 3, (NATIVE, RING)))


def test_computation_before_calls_may_take_a_hundred_times_as_long_as_asked_for():
    more = time_out(measure_with_computation, 1e-6) - time_out(measure, 1e-6)
    assert more == pytest.approx(100 * 30 * 0.02)


def test_a_check_may_take_a_hundred_times_the_bound_of_a_hundred_messages_of_16_kib():
    """Of 1 ns for a byte: 0.16384 s."""
    patience = time_out(check_of_a_ring, 0.0)
    assert patience == time_out(measure, 0.0)
    assert time_out(check_of_a_ring, 1e-9) - patience == pytest.approx(0.16384)
    assert time_out(check_of_a_ring, 1e-9, scale=0.25) - patience == pytest.approx(0.65536)


def test_links_do_not_count_for_a_check_that_runs_elsewhere():
    slow = 1.0
    assert time_out(check_of_a_ring, slow, elsewhere=True) == time_out(check_of_a_ring, 0.0)
    assert time_out(measure, slow, elsewhere=True) == time_out(measure, slow)


class Slow:
    """A session in which some routines take long, besides their calls, and some never end."""

    scale = 1.0

    def __init__(self, seconds: dict[str, float], limits: list[float]):
        self.seconds, self.limits = seconds, limits

    def use(self, communicators):
        pass

    def measure(self, asked, timeout):
        self.limits.append(timeout)
        if sum(self.seconds.get(one.algorithm, 0.0) for one in asked.candidates) > timeout:
            raise SessionError(f"no answer within {timeout:.0f} s")
        return Measurement(asked, ((1e-3,) * asked.repetitions,) * len(asked.candidates))

    def close(self):
        pass


def slow(seconds: dict[str, float]) -> tuple[LiveSource, list[float]]:
    """A source with such sessions that knows how long a call takes, and its limits from then on."""
    limits: list[float] = []
    source = LiveSource(lambda: Slow(seconds, limits), NoLog(), lambda name, size: 0.0)
    source.measure(request(NATIVE, FLAT))
    limits.clear()
    return source, limits


def test_a_routine_that_is_slower_than_its_first_limit_is_measured_nevertheless():
    source, limits = slow({"ring": 25.0})
    measured = source.measure(request(NATIVE, RING))
    assert measured.request.candidates == (NATIVE, RING)
    first, native, alone, again = limits
    assert first < 25.0 < min(native, alone, again)


def test_a_routine_that_hangs_costs_two_limits_that_were_learned():
    source, limits = slow({"ring": math.inf})
    with pytest.raises(CandidateFailed, match="no answer within"):
        source.measure(request(NATIVE, RING))
    first, _, alone = limits
    assert first + alone < 60.0


# A driver that repeats its commands.
ECHO = GOOD.replace(
    "    words = line.split()\n",
    "    words = line.split()\n    sys.stderr.write(line); sys.stderr.flush()\n",
)


def told(tmp_path) -> list[str]:
    """The commands that the drivers of a source got: the first two words of each."""
    lines = (tmp_path / "stderr").read_text().splitlines()
    return [" ".join(line.split()[:2]) for line in lines]


def test_a_session_is_told_of_a_communicator_when_that_changes(tmp_path):
    log = LogWriter(tmp_path / "log.jsonl")
    ranks = {"half": Members((0, 2))}
    source = LiveSource(lambda: session(ECHO, tmp_path), log, lambda name, size: 0.0, ranks)
    half = replace(request(FLAT), communicator="half")
    for asked in (request(FLAT), half, half, request(RING)):
        assert source.measure(asked).request == asked
    (check,) = source.check("bcast", (FLAT,), "half")
    source.close()
    assert check.communicator == "half"
    assert told(tmp_path) == [
        "measure alltoall", "communicator 0", "measure alltoall", "measure alltoall",
        "communicator", "measure alltoall", "communicator 0", "check_again bcast", "quit",
    ]  # fmt: skip


def test_a_new_session_is_told_of_the_communicator_again(tmp_path):
    log = LogWriter(tmp_path / "log.jsonl")
    scripts = iter([ENDS.replace("{words}", repr(["measure"])), ECHO])
    ranks = {"half": Members((0, 2))}
    source = LiveSource(
        lambda: session(next(scripts), tmp_path), log, lambda name, size: 0.0, ranks
    )
    source.measure(replace(request(FLAT), communicator="half"))
    source.close()
    native, alone, again = ["measure alltoall"] * 3
    assert told(tmp_path) == ["communicator 0", native, alone, again, "quit"]


def test_what_checks_elsewhere_stays_while_others_are_timed(tmp_path):
    log = LogWriter(tmp_path / "log.jsonl")
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    source = LiveSource(
        lambda: session(ECHO, tmp_path / "there"), log, lambda name, size: 0.0,
        start_check=lambda: session(ECHO, tmp_path / "here"),
    )  # fmt: skip
    source.check("bcast", (FLAT, RING))
    assert not (tmp_path / "there" / "stderr").exists()
    source.measure(request(FLAT))
    source.check("bcast", (FLAT,))
    source.measure(replace(request(FLAT), launch=1))
    source.close()
    assert told(tmp_path / "here") == [*["check_again bcast"] * 3, "quit"]
    assert told(tmp_path / "there") == ["measure alltoall", "quit"], "that of the last launch"


def test_each_launch_is_a_job_of_its_own(tmp_path):
    started: list[Session] = []

    def start() -> Session:
        started.append(session(ECHO, tmp_path))
        return started[-1]

    log = LogWriter(tmp_path / "log.jsonl")
    source = LiveSource(start, log, lambda name, size: 0.0)
    jobs = []
    for launch in (0, 0, 1, 1, 2):
        asked = replace(request(FLAT), launch=launch)
        assert source.measure(asked).request == asked
        jobs.append(len(started))
    source.close()
    assert jobs == [1, 1, 2, 2, 3]
    launches = [Measurement.from_json(one).request.launch for one in log.written]
    assert launches == [0, 0, 1, 1, 2]


def test_a_log_answers_each_launch_with_its_own_times():
    asked = replace(request(FLAT), launch=2)
    known = Measurement(asked, ((1.0,),)).to_json()
    assert LogSource([known]).measure(asked).seconds == ((1.0,),)
    with pytest.raises(MeasurementError, match="lacks"):
        LogSource([known]).measure(request(FLAT))
    del known["launch"]  # as in logs of before there were launches
    assert LogSource([known]).measure(request(FLAT)).seconds == ((1.0,),)


#: A driver for several communicators: each routine takes 0.5 s.
TOGETHER = GOOD.replace(
    """        for word in words[9:]:
            print(json.dumps({"routine": word, "seconds": [0.5] * int(words[8])}))
""",
    """        for one in line.split(" ", 1)[1].split("|"):
            own = one.split()
            for word in own[8:]:
                print(json.dumps({"routine": word, "seconds": [0.5] * int(own[7])}))
""",
)
ECHO_TOGETHER = TOGETHER.replace(
    "    words = line.split()\n",
    "    words = line.split()\n    sys.stderr.write(line); sys.stderr.flush()\n",
)
DIES_TOGETHER = ECHO_TOGETHER.replace(
    "    words = line.split()\n",
    "    words = line.split()\n"
    "    if words[0] == 'measure' and '|' in words and 'ring:' in line: sys.exit(3)\n",
)
HALVES = {"left": Members((0, 2)), "right": Members((3, 1))}


def of_halves(tmp_path, *scripts: str) -> tuple[LiveSource, LogWriter]:
    log = LogWriter(tmp_path / "log.jsonl")
    rest = iter(scripts)
    source = LiveSource(lambda: session(next(rest), tmp_path), log, lambda name, size: 0.0, HALVES)
    return source, log


def searches(source: LiveSource, *asked: Request):
    return [lambda one=one: source.measure(one) for one in asked]


def both(*candidates: Candidate) -> list[Request]:
    return [
        replace(request(*candidates, size=size), communicator=name)
        for name, size in (("left", 64), ("right", 512))
    ]


def test_a_check_session_that_ended_while_it_was_idle_is_started_again(tmp_path):
    source, _ = of_halves(tmp_path, ends("communicator"), GOOD)
    checks = source.check("bcast", (FLAT,)) + source.check("bcast", (FLAT,), "left")
    source.close()
    assert [(check.communicator, check.wrong) for check in checks] == [("whole", 0), ("left", 0)]


def test_what_two_searches_ask_for_is_one_command_and_two_records(tmp_path):
    source, log = of_halves(tmp_path, ECHO_TOGETHER)
    asked = both(FLAT, RING)
    measured = source.at_once(searches(source, *asked))
    source.close()
    assert [one.request for one in measured] == asked
    first, second, quit_ = (tmp_path / "stderr").read_text().splitlines()
    assert first == "communicator 0 2 | 3 1"
    own, other = second.split(" | ")
    assert own == "measure alltoall 64 barrier 0 slowest 0 1 1 flat ring:segment_size=64"
    assert other == "alltoall 512 barrier 0 slowest 0 1 1 flat ring:segment_size=64"
    assert quit_ == "quit"
    records = [one for one in log.written if one["kind"] == "measurement"]
    assert [(one["communicator"], one["beside"]) for one in records] == [
        ("left", ["right"]), ("right", ["left"]),
    ]  # fmt: skip
    assert [Measurement.from_json(one) for one in records] == measured
    left, right = measured
    assert left.took == right.took


def test_what_fails_together_is_measured_alone(tmp_path):
    source, log = of_halves(tmp_path, DIES_TOGETHER, ECHO_TOGETHER)
    measured = source.at_once(searches(source, *both(FLAT, RING)))
    more = source.at_once(searches(source, *both(FLAT)))
    source.close()
    assert [one.seconds for one in measured] == [((0.5,), (0.5,))] * 2
    assert [one.seconds for one in more] == [((0.5,),)] * 2
    assert not any("beside" in one for one in log.written), "no further round is tried"
    assert "communicator 3 1\n" in (tmp_path / "stderr").read_text()


def test_a_routine_that_ends_the_job_on_one_half_is_found_and_the_other_half_is_timed(tmp_path):
    script = ECHO_TOGETHER.replace(
        "    words = line.split()\n",
        "    words = line.split()\n"
        "    if words[0] == 'measure' and ' 512 ' in line and 'ring:' in line: sys.exit(3)\n",
    )
    source, log = of_halves(tmp_path, *[script] * 9)

    def outcome(asked: Request) -> object:
        try:
            return source.measure(asked).request
        except CandidateFailed as failed:
            return failed.failure.candidate, failed.failure.communicator

    asked = both(FLAT, RING)
    found = source.at_once([lambda one=one: outcome(one) for one in asked])
    source.close()
    assert found == [asked[0], (RING, "right")]
    assert [one["kind"] for one in log.written] == ["measurement", "failure"]


def test_ranks_that_come_late_are_timed_on_one_communicator_at_a_time(tmp_path):
    source, _ = of_halves(tmp_path, *[ECHO_TOGETHER] * 6)
    late = Timing("imbalance", metric="last", arrivals=Imbalance(10, False, 1))
    asked = [replace(one, timing=late) for one in both(FLAT)]
    with pytest.raises(MeasurementError):
        source.at_once(searches(source, *asked))
    source.close()
    assert "|" not in (tmp_path / "stderr").read_text()


def test_what_one_search_checks_does_not_disturb_what_the_other_measures(tmp_path):
    source, log = of_halves(tmp_path, ECHO_TOGETHER)
    left, right = both(FLAT)

    def checks() -> object:
        (check,) = source.check("alltoall", (RING,), "right")
        return check.wrong, source.measure(right).request

    found = source.at_once([lambda: source.measure(left).request, checks])
    source.close()
    assert found == [left, (0, right)]
    assert [one["kind"] for one in log.written] == ["check", "measurement", "measurement"]
