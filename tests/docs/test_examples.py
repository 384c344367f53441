"""The worked examples of docs/examples, installed outside of the repository and tuned with."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path

import pytest

from stagegen.audit import audit_folder
from stagegen.topology import load_topology
from tests.library.schemas import validate

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
TOPOLOGY = """\
name: four
switches:
  s0: {hosts: "n[0-1]"}
  s1: {hosts: "n[2-3]"}
links:
  - {ends: [s0, s1]}
"""
PACKAGES = ("generator", "launcher", "package")
QUICK = ["--launcher", "local", "--sizes", "64", "--budget", "0.1", "--communicators", "whole"]


def run(
    *words: str | Path, cwd: Path, path: tuple[Path, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run stagegen in a process of its own, which sees the packages of some folders."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *path)))}
    return subprocess.run(
        [sys.executable, "-m", "stagegen", *map(str, words)],
        capture_output=True, text=True, cwd=cwd, env=variables, timeout=250, check=False,
    )  # fmt: skip


@pytest.fixture
def cluster(tmp_path) -> Path:
    folder = tmp_path / "cluster"
    folder.mkdir()
    (folder / "topology.yaml").write_text(TOPOLOGY)
    return folder


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """A folder with the packages of the examples, installed by pip from copies."""
    copies, target = tmp_path_factory.mktemp("copies"), tmp_path_factory.mktemp("site")
    for name in ("algorithm", "timing", *PACKAGES):
        shutil.copytree(EXAMPLES / name, copies / name)
    isolated = [] if find_spec("hatchling") is None else ["--no-build-isolation"]
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", *isolated,
            "--disable-pip-version-check", "--target", target,
            *(copies / name for name in PACKAGES),
        ],
        check=True, cwd=copies,
    )  # fmt: skip
    return target


def contents(folder: Path) -> dict[str, bytes]:
    apart = {"build"}
    files = (p for p in folder.rglob("*") if p.is_file())
    paths = ((p.relative_to(folder), p) for p in files)
    return {r.as_posix(): p.read_bytes() for r, p in sorted(paths) if r.parts[0] not in apart}


def measured(folder: Path) -> set[str]:
    """The routines that a folder's log has times of."""
    lines = (folder / "measurements.jsonl").read_text().splitlines()
    records = list(map(json.loads, lines))
    for record in records:
        validate("measurements", record)
    return {spec for r in records if r["kind"] == "measurement" for spec in r["seconds"]}


def launchers(folder: Path) -> set[str]:
    """The launchers of a folder's sessions."""
    records = [json.loads(line) for line in (folder / "measurements.jsonl").open()]
    return {r["environment"]["launcher"] for r in records if r["kind"] == "session"}


def made_again(folder: Path, tmp_path: Path) -> None:
    """Move the folder, and let its own command make it again, without what it was made from."""
    moved = tmp_path / "moved"
    shutil.move(folder, moved)
    before = contents(moved)
    command = json.loads((moved / "manifest.json").read_text())["command"].split()
    result = run(*command[1:], "--output", moved, cwd=moved)
    assert result.returncode == 0, result.stderr
    assert contents(moved) == before


