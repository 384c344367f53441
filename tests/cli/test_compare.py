"""``stagegen compare``: its JSON is a contract, so it is run for real, on this machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from stagegen.data import TOPOLOGIES
from stagegen.measure.log import read_log
from tests.cli.here import stagegen
from tests.library.schemas import validate

CLUSTER = TOPOLOGIES / "quickstart.yaml"
INTERVAL = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
SCHEMA = {
    "type": "object",
    "required": ["environment", "rows"],
    "properties": {
        "environment": {"required": ["launcher", "representative", "congestion_control"]},
        "rows": {
            "type": "array",
            "items": {
                "properties": {
                    "collective": {"type": "string"},
                    "size": {"type": "integer", "minimum": 0},
                    "routine": {"type": "string"},
                    "median_s": {"type": "number", "exclusiveMinimum": 0},
                    "interval_s": INTERVAL,
                    "bound_s": {"type": ["number", "null"], "minimum": 0},
                    "over_bound": {"type": ["number", "null"], "minimum": 0},
                    "ratio": {"type": "number", "exclusiveMinimum": 0},
                    "ratio_interval": INTERVAL,
                    "repetitions": {"type": "integer", "minimum": 1},
                    "seconds": {"type": "array", "minItems": 1, "items": {"type": "number"}},
                },
                "minProperties": 11,
                "additionalProperties": False,
            },
        },
    },
}


def compare(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return stagegen("compare", "--topology", CLUSTER, *words)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("collective", "algorithms", "sizes", "bounded"),
    [
        ("alltoall", "native,aapc_receiver,ring", (64, 1024), True),
        ("allgatherv", "ring,native", (1024,), True),
        ("barrier", "native,binomial", (0,), False),
        ("allreduce", "native,of_reduce_and_bcast+reduce/flat+bcast/native", (64,), True),
    ],
)
def test_candidates_are_timed_in_turn(tmp_path, collective, algorithms, sizes, bounded):
    result = compare(
        *("--collective", collective, "--algorithms", algorithms, "--launcher", "local"),
        *("--sizes", ",".join(str(size or 1) for size in sizes), "--repetitions", "2"),
        *("--output", tmp_path, "--format", "json"),
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, SCHEMA)
    assert answer["environment"]["launcher"] == "local"
    points = [(row["size"], row["routine"].partition(":")[0]) for row in answer["rows"]]
    assert points == [(size, name) for size in sizes for name in algorithms.split(",")]
    for row in answer["rows"]:
        assert (row["over_bound"] is not None) is bounded
        first = next(one for one in answer["rows"] if one["size"] == row["size"])
        assert (row["ratio"] == 1) >= (row is first)
    header, records = read_log(tmp_path / "measurements.jsonl")
    for record in (header, *records):
        validate("measurements", record)
        if record["kind"] == "measurement":
            rivals = {row["routine"] for row in answer["rows"] if row["size"] == record["size"]}
            assert set(record["seconds"]) == rivals
    checked = [record["routine"] for record in records if record["kind"] == "check"]
    assert sorted(checked) == sorted(
        {row["routine"] for row in answer["rows"] if row["routine"] != "native"}
    )


@pytest.mark.parametrize(
    ("collective", "algorithms", "says"),
    [
        ("scan", "native", "unknown collective scan"),
        ("alltoall", "rings", "no algorithm rings can run here"),
        ("alltoall", "aapc_sender_window:window=99", "window must be"),
        ("bcast", "linear,ring", "no algorithm ring can run here"),
    ],
)
def test_wrong_input_is_exit_2(tmp_path, collective, algorithms, says):
    result = compare(
        *("--collective", collective, "--algorithms", algorithms, "--sizes", "1KiB"),
        *("--output", tmp_path / "none"),
    )
    assert result.returncode == 2, result.stderr
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.mpi
def test_configured_trees_are_candidates_of_compare(tmp_path):
    file = tmp_path / "mine.tree.yaml"
    made = ("tree", "make", "--topology", CLUSTER, "--shape", "binary", "--name", "mine")
    assert stagegen(*made, "--output", file).returncode == 0
    result = compare(
        *("--collective", "barrier", "--algorithms", "native,configured_tree_mine", "--sizes", "1"),
        *("--tree", file, "--launcher", "local", "--repetitions", "1", "--format", "json"),
        *("--output", tmp_path / "out"),
    )
    assert result.returncode == 0, result.stderr
    names = [row["routine"].partition(":")[0] for row in json.loads(result.stdout)["rows"]]
    assert names == ["native", "configured_tree_mine"]
