"""`--algorithms` and its kin: the catalogue lists what competes, the log keeps it, tune obeys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.catalogue.algorithm import SCHEDULES
from stagegen.data import TOPOLOGIES
from tests.cli.test_tune import CLUSTER, contents, from_log, stagegen
from tests.cli.test_tune_log import algorithms_measured, tuned
from tests.library.schemas import validate

PAGE = Path(__file__).parents[2] / "docs" / "interfaces.md"


def listed(*words: str | Path) -> list[dict]:
    result = stagegen("catalogue", "--format", "json", *words)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["algorithms"]


def names(rows: list[dict]) -> list[str]:
    return [f"{row['collective']}/{row['algorithm']}" for row in rows]


def test_the_catalogue_lists_everything_by_default():
    rows = listed()
    assert names(rows) == [a.full_name for a in load_catalogue().algorithms]
    assert not any("runs_on" in row for row in rows)


def test_with_a_topology_the_catalogue_says_where_each_runs_and_why_not():
    topology = TOPOLOGIES / "chain-4x4-groups.yaml"
    rows = listed("--topology", topology, "--collectives", "alltoall,allgather")
    ranks = {"whole", "left", "one-per-switch"}
    assert {row["collective"] for row in rows} == {"alltoall", "allgather"}
    assert any(row["why_not"] for row in rows)
    for row in rows:
        assert {*row["runs_on"]}.isdisjoint(row["why_not"])
        assert {*row["runs_on"], *row["why_not"]} >= {"whole"}
        if row["algorithm"] == "native":
            assert row["runs_on"][0] == "whole"
            ranks = {*row["runs_on"]}
    assert all({*row["runs_on"], *row["why_not"]} == ranks for row in rows)
    text = stagegen("catalogue", "--topology", topology, "--collectives", "alltoall").stdout
    assert re.search(r"^alltoall/hierarchical +cannot run: no host has several ranks$", text, re.M)


def test_without_collectives_a_selection_says_which():
    rows = listed("--algorithms", "alltoall/ring,bcast/linear")
    assert names(rows) == ["alltoall/native", "alltoall/ring", "bcast/linear", "bcast/native"]
    rows = listed("--algorithms", "alltoall/ring", "--collectives", "bcast")
    assert names(rows) == ["bcast/native"]


@pytest.mark.parametrize("command", ["catalogue", "tune"])
@pytest.mark.parametrize("option", ["--algorithms", "--without-algorithms"])
def test_an_unknown_name_ends_with_status_2_and_writes_nothing(command, option, tmp_path):
    words = [command, "--topology", CLUSTER, option, "ring,brick"]
    if command == "tune":
        words += ["--output", tmp_path / "out"]
    result = stagegen(*words)
    assert result.returncode == 2
    assert "no algorithm is called brick; did you mean" in result.stderr
    assert "bruck" in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_selection_of_table_3_5_is_what_the_page_says():
    """Ten schemes (Faraj 2006, Table 3.5), one algorithm for each, and native."""
    (patterns,) = re.findall(r"--algorithms \\\n +'([^']*)'", PAGE.read_text(encoding="utf-8"))
    rows = listed("--algorithms", patterns)
    assert {row["collective"] for row in rows} == {"alltoall"}
    catalogue = load_catalogue()
    found = [catalogue.find("alltoall", row["algorithm"]) for row in rows]
    assert sorted(a.construction for a in found if a.needs) == sorted(SCHEDULES["aapc"])
    assert [a.name for a in found if not a.needs] == ["native"]


def header(path: Path) -> dict:
    return json.loads(path.read_text().splitlines()[0])


def test_tuning_measures_what_is_selected_and_nothing_else(tmp_path, monkeypatch):
    live, log = tmp_path / "live", tmp_path / "live" / "measurements.jsonl"
    words = ["--algorithms", "ring*,bruck", "--without-algorithms", "alltoall/*_barrier*"]
    assert tuned(monkeypatch, live, *words).returncode == 0
    assert algorithms_measured(log, b"") == {"native", "ring", "bruck"}
    validate("measurements", header(log))
    assert header(log)["selection"]["algorithms"] == ["bruck", "ring*"]
    again = from_log(CLUSTER, log, tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert contents(live) == contents(tmp_path / "again")
    decision = json.loads((live / "decision.json").read_text())
    served = {rule["algorithm"] for table in decision["tables"] for rule in table["rules"]}
    assert served <= {"native", "ring", "bruck"}


def test_without_topology_no_schedule_is_measured(tmp_path, monkeypatch):
    assert tuned(monkeypatch, tmp_path, "--without-topology").returncode == 0
    specs = algorithms_measured(tmp_path / "measurements.jsonl", b"")
    measured = {name for spec in specs for name in spec.replace("alltoall/", "").split("+")}
    plain = {a.name for a in load_catalogue().of("alltoall") if a.needs is None}
    assert {"native", "ring"} <= measured <= {*plain, "alltoallv/native"}


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
    "other", [["--algorithms", "bruck"], ["--without-algorithms", "ring"], ["--without-topology"]]
)
def test_a_log_of_another_selection_is_refused(tmp_path, monkeypatch, other, resume):
    log = tmp_path / "measurements.jsonl"
    assert tuned(monkeypatch, tmp_path, "--algorithms", "ring,bruck").returncode == 0
    before = log.read_bytes()
    words = [*other, *(["--resume"] if resume else ["--from-log", log])]
    result = tuned(monkeypatch, tmp_path, *words)
    assert result.returncode == 2
    assert f"{other[0]} differs from what" in " ".join(result.stderr.split())
    assert log.read_bytes() == before


def test_resuming_goes_by_the_selection_of_the_log(tmp_path, monkeypatch):
    log = tmp_path / "measurements.jsonl"
    assert tuned(monkeypatch, tmp_path, "--algorithms", "ring,bruck").returncode == 0
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert tuned(monkeypatch, tmp_path, "--resume", "--algorithms", "bruck,ring").returncode == 0
    assert algorithms_measured(log, b"") == {"native", "ring", "bruck"}


DAMAGED = [
    5,
    {},
    {"algorithms": "ring", "without_algorithms": [], "without_topology": False},
    {"algorithms": ["ring", "bruck"], "without_algorithms": [], "without_topology": False},
    {"algorithms": [5], "without_algorithms": [], "without_topology": False},
    {"algorithms": [], "without_algorithms": [], "without_topology": 0},
    {"algorithms": ["gossip"], "without_algorithms": [], "without_topology": False},
]


@pytest.mark.parametrize("selection", DAMAGED, ids=str)
def test_a_damaged_selection_is_reported_with_file_and_line(tmp_path, monkeypatch, selection):
    live, log = tmp_path / "live", tmp_path / "damaged.jsonl"
    assert tuned(monkeypatch, live, "--algorithms", "ring").returncode == 0
    lines = (live / "measurements.jsonl").read_text().splitlines(keepends=True)
    changed = json.dumps({**json.loads(lines[0]), "selection": selection}) + "\n"
    log.write_text("".join([changed, *lines[1:]]))
    result = from_log(CLUSTER, log, tmp_path / "out")
    assert result.returncode == 2
    assert result.stderr.startswith(f"{log}:1: ")