@pytest.mark.mpi
def test_parts_in_folders_serve_a_tuning(cluster, tmp_path):
    """An algorithm, a timing mechanism and a launcher."""
    shutil.copytree(EXAMPLES / "algorithm" / "templates", cluster / "templates")
    shutil.copy(EXAMPLES / "timing" / "arrival.c", cluster)
    shutil.copy(EXAMPLES / "launcher" / "stagegen_nice.py", cluster / "nice.py")
    text = (EXAMPLES / "algorithm" / "stagegen.yaml").read_text()
    more = "timings: [arrival.c]\nlaunchers: {nice: nice.py:NiceLauncher}\n"
    (cluster / "stagegen.yaml").write_text(f"{text}{more}")
    words = ["--algorithms", "star", "--timing", "arrival", "--computation", "1"]
    words += ["--launcher", "nice", *QUICK[2:]]
    out = tmp_path / "out"
    tune = ["tune", "--topology", cluster / "topology.yaml", "--output", out]
    result = run(*tune, *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert measured(out) == {"star", "native"}
    assert launchers(out) == {"nice"}
    log = (out / "measurements.jsonl").read_bytes()
    result = run(*tune, *words, "--resume", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (out / "measurements.jsonl").read_bytes() == log, "nothing is left to measure"
    assert b"/cluster/" not in b"".join(contents(out).values()), "no path of what it was made from"
    shutil.rmtree(cluster)
    list(audit_folder(out))
    made_again(out, tmp_path)


@pytest.mark.mpi
def test_a_generator_and_a_launcher_of_packages_serve_a_tuning(cluster, packages, tmp_path):
    shutil.copytree(EXAMPLES / "generator" / "cluster", cluster, dirs_exist_ok=True)
    out, topology = tmp_path / "out", cluster / "topology.yaml"
    words = ["--algorithms", "greedy", "--launcher", "nice", *QUICK[2:], "--output", out]
    result = run("tune", "--topology", topology, *words, cwd=tmp_path, path=(packages,))
    assert result.returncode == 0, result.stderr
    assert measured(out) == {"greedy", "native"}
    assert launchers(out) == {"nice"}
    decision = json.loads((out / "decision.json").read_text())
    for table in decision["tables"]:  # a routine with tables serves these very ranks only
        served = {rule["algorithm"] for rule in table["rules"]}
        assert table["communicator"] == "cluster" or served == {"native"}
    shutil.rmtree(cluster)
    made_again(out, tmp_path)


@pytest.mark.mpi
def test_templates_and_a_timing_mechanism_of_a_package_serve_a_tuning(cluster, packages, tmp_path):
    out = tmp_path / "out"
    words = ["--algorithms", "star", "--timing", "arrival", "--computation", "1", *QUICK]
    tune = ["tune", "--topology", cluster / "topology.yaml", *words, "--output", out]
    result = run(*tune, cwd=tmp_path)
    assert result.returncode == 2, "without the package, both names are unknown"
    result = run(*tune, cwd=tmp_path, path=(packages,))
    assert result.returncode == 0, result.stderr
    assert measured(out) == {"star", "native"}
    header = json.loads((out / "measurements.jsonl").open().readline())
    assert header["timing"]["mechanism"] == "arrival"
    assert b"stagegen_star" not in b"".join(contents(out).values()), "no path of the package"
    list(audit_folder(out))
    made_again(out, tmp_path)


def test_only_the_packages_that_are_listed_count(cluster, packages, tmp_path):
    words = ["catalogue", "--topology", cluster / "topology.yaml", "--collectives", "allgather"]

    def names() -> list[str]:
        result = run(*words, cwd=tmp_path, path=(packages,))
        assert result.returncode == 0, result.stderr
        return result.stdout.split()

    assert "allgather/star" in names()
    (cluster / "stagegen.yaml").write_text("packages: [stagegen-greedy]\n")
    assert "allgather/star" not in names()


@pytest.mark.parametrize(
    ("group", "value", "why"),
    [
        ("templates", "stagegen_broken:FOLDER", "there is no folder"),
        ("timings", "stagegen_broken:FOLDER", "there is no file"),
        ("templates", "stagegen_broken:NOTHING", "AttributeError"),
        ("timings", "stagegen_none:FILE", "ModuleNotFoundError"),
    ],
)
def test_a_broken_entry_point_names_its_package(cluster, tmp_path, group, value, why):
    site = tmp_path / "site"
    about = site / "stagegen_broken-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "stagegen_broken.py").write_text("FOLDER = '/nowhere/at/all'\n")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stagegen-broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[stagegen.{group}]\nbad = {value}\n")
    timing = ["--timing", "bad"] if group == "timings" else []
    tune = ["tune", "--topology", cluster / "topology.yaml", *timing, *QUICK]
    result = run(*tune, cwd=tmp_path, path=(site,))
    assert result.returncode == 2
    assert f"package stagegen-broken, stagegen.{group}: bad" in result.stderr
    assert why in result.stderr


def test_the_tables_of_the_generator_are_phases_of_its_pattern(cluster, packages, tmp_path):
    """Every pair has its turn once, those of the pattern first, and no phase has contention."""
    shutil.copytree(EXAMPLES / "generator" / "cluster", cluster, dirs_exist_ok=True)
    script = (
        "import sys, json, pathlib; from stagegen.topology import load_topology;"
        "from stagegen_greedy import generate;"
        "print(*generate(load_topology(sys.argv[1]), pathlib.Path(sys.argv[2])).values())"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, cluster / "topology.yaml", cluster / "pattern.txt"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, packages)))},
    )  # fmt: skip
    receivers, senders = (
        [list(map(int, row.rstrip(",").split(","))) for row in body.split("\n") if row.strip()]
        for body in re.findall(r"_of\[\] = \{\n(.*?)\n\};", result.stdout, re.DOTALL)
    )
    topology = load_topology(cluster / "topology.yaml")
    phases = [
        [(rank, row[phase]) for rank, row in enumerate(receivers) if row[phase] >= 0]
        for phase in range(len(receivers[0]))
    ]
    assert sorted(pair for phase in phases for pair in phase) == sorted(permutations(range(4), 2))
    for number, phase in enumerate(phases):
        assert all(senders[there][number] == rank for rank, there in phase)
        edges = [edge for pair in phase for edge in topology.path(*pair)]
        assert len(edges) == len(set(edges))
    pattern = {(0, 1), (1, 2), (1, 0), (2, 3), (2, 0), (3, 0)}
    assert set(phases[0]) <= pattern
