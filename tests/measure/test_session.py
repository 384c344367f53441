"""Sessions with jobs that answer, hang, die, or say something else."""

from __future__ import annotations

import json
import subprocess

import pytest

from stagegen.data import DRIVERS
from stagegen.errors import MeasurementError
from stagegen.measure.records import Candidate
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
    if words[0] in ("check", "check_again"):
        for word in words[2:]:
            print(json.dumps({"routine": word, "cases": 3, "wrong": 0, "first_wrong": ""}))
    if words[0] == "measure":
        for word in words[9:]:
            print(json.dumps({"routine": word, "seconds": [0.5] * int(words[8])}))
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


def test_answers_are_read_and_the_job_ends_by_itself(tmp_path):
    one = session(GOOD, tmp_path)
    assert one.hello()["ranks"] == 4
    (check,) = one.check("alltoall", [RING], 10)
    assert (check.candidate, check.cases, check.wrong) == (RING, 3, 0)
    measured = one.measure(request(RING, FLAT, repetitions=2), 10)
    assert measured.by_candidate() == {RING: (0.5, 0.5), FLAT: (0.5, 0.5)}
    one.close()
    assert one._job.poll() == 0


def test_a_hanging_job_is_waited_for_as_long_as_told_and_the_error_says_where(
    tmp_path, monkeypatch
):
    one = session(HANG, tmp_path)
    waits: list[float] = []
    get = one._lines.get

    def counted(timeout):
        waits.append(timeout)
        return get(timeout=timeout)

    monkeypatch.setattr(one._lines, "get", counted)
    with pytest.raises(MeasurementError, match=r"alltoall of 1024 bytes .*flat.*no answer within"):
        one.measure(request(FLAT), 0.5)
    assert waits == [0.5]
    assert one._job.poll() is not None
    with pytest.raises(MeasurementError):
        one.measure(request(FLAT), 0.5)


def test_a_dying_job_is_reported_with_algorithm_size_and_its_last_words(tmp_path):
    one = session(DIE, tmp_path)
    with pytest.raises(
        MeasurementError, match=r"alltoall of 4096 bytes .*ring:segment_size=64"
    ) as e:
        one.measure(request(RING, size=4096), 10)
    assert "the job has ended" in str(e.value)
    assert "rank 3: out of luck" in str(e.value)


def test_a_job_that_just_ends_did_not_start(tmp_path):
    with pytest.raises(MeasurementError, match="did not start: the job has ended"):
        session(SILENT_END, tmp_path).hello()


def test_the_driver_s_own_errors_are_reported(tmp_path):
    with pytest.raises(MeasurementError, match="checking bcast: unknown routine: ring"):
        session(ERROR, tmp_path).check("bcast", [RING], 10)


@pytest.mark.parametrize("output", ["Hello, world", "5", "[1]", "null", '{"x":', '"done"'])
def test_unexpected_output_is_an_error_that_shows_it(tmp_path, output):
    script = f"import sys; sys.stdin.readline(); print({output!r}); input()"
    with pytest.raises(MeasurementError, match="unexpected output") as caught:
        session(script, tmp_path).hello()
    assert output in str(caught.value)


@pytest.mark.parametrize("character", ["\t", "\x1b", "\x01"])
def test_a_control_character_in_an_answer_is_unexpected(tmp_path, character):
    answer = '{"ranks": 4, "mpi": "MPICH' + character + '4"}'
    script = f"import sys; sys.stdin.readline(); print({answer!r}); input()"
    with pytest.raises(MeasurementError, match="unexpected output"):
        session(script, tmp_path).hello()


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("MPICH Version:\t4.0.2\nMPICH Release date: none", "MPICH Version: 4.0.2"),
        ("a\x1b[2J \x01b\x7f\r\n", "a [2J  b  "),
        ('Open "MPI"', "Open "),
        ("back\\slash", "back"),
        ("", ""),
    ],
)
def test_the_drivers_print_a_version_without_control_characters(tmp_path, version, told):
    source, program = tmp_path / "tell.c", tmp_path / "tell"
    source.write_text(
        '#include <stdio.h>\n#include "json_text.h"\n'
        "int main(int argc, char **argv) {\n"
        "    make_fit_for_json(argv[argc - 1]);\n"
        '    return printf("\\"%s\\"", argv[argc - 1]) < 0;\n}\n'
    )
    warnings = ("-std=c11", "-Wall", "-Wextra", "-Werror")
    subprocess.run(["cc", *warnings, f"-I{DRIVERS}", "-o", program, source], check=True)
    said = subprocess.run([program, version], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == told


def test_output_that_is_no_text_is_unexpected(tmp_path):
    script = "import sys; sys.stdin.readline(); sys.stdout.buffer.write(b'\\xff\\xfe\\n'); input()"
    with pytest.raises(MeasurementError, match="unexpected output"):
        session(script, tmp_path).hello()


ANSWERS = [
    [],
    [{}],
    [{"ranks": "4", "mpi": "none"}],
    [{"ranks": 0, "mpi": "none"}],
    [{"ranks": 4}],
    [{"routine": "flat"}],
    [{"routine": "other", "seconds": [0.5]}],
    [{"routine": "flat", "seconds": [0.5, 0.5]}],
    [{"routine": "flat", "seconds": []}],
    [{"routine": "flat", "seconds": ["soon"]}],
    [{"routine": "flat", "seconds": 5, "cases": 1}],
    [{"routine": "flat", "seconds": [0.5]}] * 2,
    [{"routine": "flat", "cases": "9", "wrong": 0, "first_wrong": ""}],
    [{"routine": "flat", "cases": 9, "wrong": 0}],
]


@pytest.mark.parametrize("answers", ANSWERS)
def test_answers_that_lack_something_are_unexpected(tmp_path, answers):
    lines = "".join(f"print(json.dumps({answer!r}));" for answer in [*answers, {"done": True}])
    script = f"import json, sys; sys.stdin.readline(); {lines} input()"
    for ask in (
        lambda one: one.hello(),
        lambda one: one.check("bcast", [FLAT], 10),
        lambda one: one.measure(request(FLAT), 10),
        lambda one: one.compare("bcast", 64, 1, 1, 10, settle=True),
    ):
        with pytest.raises(MeasurementError, match="unexpected answer"):
            ask(session(script, tmp_path))


def test_a_busy_job_is_ended_at_once_when_the_user_interrupts(tmp_path, monkeypatch):
    one = session(HANG, tmp_path)

    def interrupted(timeout):
        raise KeyboardInterrupt

    monkeypatch.setattr(one._lines, "get", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.measure(request(FLAT), 100)
    monkeypatch.setattr(one._job, "wait", lambda timeout: pytest.fail("it waits for its end"))
    one.close()
    assert one._job.poll() is not None
