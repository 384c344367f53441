"""``stagegen bench``: its JSON is a contract, so it is run for real, on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path

import jsonschema
import pytest

from docs.tools.bench.parts import measure_overhead
from stagegen.catalogue import load_catalogue
from stagegen.library import write_library
from tests.cli.here import stagegen
from tests.mpi import support

REFERENCE = Path(__file__).resolve().parents[2] / "generated" / "reference"

NUMBER = {"type": "number", "minimum": 0}
SCHEMA = {
    "type": "object",
    "required": ["environment", "environments_differ", "rows"],
    "properties": {
        "environment": {
            "type": "object",
            "required": ["launcher", "representative", "scale", "mpi", "mpi_version"],
        },
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [
                    "collective",
                    "size",
                    "native_s",
                    "tuned_s",
                    "speedup",
                    "bound_s",
                    "routine",
                ],
                "properties": {
                    "collective": {"enum": list(load_catalogue().collectives)},
                    "size": {"type": "integer"},
                    "native_s": NUMBER,
                    "tuned_s": NUMBER,
                    "speedup": NUMBER,
                    "bound_s": {"type": ["number", "null"], "minimum": 0},
                    "routine": {"type": "string"},
                },
            },
        },
    },
}


def bench(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stagegen", "bench", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


@pytest.mark.mpi
def test_json_pairs_native_and_tuned(tmp_path: Path) -> None:
    library = tmp_path / "library"
    shutil.copytree(REFERENCE, library)
    result = bench(
        *("--topology", library / "topology.yaml", "--library", library, "--launcher", "local"),
        *("--sizes", "1,64KiB", "--repetitions", "2", "--format", "json"),
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, SCHEMA)
    assert answer["environment"]["launcher"] == "local"
    assert answer["environment"]["representative"] is False
    assert sum(one["ranks"] * len(one["hosts"]) for one in answer["environment"]["machines"]) > 1
    assert "launcher" in answer["environments_differ"], "the reference was tuned in the lab"
    assert "another environment than the tuning's: launcher lab" in " ".join(result.stderr.split())
    points = [(row["collective"], row["size"]) for row in answer["rows"]]
    others = [name for name in load_catalogue().collectives if name != "barrier"]
    assert sorted(points) == sorted([("barrier", 0), *((c, s) for c in others for s in (1, 65536))])
    for row in answer["rows"]:
        assert row["speedup"] == pytest.approx(row["native_s"] / row["tuned_s"])
    decided = json.loads((library / "decision.json").read_text(encoding="utf-8"))
    chosen = {rule["algorithm"] for table in decided["tables"] for rule in table["rules"]}
    assert {row["routine"] for row in answer["rows"]} <= chosen


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--library", "nowhere"), "no decision.json"),
        (("--library", REFERENCE, "--collectives", "scan"), "unknown collective scan"),
        (("--library", REFERENCE, "--sizes", "0"), "at least 1 byte"),
        (("--library", REFERENCE, "--launcher", "pigeons"), "pigeons"),
    ],
)
def test_wrong_input_is_exit_2(words: tuple[str | Path, ...], says: str) -> None:
    result = stagegen("bench", "--topology", REFERENCE / "topology.yaml", *words)
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.mpi
def test_what_intercepting_costs_is_measured_for_every_collective(tmp_path: Path) -> None:
    """How much it is, `make bench` judges, on a machine that does nothing else."""
    library = tmp_path / "library"
    topology = support.cluster(2)
    catalogue = load_catalogue()
    few = [a for a in catalogue.algorithms if a.name in ("native", "knomial") or a.deterministic]
    small = replace(catalogue, algorithms=tuple(few))
    write_library(library, topology, small, support.decision(topology, small), {})
    overheads = measure_overhead(library)
    assert set(overheads) == set(catalogue.collectives)
    assert all(map(isfinite, overheads.values()))
