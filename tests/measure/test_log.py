"""The log: append-only, whole lines, and valid whatever happens to the disk."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from stagegen.errors import InputError, MeasurementError
from stagegen.measure.log import LogWriter, read_log
from stagegen.measure.measurer import LogSource
from stagegen.measure.records import Candidate, Check, Measurement
from tests.measure.fakes import request

HEADER = {"kind": "log", "version": 1}
RECORDS = [
    Check("bcast", Candidate("linear", (("segment_size", 8192),)), 9, 0, "").to_json(),
    Check("bcast", Candidate("flat"), 9, 1, "größer als erlaubt – α").to_json(),
    Measurement(request(Candidate("native"), repetitions=2), ((0.5, 0.25),)).to_json(),
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


def test_it_is_appended_to(tmp_path):
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


def test_a_disk_that_fills_up_in_the_middle_of_a_line(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    written(path)
    log = LogWriter(path)

    class Full:
        """Takes ten bytes and then no more."""

        def write(self, data: bytes) -> int:
            with path.open("ab") as stream:
                stream.write(data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self) -> None:
            pass

    monkeypatch.setattr(log, "_stream", Full())
    with pytest.raises(MeasurementError, match="No space left"):
        log.write(RECORDS[0])
    assert read_log(path) == (HEADER, RECORDS)
    again = LogWriter(path)
    again.write(RECORDS[2])
    again.close()
    assert read_log(path)[1] == [*RECORDS, RECORDS[2]]


def test_a_log_that_cannot_be_opened(tmp_path):
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
def test_what_is_no_log_is_told_with_its_line(tmp_path, text, line, message):
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize("data", [None, b"\xff\xfe\n"])
def test_what_cannot_be_read(tmp_path, data):
    path = tmp_path / "log.jsonl"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match="cannot read the log"):
        read_log(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"seconds": {}},
        {"seconds": {"native": [1.0, 2.0], "ring": [1.0]}},
        {"seconds": {"native": ["soon"]}},
        {"seconds": None},
        {"size": "big"},
        {"seconds": {"native:x": [1.0]}},
    ],
)
def test_a_damaged_record_is_told_with_its_line(damage):
    with pytest.raises(InputError, match="line 3 of the log is damaged"):
        LogSource([RECORDS[0], {**RECORDS[2], **damage}])


@pytest.mark.parametrize("missing", sorted(RECORDS[2].keys() - {"kind"}))
def test_a_record_without_one_of_its_keys(missing):
    damaged = {key: value for key, value in RECORDS[2].items() if key != missing}
    with pytest.raises(InputError, match="line 2 of the log is damaged"):
        LogSource([damaged])


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
