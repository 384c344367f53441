"""Sessions with jobs that answer, hang, die, or say something else."""

from __future__ import annotations

import time

import pytest

from stagegen.errors import MeasurementError
from stagegen.measure.log import LogWriter, read_log
from stagegen.measure.measurer import LiveSource
from stagegen.measure.records import Candidate, Request, Timing
from stagegen.measure.session import Session
from tests.measure.fakes import fake_job, request

GOOD = """
import json, sys
for line in sys.stdin:
    words = line.split()
    if words[0] == "quit":
        break
    if words[0] == "hello":
        print(json.dumps({"ranks": 4, "mpi": "none"}))
    if words[0] == "check":
        for word in words[2:]:
            print(json.dumps({"routine": word, "cases": 3, "wrong": 0, "first_wrong": ""}))
    if words[0] == "measure":
        for word in words[8:]:
            print(json.dumps({"routine": word, "seconds": [0.5] * int(words[7])}))
    print(json.dumps({"done": True}))
"""
HANG = "import time; time.sleep(600)"
DIE = "import sys; sys.stdin.readline(); sys.stderr.write('rank 3: out of luck\\n'); sys.exit(3)"
SILENT_END = "import sys; sys.stdin.readline()"
ERROR = 'import sys; sys.stdin.readline(); print(\'{"error": "unknown routine: ring"}\'); input()'
RING = Candidate("ring", (("segment_size", 64),))
FLAT = Candidate("flat")


def session(script: str, tmp_path) -> Session:
    stderr = tmp_path / "stderr"
    return Session(fake_job(script, stderr), stderr)


def test_a_session_that_answers(tmp_path):
    one = session(GOOD, tmp_path)
    assert one.hello()["ranks"] == 4
    (check,) = one.check("alltoall", [RING], 10)
    assert (check.candidate, check.cases, check.wrong) == (RING, 3, 0)
    measured = one.measure(request(RING, FLAT, repetitions=2), 10)
    assert measured.by_candidate() == {RING: (0.5, 0.5), FLAT: (0.5, 0.5)}
    started = time.monotonic()
    one.close()
    assert time.monotonic() - started < 5


def test_a_hanging_job_is_ended_in_time_and_the_error_says_where(tmp_path):
    one = session(HANG, tmp_path)
    started = time.monotonic()
    with pytest.raises(MeasurementError, match=r"alltoall of 1024 bytes .*flat.*no answer within"):
        one.measure(request(FLAT), 0.5)
    assert time.monotonic() - started < 10
    with pytest.raises(MeasurementError):
        one.measure(request(FLAT), 0.5)


def test_a_dying_job_is_told_with_algorithm_size_and_its_last_words(tmp_path):
    one = session(DIE, tmp_path)
    with pytest.raises(
        MeasurementError, match=r"alltoall of 4096 bytes .*ring:segment_size=64"
    ) as e:
        one.measure(request(RING, size=4096), 10)
    assert "the job has ended" in str(e.value)
    assert "rank 3: out of luck" in str(e.value)


def test_a_job_that_just_ends(tmp_path):
    with pytest.raises(MeasurementError, match="did not start: the job has ended"):
        session(SILENT_END, tmp_path).hello()


def test_the_driver_s_own_errors(tmp_path):
    with pytest.raises(MeasurementError, match="checking bcast: unknown routine: ring"):
        session(ERROR, tmp_path).check("bcast", [RING], 10)


@pytest.mark.parametrize("output", ["Hello, world", "5", "[1]", "null", '{"x":', '"done"'])
def test_unexpected_output(tmp_path, output):
    script = f"import sys; sys.stdin.readline(); print({output!r}); input()"
    with pytest.raises(MeasurementError, match="unexpected output") as caught:
        session(script, tmp_path).hello()
    assert output in str(caught.value)


def test_output_that_is_no_text(tmp_path):
    script = "import sys; sys.stdin.readline(); sys.stdout.buffer.write(b'\\xff\\xfe\\n'); input()"
    with pytest.raises(MeasurementError, match="unexpected output"):
        session(script, tmp_path).hello()


def live(tmp_path, *scripts: str) -> LiveSource:
    """A source whose sessions run one script after the other."""
    log = LogWriter(tmp_path / "log.jsonl")
    log.write({"kind": "log", "version": 1})
    rest = iter(scripts)
    return LiveSource(lambda: session(next(rest), tmp_path), log, lambda name, size: 0.0)


def test_a_routine_that_ends_the_job_is_wrong_and_the_next_is_checked(tmp_path):
    source = live(tmp_path, DIE, GOOD)
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


def test_measurements_are_in_the_log_when_they_are_answered(tmp_path):
    source = live(tmp_path, GOOD)
    asked = Request("bcast", 64, Timing("computation", 7), True, 2, 3, (RING, FLAT))
    measured = source.measure(asked)
    (record,) = read_log(tmp_path / "log.jsonl")[1]
    source.close()
    assert type(measured).from_json(record) == measured
    assert measured.request == asked


def test_a_failed_measurement_is_an_error_and_the_next_gets_a_new_session(tmp_path):
    source = live(tmp_path, DIE, GOOD)
    with pytest.raises(MeasurementError, match="1024 bytes"):
        source.measure(request(FLAT))
    assert source.measure(request(FLAT)).seconds == ((0.5,),)
    source.close()
