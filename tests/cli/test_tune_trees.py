"""``stagegen tune --tree``: trees compete, and only what a change of a file changes is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.here import stagegen
from tests.cli.test_tune_log import algorithms_measured, tuned
from tests.cli.two_by_two import CLUSTER

#: On the eight hosts of the model's cluster.
QUICKSTART = "topologies/quickstart.yaml"


def made(folder: Path, shape: str, name: str, topology: Path | str = QUICKSTART) -> Path:
    file = folder / f"{name}.tree.yaml"
    words = ("--topology", topology, "--shape", shape, "--name", name)
    result = stagegen("tree", "make", *words, "--output", file)
    assert result.returncode == 0, result.stderr
    return file


def test_resuming_measures_only_the_trees_that_have_changed(tmp_path, monkeypatch):
    files = made(tmp_path, "binary", "one"), made(tmp_path, "quad", "other")
    trees = ("--tree", files[0], "--tree", files[1], "--collectives", "barrier")
    live, log = tmp_path / "live", tmp_path / "live" / "measurements.jsonl"
    assert tuned(monkeypatch, live, *trees, noise=0).returncode == 0
    first = log.read_bytes()
    measured = algorithms_measured(log, b"")
    assert {"configured_tree_one", "configured_tree_other", "native", "binomial"} <= measured
    assert tuned(monkeypatch, live, *trees, "--resume", noise=0).returncode == 0
    assert log.read_bytes() == first, "nothing has changed, so nothing is missing"
    made(tmp_path, "3-ary", "other")
    assert tuned(monkeypatch, live, *trees, "--resume", noise=0).returncode == 0
    assert algorithms_measured(log, first) == {"configured_tree_other"}


def test_two_trees_whose_names_are_alike_are_refused(tmp_path, monkeypatch):
    """The algorithms of both would have one name, though the trees have not."""
    one, other = made(tmp_path, "flat", "my-tree"), made(tmp_path, "quad", "my.Tree")
    trees = ("--tree", one, "--tree", other, "--collectives", "barrier")
    result = tuned(monkeypatch, tmp_path / "out", *trees)
    assert result.returncode == 2
    said = " ".join(result.stderr.split())
    problem = f"{other}:1: the tree 'my-tree' in {one} has the same name in C"
    assert said.startswith(problem)
    assert not (tmp_path / "out").exists()


@pytest.mark.mpi
def test_trees_compete_with_native_and_the_folder_has_their_files(tmp_path):
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER)
    trees = made(tmp_path, "nary", "one", cluster), made(tmp_path, "flat", "other", cluster)
    result = stagegen(
        *("tune", "--topology", cluster, "--launcher", "local", "--output", tmp_path / "out"),
        *("--tree", trees[0], "--tree", trees[1], "--algorithms", "configured_tree_*"),
        *("--collectives", "barrier", "--communicators", "whole", "--budget", "0"),
    )
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "out"
    specs = {f"configured_tree_{name}:on_host={by}" for name in ("one", "other") for by in (1, 2)}
    log = [json.loads(line) for line in (folder / "measurements.jsonl").read_text().splitlines()]
    checks = {one["routine"]: one["wrong"] for one in log if one["kind"] == "check"}
    assert checks == dict.fromkeys(specs, 0)
    times = [one["seconds"] for one in log if one["kind"] == "measurement"]
    assert {spec.partition(":")[0] for one in times for spec in one} == {
        "native", "configured_tree_one", "configured_tree_other"
    }  # fmt: skip
    kept = {file.name: file.read_text() for file in folder.glob("parts/*/trees/*.tree.yaml")}
    assert kept == {file.name: file.read_text() for file in trees}
