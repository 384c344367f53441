"""A recording is what was written; a damaged file is refused with an error that says so."""

from __future__ import annotations

import pytest

from stagegen.errors import InputError
from stagegen.recording import arrival_patterns, read
from stagegen.recording.container import MAGIC, write_recording
from tests.recording import made

DELAYS = (0.0, 0.25, 0.125, 0.5)


@pytest.fixture
def kept(tmp_path):
    recording = made.recording(made.steps(5, DELAYS))
    path = tmp_path / "a.recording"
    write_recording(path, recording)
    return path, recording


def test_a_recording_is_read_as_it_was_written(kept):
    path, recording = kept
    found = read(path)
    assert (found.size, found.functions, found.communicators) == (
        recording.size,
        recording.functions,
        recording.communicators,
    )
    for one, other in zip(found.ranks, recording.ranks, strict=True):
        assert (one.events == other.events).all()
        assert (one.host, one.samples, one.sites) == (other.host, other.samples, other.sites)


def test_the_same_recording_is_the_same_file(kept, tmp_path):
    path, recording = kept
    write_recording(tmp_path / "again", recording)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_off_is_refused(kept, share):
    path, _ = kept
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=r"a\.recording"):
        read(path)


def test_a_change_of_any_byte_is_refused(kept):
    path, _ = kept
    data = path.read_bytes()
    for place in range(len(MAGIC), len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        with pytest.raises(InputError):
            read(path)


@pytest.mark.parametrize("text", [b"", b"{}", b"no recording at all" * 100, MAGIC])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other"
    path.write_bytes(text)
    with pytest.raises(InputError):
        read(path)


def test_a_folder_without_parts_and_a_missing_file_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError):
            read(path)


def test_the_arrival_pattern_is_that_of_the_delays(kept):
    (pattern,) = arrival_patterns(kept[1])
    assert (pattern.collective, pattern.size, pattern.site) == ("alltoall", 8, "program+0x10")
    assert pattern.ranks == (0, 1, 2, 3)
    for offsets in pattern.offsets:
        assert offsets == pytest.approx(DELAYS, abs=1e-6)
    assert len(pattern.offsets) == 5
