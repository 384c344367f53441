"""The reference cluster's folder is what its log makes of it today, but for comments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stagegen.catalogue.c_tokens import tokens
from tests.library.schemas import validate

REFERENCE = Path(__file__).parents[2] / "generated" / "reference"
UNKEPT = {"report.html"}


def generate(output: Path) -> dict[str, bytes]:
    command = [sys.executable, "-m", "stagegen", "tune"]
    command += ["--topology", str(REFERENCE / "topology.yaml"), "--output", str(output)]
    command += ["--from-log", str(REFERENCE / "measurements.jsonl")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return contents(output)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in (".o", ".so", ".a") and "build" not in path.parts
    }


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> dict[str, bytes]:
    return generate(tmp_path_factory.mktemp("reference") / "one")


def meaning(name: str, data: bytes) -> object:
    """Return what a file says to programs: comments and layout of C are for people."""
    if name.endswith((".c", ".h")):
        return list(tokens(data.decode()))
    if name == "manifest.json":
        return {**json.loads(data), "files": None}
    return data


def test_every_file_says_the_same(fresh):
    kept = {name: data for name, data in contents(REFERENCE).items() if name not in UNKEPT}
    made = {name: data for name, data in fresh.items() if name not in UNKEPT}
    assert kept.keys() == made.keys()
    different = [name for name in kept if meaning(name, kept[name]) != meaning(name, made[name])]
    assert not different, "run `python docs/tools/reference.py`, and see what changed"


def test_the_report_is_the_same_twice(fresh, tmp_path):
    assert generate(tmp_path / "two")["report.html"] == fresh["report.html"]


def test_the_log_keeps_to_its_schema():
    lines = (REFERENCE / "measurements.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        validate("measurements", record)
    (session, *_) = (record for record in records if record["kind"] == "session")
    assert session["environment"]["launcher"] == "lab"
    assert not [r for r in records if r["kind"] == "check" and r["wrong"]]
