"""Generated folders while they are written, and logs that others would replace."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stagegen.library import folder as library
from tests.cli.test_tune import CLUSTER, contents, from_log, recorded

__all__ = ["recorded"]  # the fixture


def test_a_folder_that_is_written_half_cannot_be_built_and_is_mended(
    recorded, tmp_path, monkeypatch
):
    log, _, folder, _ = recorded
    shutil.copytree(folder, tmp_path / "out")
    (tmp_path / "out" / "src" / "rules.c").write_text("int older;\n")

    def cut_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(library, "write_files", cut_off)
        result = from_log(CLUSTER, log, tmp_path / "out")
    assert result.returncode != 0
    assert not (tmp_path / "out" / "Makefile").exists()
    assert from_log(CLUSTER, log, tmp_path / "out").returncode == 0
    assert contents(tmp_path / "out") == contents(folder)


def test_a_folder_that_needs_no_change_keeps_its_times(recorded, tmp_path):
    log, _, whole, _ = recorded
    folder = Path(shutil.copytree(whole, tmp_path / "out"))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert from_log(CLUSTER, log, folder).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize("same", [True, False])
def test_a_log_from_elsewhere_replaces_no_other_one(recorded, tmp_path, same):
    log, _, _, _ = recorded
    own = tmp_path / "measurements.jsonl"
    own.write_text(log.read_text() if same else "precious\n")
    assert from_log(CLUSTER, log, tmp_path).returncode == 0
    assert own.read_text() == log.read_text()
    kept = tmp_path / "measurements.1.jsonl"
    assert kept.exists() == (not same)
    assert same or kept.read_text() == "precious\n"
