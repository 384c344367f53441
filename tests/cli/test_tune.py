"""`stagegen tune`: logs decide, the same bytes each time; statuses and messages."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.cli import main
from stagegen.data import TOPOLOGIES
from stagegen.report import page
from stagegen.report.curve_plot import curve_plot
from stagegen.report.plots import time_plot
from stagegen.tune import DecisionTable
from tests.library.recorded import record
from tests.library.schemas import validate
from tests.mpi.support import to_be_made

CLUSTER = TOPOLOGIES / "quickstart.yaml"


def once(draw: Callable[..., str]) -> Callable[..., str]:
    """Return a function that draws each plot once, for all processes of the tests.

    Most runs are of one log, and plots take most of their time.
    """

    def drawn(*shown: object) -> str:
        key = hashlib.sha256(f"{draw.__name__} {shown}".encode()).hexdigest()
        with to_be_made(f"plot-{key}") as (plot, is_new):
            if is_new:
                plot.write_text(draw(*shown), encoding="utf-8")
            return plot.read_text("utf-8")

    return drawn


def stagegen(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which is quicker."""
    out, err, before, status = io.StringIO(), io.StringIO(), Path.cwd(), 0
    os.chdir(cwd or before)
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["stagegen", *map(str, words)])
            for plot in (time_plot, curve_plot):
                patch.setattr(page, plot.__name__, once(plot))
            main()
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def separately(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stagegen", *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert "Traceback" not in result.stderr, result.stderr
    return result


def from_log(topology: Path, log: Path, output: Path) -> subprocess.CompletedProcess[str]:
    return stagegen("tune", "--topology", topology, "--from-log", log, "--output", output)


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the events of the runs, which have times."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name != "tune.log"
    }


@pytest.fixture(scope="session")
def recorded():
    """A log, what was decided while it was made, the folder generated from it, and the command.

    All processes of the tests share them, so no test changes them.
    """
    with to_be_made("recorded") as (folder, empty):
        kept, log = folder / "kept", folder / "log.jsonl"
        if empty:
            folder.mkdir()
            _, tuned = record(CLUSTER, log, wrong=frozenset({"bruck"}))
            result = from_log(CLUSTER, log, folder / "out")
            assert result.returncode == 0, result.stderr
            kept.write_bytes(pickle.dumps((tuned, result)))
    tuned, result = pickle.loads(kept.read_bytes())
    return log, tuned, folder / "out", result


def test_a_log_gives_the_decision_of_the_run_that_made_it(recorded):
    _, tuned, folder, _ = recorded
    data = json.loads((folder / "decision.json").read_text())
    assert DecisionTable.from_json(data) == tuned.decision
    chosen = {rule.candidate.algorithm for table in tuned.decision.tables for rule in table.rules}
    assert len(chosen) > 4
    assert "bruck" not in chosen


def test_a_log_gives_the_same_bytes_twice(recorded, tmp_path):
    log, _, folder, _ = recorded
    words = ["tune", "--topology", CLUSTER, "--from-log", log]
    assert separately(*words, "--output", tmp_path / "again").returncode == 0
    assert contents(tmp_path / "again") == contents(folder)


def test_a_folder_makes_itself_again(recorded, tmp_path):
    """The command in the manifest, run inside of a copy of the folder."""
    folder = Path(shutil.copytree(recorded[2], tmp_path / "copy"))
    before = contents(folder)
    manifest = json.loads(before["manifest.json"])
    words = manifest["command"].split()
    assert words[0] == "stagegen"
    result = stagegen(*words[1:], "--output", folder, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert contents(folder) == before


def test_the_files_keep_to_their_schemas(recorded):
    log, _, folder, _ = recorded
    validate("decision", json.loads((folder / "decision.json").read_text()))
    validate("manifest", json.loads((folder / "manifest.json").read_text()))
    for line in log.read_text().splitlines():
        validate("measurements", json.loads(line))


def test_the_manifest_lists_every_file(recorded):
    _, _, folder, _ = recorded
    files = contents(folder)
    listed = json.loads(files.pop("manifest.json"))["files"]
    for unlisted in ("measurements.jsonl", "report.html"):
        files.pop(unlisted)
    assert listed == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def test_only_chosen_routines_are_in_the_library(recorded):
    """With the alternatives and what they use; the native routines, the deterministic ones."""
    _, tuned, folder, _ = recorded
    algorithms = {f"{a.collective}/{a.name}": a for a in load_catalogue().algorithms}
    chosen = {
        f"{table.collective}/{option.algorithm}"
        for table in tuned.decision.tables
        for rule in table.rules
        for option in rule.options
    }
    chosen |= {name for name, a in algorithms.items() if a.name == "native" or a.deterministic}
    used = {name for one in chosen for name in algorithms[one].uses}
    present = {name for name, a in algorithms.items() if (folder / f"src/{a.routine}.c").exists()}
    assert present == chosen | used


def test_a_wrong_routine_is_reported(recorded):
    _, _, folder, result = recorded
    assert "wrong result, never chosen: alltoall bruck" in " ".join(result.stderr.split())
    assert "never timed nor chosen: bruck" in " ".join((folder / "report.html").read_text().split())


def test_stale_files_go_and_strange_ones_stay(recorded, tmp_path):
    log, _, _, _ = recorded
    assert from_log(CLUSTER, log, tmp_path).returncode == 0
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["files"]["src/alltoall_old.c"] = "0" * 64
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "src/alltoall_old.c").write_text("int old;\n")
    (tmp_path / "src/mine.c").write_text("int mine;\n")
    assert from_log(CLUSTER, log, tmp_path).returncode == 0
    assert not (tmp_path / "src/alltoall_old.c").exists()
    assert (tmp_path / "src/mine.c").exists()


