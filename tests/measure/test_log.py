"""The log: append-only, whole lines, and valid whatever happens to the disk."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from stagegen.errors import InputError, MeasurementError
from stagegen.measure.log import LogWriter, read_log
from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Measurement,
)
from stagegen.measure.source import LogSource
from tests.measure.fakes import request

HEADER = {"kind": "log", "version": 1}
RECORDS = [
    Check("bcast", Candidate("linear", (("segment_size", 8192),)), 9, 0, "").to_json(),
    Check("bcast", Candidate("flat"), 9, 1, "größer als erlaubt – α").to_json(),
    Measurement(request(Candidate("native"), repetitions=2), ((0.5, 0.25),)).to_json(),
    Failure("bcast", 64, Candidate("flat"), "no answer within 120 s").to_json(),
]


def written(path: Path) -> bytes:
    log = LogWriter(path)
    log.write(HEADER)
    log.write(*RECORDS)
    log.close()
    return path.read_bytes()


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "folder" / "log.jsonl"
    written(path)
    assert read_log(path) == (HEADER, RECORDS)


def test_a_log_is_appended_to(tmp_path):
    path = tmp_path / "log.jsonl"
    before = written(path)
    log = LogWriter(path)
    log.write(RECORDS[0])
    log.close()
    assert path.read_bytes().startswith(before)
    assert read_log(path)[1] == [*RECORDS, RECORDS[0]]


def test_a_log_cut_at_any_byte_is_read_up_to_its_last_whole_line(tmp_path):
    path = tmp_path / "log.jsonl"
    data = written(path)
    header = data.index(b"\n") + 1
    for cut in range(header, len(data)):
        path.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n") - 1
        assert read_log(path) == (HEADER, RECORDS[:whole])
    for cut in range(header):
        path.write_bytes(data[:cut])
        with pytest.raises(InputError, match="header is missing"):
            read_log(path)


def test_a_torn_line_is_cut_off_before_more_is_written(tmp_path):
    path = tmp_path / "log.jsonl"
    data = written(path)
    for cut in range(data.index(b"\n") + 1, len(data), 7):
        path.write_bytes(data[:cut])
        log = LogWriter(path)
        log.write(RECORDS[0])
        log.close()
        whole = data[:cut].count(b"\n") - 1
        assert read_log(path) == (HEADER, [*RECORDS[:whole], RECORDS[0]])


def test_zeros_of_a_machine_that_lost_its_power_are_cut_off(tmp_path):
    path = tmp_path / "log.jsonl"
    data = written(path)
    line = json.dumps(RECORDS[2]).encode() + b"\n"
    for end in (b"\0" * 50, line[:20] + b"\0" * 40 + line[60:], b"\0\0\n\0\n", b"\0\n" + line[:9]):
        path.write_bytes(data + end)
        assert read_log(path) == (HEADER, RECORDS)
        log = LogWriter(path)
        log.write(RECORDS[0])
        log.close()
        assert read_log(path) == (HEADER, [*RECORDS, RECORDS[0]])
    path.write_bytes(data + b"\0\n" + line)
    with pytest.raises(InputError, match="not JSON"):
        read_log(path)


def test_lines_are_on_the_disk_and_so_is_the_entry_in_the_folder(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync

    def noted(number: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{number}").readlink()))
        fsync(number)

    monkeypatch.setattr(os, "fsync", noted)
    path = tmp_path / "log.jsonl"
    log = LogWriter(path, HEADER)
    log.write(RECORDS[0])
    assert str(tmp_path) in synced
    assert synced.index(str(tmp_path)) < synced.index(str(path))
    synced.clear()
    log.write(RECORDS[1])
    assert synced == [str(path)]
    log.close()


@pytest.mark.parametrize("step", ["link", "replace"])
def test_a_new_log_that_is_cut_off_while_it_begins_leaves_the_old_one(tmp_path, monkeypatch, step):
    path = tmp_path / "log.jsonl"
    before = written(path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(*((os, "link") if step == "link" else (Path, "replace")), killed)
    with pytest.raises(KeyboardInterrupt):
        LogWriter(path, HEADER).write(RECORDS[0])
    assert path.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_an_error_that_says_how_to_go_on(tmp_path):
    path = tmp_path / "log.jsonl"
    written(path)
    log = LogWriter(path)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._stream.fileno())
    with pytest.raises(MeasurementError, match=r"No space left.*go on with --resume"):
        log.write(RECORDS[0])
    log.close()
    os.close(full)
    assert read_log(path) == (HEADER, RECORDS)


def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_whole_lines(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    before = written(path)
    log = LogWriter(path)
    stream = log._stream
    room = [10, 0]

    class Full:
        """Takes ten bytes and then no more."""

        def __getattr__(self, name):
            return getattr(stream, name)

        def write(self, data: bytes) -> int:
            if left := room.pop(0):
                return stream.write(data[:left])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(log, "_stream", Full())
    with pytest.raises(MeasurementError, match="No space left"):
        log.write(RECORDS[0])
    assert path.read_bytes() == before
    again = LogWriter(path)
    again.write(RECORDS[2])
    again.close()
    assert read_log(path)[1] == [*RECORDS, RECORDS[2]]


def test_a_log_that_cannot_be_opened_is_an_error(tmp_path):
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(MeasurementError, match="cannot write the log"):
        LogWriter(tmp_path / "log.jsonl")
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasurementError, match="cannot write the log"):
        LogWriter(tmp_path / "file" / "log.jsonl")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "header is missing"),
        ('{"kind": "check"}\n', 1, "header is missing"),
        ('{"kind": "log", "version": 99}\n', 1, "version 1 is needed"),
        ('{"kind": "log"}\n', 1, "version 1 is needed"),
        (json.dumps(HEADER) + "\nnot JSON\n", 2, "not JSON"),
        (json.dumps(HEADER) + "\n[1]\n", 2, "not a record"),
        (json.dumps(HEADER) + "\n{}\n", 2, "no `kind`"),
        (json.dumps(HEADER) + "\n\n", 2, "not JSON"),
    ],
)
def test_what_is_no_log_is_reported_with_its_line(tmp_path, text, line, message):
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize("data", [None, b"\xff\xfe\n"])
def test_what_cannot_be_read_is_an_input_error(tmp_path, data):
    path = tmp_path / "log.jsonl"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match="cannot read the log"):
        read_log(path)


def test_a_new_log_replaces_the_old_one_only_with_its_first_record(tmp_path):
    path = tmp_path / "log.jsonl"
    before = written(path)
    for number in (1, 2, 3):
        log = LogWriter(path, HEADER)
        assert not log.begun
        assert path.read_bytes() == before
        log.write(RECORDS[0])
        log.close()
        assert read_log(path) == (HEADER, RECORDS[:1])
        assert (tmp_path / f"log.{number}.jsonl").read_bytes() == before
        before = path.read_bytes()
    LogWriter(path, HEADER).close()
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 4


def test_a_failure_in_the_log_answers_for_what_was_not_measured():
    pair = request(Candidate("flat"), Candidate("native"), size=64)
    pair = replace(pair, collective="bcast")
    source = LogSource([Measurement(pair, ((1.0,), (2.0,))).to_json(), RECORDS[3]])
    assert source.measure(pair).seconds == ((1.0,), (2.0,))
    with pytest.raises(CandidateFailed, match="no answer within") as caught:
        source.measure(pair)
    assert caught.value.failure.to_json() == RECORDS[3]
    with pytest.raises(MeasurementError, match="the log lacks"):
        source.measure(pair)


def test_what_commands_took_is_shared_by_their_candidates():
    """So a log that is read in other portions says the same time in all."""
    flat, native = Candidate("flat"), Candidate("native")
    both = replace(request(flat, native, size=64), collective="bcast")
    records = [Measurement(both, ((1.0,), (2.0,)), took=4.0).to_json()]
    assert LogSource(records).measure(both).took == 4.0
    assert LogSource(records).measure(replace(both, candidates=(flat,))).took == 2.0
    del records[0]["took"]
    assert LogSource(records).measure(both).took is None, "old logs do not say it"
    check = Check("bcast", flat, 9, 0, "", took=0.5)
    assert LogSource([check.to_json()]).check("bcast", (flat,)) == [check]
    failure = replace(Failure.from_json(RECORDS[3]), took=9.0)
    assert Failure.from_json(failure.to_json()) == failure


def test_a_check_that_did_not_end_is_made_again_where_that_is_possible():
    check = Check("bcast", Candidate("flat"), 0, -1, "no answer")

    class Live:
        def check(self, collective, candidates, communicator):
            return [replace(check, candidate=c, cases=9, wrong=0) for c in candidates]

    ask = "bcast", (Candidate("flat"),)
    assert LogSource([check.to_json()]).check(*ask) == [check]
    again = LogSource([check.to_json()], Live()).check(*ask)
    assert [one.wrong for one in again] == [0]
    wrong = replace(check, wrong=3)
    assert LogSource([wrong.to_json()], Live()).check(*ask) == [wrong]


def test_a_log_alone_cannot_answer_more_than_it_holds():
    source = LogSource(RECORDS)
    assert source.measure(request(Candidate("native"), repetitions=2)).seconds == ((0.5, 0.25),)
    for ask in (
        lambda: source.measure(request(Candidate("native"), repetitions=2)),
        lambda: source.measure(request(Candidate("native"), size=7)),
        lambda: source.check("bcast", (Candidate("binomial"),)),
    ):
        with pytest.raises(MeasurementError, match=r"the log lacks .* --resume"):
            ask()


@pytest.mark.parametrize("what", ["check", "measurement", "failure"])
def test_records_that_name_no_communicator_are_of_all_ranks(what):
    """Logs of before there were several."""
    record = next(record for record in RECORDS if record["kind"] == what)
    old = {key: value for key, value in record.items() if key != "communicator"}
    again = {"check": Check, "measurement": Measurement, "failure": Failure}[what].from_json(old)
    assert again.to_json() == {**old, "communicator": "whole"}


def test_answers_are_of_the_communicator_that_was_asked_for():
    flat = Candidate("flat")
    check = Check("bcast", flat, 9, 0, "", "half")
    source = LogSource([check.to_json()])
    assert source.check("bcast", (flat,), "half") == [check]
    with pytest.raises(MeasurementError, match="the log lacks"):
        source.check("bcast", (flat,))
    half = replace(request(flat), communicator="half")
    source = LogSource([Measurement(half, ((1.0,),)).to_json()])
    with pytest.raises(MeasurementError, match="the log lacks"):
        source.measure(request(flat))
    assert source.measure(half).request == half
