"""`stagegen tune --for`: what a program calls is measured, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stagegen.cli.tune as cli
from stagegen.catalogue import load_catalogue
from stagegen.cli import _program
from stagegen.errors import InputError
from stagegen.topology import Topology, load_topology
from stagegen.tune.program import Calls
from tests.cli.test_tune import stagegen
from tests.cli.test_tune_communicators import TOPOLOGY, few_routines
from tests.library.schemas import validate

pytestmark = pytest.mark.mpi

#: Kind, ranks, hosts, size, seconds; the third takes next to no time.
CALLS = [
    ("cluster", 7, 7, 100, 1.0),
    ("cluster", 7, 7, 5000, 3.0),
    ("cluster", 7, 7, 900, 1e-6),
    ("hosts", 3, 3, 64, 2.0),
]
MEASURED = {("whole", 100), ("whole", 5000), ("3x1", 64)}


def write_trace(path: Path, topology: Path, *calls: tuple[str, int, int, int, float]) -> Path:
    rows = [
        {
            "collective": "bcast", "communicator": kind, "ranks": ranks, "hosts": hosts,
            "bytes": size, "routine": "native", "calls": 1, "seconds": seconds,
        }
        for kind, ranks, hosts, size, seconds in calls
    ]  # fmt: skip
    about = {"version": 1, "library": "1", "cluster": "two-switch", "left_out": 0}
    form = {**about, "topology_hash": load_topology(topology).hash, "calls": rows}
    validate("trace", form)
    path.write_text(json.dumps(form), encoding="utf-8")
    return path


def test_a_recording_may_be_left_in_parts(monkeypatch, words, tmp_path):
    """Then it is a folder; the rest of the tuning is as with a file."""
    parts = tmp_path / "program.parts"
    parts.mkdir()
    nothing = stagegen(*words, "--for", parts)
    assert nothing.returncode == 2
    assert "there is no part of a recording" in nothing.stderr
    asked: list[Path] = []

    def read(path: Path, _topology: Topology) -> tuple[Calls, ...]:
        asked.append(path)
        raise InputError("that is enough")

    monkeypatch.setattr(_program, "read_trace", read)
    assert "that is enough" in stagegen(*words, "--for", parts).stderr
    assert asked == [parts]


@pytest.fixture
def few(monkeypatch) -> None:
    catalogue = few_routines(load_catalogue())
    monkeypatch.setattr(cli, "load_catalogue", lambda **_: catalogue)


@pytest.fixture
def words(tmp_path) -> list[object]:
    topology = tmp_path / "two-switch.yaml"
    topology.write_text(TOPOLOGY)
    return ["tune", "--topology", topology, "--output", tmp_path / "out"]


def test_what_the_traces_say_is_measured_and_resumed(few, words, tmp_path):
    first = write_trace(tmp_path / "first", words[2], *CALLS[:2])
    second = write_trace(tmp_path / "second", words[2], *CALLS[2:])
    words += ["--for", first, "--for", second]
    result = stagegen(*words, "--budget", "0", "--launches", "1")
    assert result.returncode == 0, result.stderr
    assert "3 sizes of 1 collectives take 100.0% of the time" in result.stderr
    log = (tmp_path / "out" / "measurements.jsonl").read_text()
    records = [json.loads(line) for line in log.splitlines()]
    for record in records:
        validate("measurements", record)
    scouted = {
        (r["communicator"], r["size"])
        for r in records
        if r["kind"] == "measurement" and r["launch"] == 0
    }
    assert scouted >= MEASURED
    assert {name for name, _ in scouted} == {name for name, _ in MEASURED}
    decision = json.loads((tmp_path / "out" / "decision.json").read_text())
    assert {table["collective"] for table in decision["tables"]} == {"bcast"}
    assert stagegen(*words, "--resume").returncode == 0
    assert (tmp_path / "out" / "measurements.jsonl").read_text() == log
    other = stagegen(*words[:5], "--for", first, "--resume")
    assert other.returncode == 2
    assert "--for differs from what" in other.stderr


@pytest.mark.parametrize(
    "option", [("--sizes", "1"), ("--collectives", "bcast"), ("--communicators", "whole")]
)
def test_options_that_repeat_what_traces_say_are_refused(few, words, tmp_path, option):
    trace = write_trace(tmp_path / "trace", words[2], *CALLS)
    result = stagegen(*words, "--for", trace, *option)
    assert result.returncode == 2
    assert f"--for and {option[0]} exclude each other" in result.stderr


def test_a_trace_that_is_none_is_reported(few, words, tmp_path):
    (tmp_path / "trace").write_text("{}")
    result = stagegen(*words, "--for", tmp_path / "trace")
    assert result.returncode == 2
    assert "not a file of LIBCOLL_TRACE=json:FILE" in result.stderr