def test_files_above_the_folder_are_never_removed(recorded, tmp_path):
    log, _, _, _ = recorded
    output = tmp_path / "out"
    output.mkdir()
    (tmp_path / "precious").write_text("x")
    (output / "manifest.json").write_text('{"files": {"../precious": ""}}')
    assert from_log(CLUSTER, log, output).returncode == 0
    assert (tmp_path / "precious").exists()


class Page(HTMLParser):
    """Checks that elements nest, and collects what a page refers to."""

    VOID = ("meta", "br", "img", "link", "hr", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.references: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.references += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.references += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def test_the_report_is_a_page_of_its_own(recorded):
    _, _, folder, _ = recorded
    text = (folder / "report.html").read_text()
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert all(reference.startswith("#") for reference in page.references)
    assert not re.search(r"url\((?!#)", text)
    assert "@import" not in text
    assert not re.search(r"\b20[2-9]\d-\d\d-\d\d\b", text)
    for name in ("alltoall", "allgather", "bcast"):
        assert f"<h2>{name}</h2>" in text


WRONG_USAGE = {
    "no topology": (["tune"], "Missing option '--topology'"),
    "no such file": (["tune", "--topology", "nowhere.yaml"], "nowhere.yaml"),
    "both": (["--resume", "--from-log", "x"], "exclude each other"),
    "collective": (["--collectives", "bcast,gossip"], "unknown collective gossip; choose from"),
    "size zero": (["--sizes", "0,1"], "at least 1 byte"),
    "sizes backwards": (["--sizes", "1KiB:1"], "expected FROM:TO"),
    "sizes no number": (["--sizes", "many"], "expected FROM:TO"),
    "sizes three": (["--sizes", "1:2:3"], "expected FROM:TO"),
    "timing": (["--timing", "stopwatch"], "mpptest"),
    "computation": (["--computation", "-1"], "-1"),
    "budget": (["--budget", "-2"], "-2"),
    "budget of nothing": (["--budget", "0m"], "not above 0"),
    "budget of two days": (["--budget", "48h"], "at most a day"),
    "budget of a size": (["--budget", "100000"], "not in the range"),
    "budget of no unit": (["--budget", "10x"], "neither auto, nor a number of seconds"),
    "budget of no number": (["--budget", "nan"], "not in the range"),
    "communicator": (["--communicators", "whole,left"], "unknown communicator 'left'; choose from"),
    "too many ranks": (["--communicators", "8"], "or a number from 2 to 7"),
    "launcher": (["--launcher", "rocket"], "launcher 'rocket'"),
    "no such log": (["--from-log", "nowhere.jsonl"], "cannot read the log"),
}


@pytest.mark.parametrize(("words", "message"), WRONG_USAGE.values(), ids=WRONG_USAGE)
def test_wrong_usage_is_status_2(tmp_path, words, message):
    if words[0] != "tune":
        words = ["tune", "--topology", str(CLUSTER), "--output", str(tmp_path / "out"), *words]
    result = stagegen(*words, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("what", ["topology", "catalogue"])
def test_a_log_of_something_else_is_refused(recorded, tmp_path, what):
    log, _, _, _ = recorded
    lines = log.read_text().splitlines()
    header = {**json.loads(lines[0]), f"{what}_hash": "0" * 64}
    del header["routines"]  # as in logs of before there were hashes of routines
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n")
    result = from_log(CLUSTER, other, tmp_path / "out")
    assert result.returncode == 2
    assert result.stderr.startswith(f"{other}:1: this log was measured with another {what}")
    assert not (tmp_path / "out").exists()


def test_a_log_that_ends_too_early_is_status_1(recorded, tmp_path):
    log, _, _, _ = recorded
    lines = log.read_text().splitlines(keepends=True)
    short = tmp_path / "short.jsonl"
    short.write_text("".join(lines[:-1]))
    result = from_log(CLUSTER, short, tmp_path / "out")
    assert result.returncode == 1
    assert "the log lacks" in result.stderr
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_written_is_status_1(recorded, tmp_path):
    log, _, _, _ = recorded
    (tmp_path / "file").write_text("")
    result = from_log(CLUSTER, log, tmp_path / "file" / "out")
    assert result.returncode == 1
    assert "cannot write" in result.stderr


def test_help_names_the_options():
    result = stagegen("tune", "--help")
    assert result.returncode == 0
    for option in ("--topology", "--launcher", "--sizes", "--timing", "--resume", "--from-log"):
        assert option in result.stdout
