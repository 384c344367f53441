"""``--timing imbalance:F|replay:FILE`` and ``bench --arrivals``: for real, and wrong ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stagegen.measure.arrivals import Imbalance, Replay
from stagegen.measure.timing import Timing
from stagegen.recording.container import write_recording
from tests.cli import here
from tests.library.schemas import validate
from tests.recording.made import Call, recording

TOPOLOGY = """\
name: two
defaults: {bandwidth: 1Gbit, latency: 50us}
switches:
  s0: {hosts: "n[0-1]"}
"""

#: Site 0 has two calls of 8 bytes and one of 16; site 1 has one call.
CALLS = (
    Call("allreduce", (0.0, 0.003), (0.004, 0.004), 8, 0),
    Call("allreduce", (0.011, 0.01), (0.014, 0.014), 8, 0),
    Call("allreduce", (0.02, 0.02), (0.024, 0.024), 16, 0),
    Call("allreduce", (0.03, 0.031), (0.034, 0.034), 8, 1),
)


def stagegen(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stagegen", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrivals")
    (folder / "two.yaml").write_text(TOPOLOGY)
    write_recording(folder / "calls.rec", recording(CALLS, size=2))
    write_recording(folder / "four.rec", recording([Call("barrier", [0.0] * 4, [1.0] * 4)]))
    return folder


def tune(
    files: Path, output: str, *words: str, run: Run = stagegen
) -> subprocess.CompletedProcess[str]:
    return run(
        *("tune", "--topology", files / "two.yaml", "--launcher", "local", "--output"),
        *(files / output, "--collectives", "allreduce", "--sizes", "64", "--budget", "0.05"),
        *("--algorithms", "allreduce/recursive_doubling", "--communicators", "whole"),
        *("--launches", "1", *words),
    )


@pytest.mark.mpi
def test_tables_are_made_and_compared_under_imbalance_and_under_a_replay(files):
    """Log and decision say so; other delays do not go on with the log."""
    site = f"{files / 'calls.rec'}#program+0x10/8"
    made = {
        "random": tune(files, "random", "--timing", "imbalance:3ms", "--seed", "7"),
        "replayed": tune(files, "replayed", "--timing", f"replay:{site}", "--metric", "last"),
    }
    plans = {}
    for name, result in made.items():
        assert result.returncode == 0, result.stderr
        decision = json.loads((files / name / "decision.json").read_text())
        validate("decision", decision)
        lines = (files / name / "measurements.jsonl").read_text().splitlines()
        header, *records = map(json.loads, lines)
        for record in (header, *records):
            validate("measurements", record)
        assert header["timing"]["arrivals"] == decision["timing"]["arrivals"]
        measured = [record for record in records if record["kind"] == "measurement"]
        assert {record["timing"] for record in measured} == {decision["timing"]["mechanism"]}
        assert all(record["lateness"]["clock_error_s"] == 0 for record in measured)
        plans[name] = Timing.from_json(decision["timing"]).arrivals
    assert plans["random"] == Imbalance(3000, False, seed=7)
    offsets = [[0.0, 0.003], [0.001, 0.0]]
    assert plans["replayed"] == Replay.of("program+0x10/8/2", offsets)
    assert plans["replayed"].most == 3000
    refused = tune(files, "random", "--timing", "imbalance:4ms", "--resume")
    assert refused.returncode == 2
    assert "--timing differs" in refused.stderr
    forgotten = tune(files, "replayed", "--resume")
    assert forgotten.returncode == 2
    assert "replay:FILE#SITE" in forgotten.stderr
    again = tune(files, "replayed", "--resume", "--timing", f"replay:{site}")
    assert again.returncode == 0, again.stderr
    compared = stagegen(
        *("bench", "--topology", files / "two.yaml", "--launcher", "local", "--library"),
        *(files / "random", "--library", files / "replayed", "--collectives", "allreduce"),
        *("--sizes", "64", "--arrivals", site, "--repetitions", "4", "--format", "json"),
    )
    assert compared.returncode == 0, compared.stderr
    answer = json.loads(compared.stdout)
    assert answer["timing"]["mechanism"] == "replay"
    (row,) = answer["rows"]
    first, second = row["tables"]
    assert (first["over_first"], row["repetitions"]) == (1.0, 4)
    assert second["over_first"] > 0
    assert row["late"]["mean_s"] == row["native_s"]
    assert len(row["late"]["rounds"]["last"]) == 4


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--timing", "imbalance"), "imbalance:16"),
        (("--timing", "imbalance:0"), "must be from 1"),
        (("--timing", "imbalance:2h"), "imbalance:20ms"),
        (("--timing", "imbalance:2", "--metric", "slowest"), "choose mean or last"),
        (("--timing", "barrier", "--metric", "last"), "choose slowest or mean"),
        (("--timing", "replay"), "replay:FILE#SITE"),
        (("--timing", "replay:nowhere.rec"), "stagegen record"),
        (("--timing", "replay:{files}/two.yaml"), "recording"),
        (("--timing", "replay:{files}/calls.rec"), "program+0x10/8/2 (2 calls)"),
        (("--timing", "replay:{files}/calls.rec#program+0x10"), "several kinds"),
        (("--timing", "replay:{files}/calls.rec#other"), "no calls of other"),
        (("--timing", "replay:{files}/four.rec"), "recorded on 4 ranks"),
    ],
)
def test_a_wrong_plan_is_status_2_and_says_what_to_give(files, words, says):
    given = (word.format(files=files) for word in words)
    result = tune(files, "never", *given, run=here.stagegen)
    assert result.returncode == 2, result.stderr
    assert says in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--library", "{files}", "--arrivals", "imbalance:4"), "no decision.json"),
        (("--library", "generated/reference", "--arrivals", "imbalance:4"), "another topology"),
        (("--library", "{files}", "--arrivals", "nowhere.rec"), "stagegen record"),
        (("--library", "{files}", "--arrivals", "imbalance"), "imbalance:16"),
    ],
)
def test_a_wrong_comparison_is_status_2(files, words, says):
    given = (word.format(files=files) for word in words)
    result = here.stagegen("bench", "--topology", files / "two.yaml", *given)
    assert result.returncode == 2, result.stderr
    assert says in " ".join(result.stderr.split())
