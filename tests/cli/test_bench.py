"""``stagegen bench``: its JSON is a contract, so it is run for real, on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from docs import bench as benchmark
from stagegen.cli._sizes import parse_sizes
from stagegen.library import write_library
from stagegen.repository import Catalogue, load_catalogue
from tests.mpi import support

REFERENCE = Path(__file__).resolve().parents[2] / "generated" / "reference"

NUMBER = {"type": "number", "minimum": 0}
SCHEMA = {
    "type": "object",
    "required": ["environment", "rows"],
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
    result = bench("--topology", REFERENCE / "topology.yaml", *words)
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def row(collective: str, size: int, speedup: float, over: float) -> dict[str, object]:
    bound = 0.5
    tuned = bound * over
    return {
        "collective": collective,
        "size": size,
        "native_s": tuned * speedup,
        "native_interval_s": [tuned * speedup * 0.99, tuned * speedup * 1.01],
        "tuned_interval_s": [tuned * 0.99, tuned * 1.01],
        "tuned_s": tuned,
        "bound_s": bound,
        "speedup": speedup,
        "routine": "some",
    }


GOOD = {(g.collective, g.size): row(g.collective, g.size, g.speedup, 1.1) for g in benchmark.GOALS}

#: What else was measured or measured instead, and how many goals are missed by that.
MEASURED = {
    "all met": ([], 0),
    "slower than native": ([row("bcast", 64, 0.94, 3)], 1),
    "a little slower": ([row("bcast", 64, 0.96, 3)], 0),
    "speed-up": ([row("alltoall", 32768, 1.79, 1.1)], 1),
    "over the bound": ([row("reduce", 1 << 20, 2, 1.21)], 1),
    "told apart from native": ([row("gather", 65536, 0.96, 2)], 1),
    "not told apart from native": ([row("gather", 65536, 0.99, 2)], 0),
    "a speed-up is no matter of intervals": ([row("allreduce", 1 << 20, 2.49, 1.1)], 1),
}


@pytest.mark.parametrize(("rows", "missed"), MEASURED.values(), ids=MEASURED)
def test_goals_are_judged(rows, missed: int, capsys: pytest.CaptureFixture[str]) -> None:
    measured = {**GOOD, **{(r["collective"], r["size"]): r for r in rows}}
    assert benchmark.judge(list(measured.values())) == (missed == 0)
    assert capsys.readouterr().out.count("MISSED") == missed


@pytest.mark.parametrize(("most", "met"), [(99.9, True), (100.1, False)])
def test_the_overhead_is_judged_by_its_worst(most: float, met: bool) -> None:
    assert benchmark.judge_overhead({"bcast": 3.0, "reduce": most, "scatter": -1.0}) == met


def test_the_plan_has_all_collectives_and_every_goal() -> None:
    points = {
        (name, size)
        for names, sizes in benchmark.PLAN
        for name in names
        for size in parse_sizes(None, None, sizes)
    }
    assert {name for name, _ in points} == set(load_catalogue().collectives)
    assert {(goal.collective, goal.size) for goal in benchmark.GOALS} <= points


def test_the_picture_has_a_panel_for_every_collective_with_sizes(tmp_path: Path) -> None:
    names = [name for name in load_catalogue().collectives if name != "barrier"]
    rows = [row(name, size, 2, 1.5) for name in names for size in (1, 1024)]
    rows[0]["bound_s"] = None
    benchmark.plot([*rows, {**row("barrier", 0, 1, 1), "bound_s": None}], str(tmp_path / "a.svg"))
    picture = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in picture for name in (*names, "MPICH", "libcoll", "lower bound"))
    assert ">barrier<" not in picture


def test_the_table_has_a_line_for_every_row() -> None:
    rows = [row("bcast", 64, 2, 1.5), {**row("barrier", 0, 1.25, 1), "bound_s": None}]
    _, _, *lines = benchmark.table(rows).splitlines()
    assert lines == [
        "| bcast | 64 | 1500 | 750 | 500 | 2.00 | 1.50 | some |",
        "| barrier | 0 | 625 | 500 | – | 1.25 | – | some |",
    ]


@pytest.mark.mpi
def test_what_intercepting_costs(tmp_path: Path) -> None:
    """On one rank and without data, where a call does next to nothing; of any library."""
    library = tmp_path / "library"
    topology = support.cluster(2)
    catalogue = load_catalogue()
    few = [a for a in catalogue.algorithms if a.name in ("native", "knomial") or a.deterministic]
    small = Catalogue(tuple(few), catalogue.hash)
    write_library(library, topology, small, support.decision(topology, small), {})
    overheads = benchmark.measure_overhead(str(library))
    assert set(overheads) == set(catalogue.collectives)
    assert benchmark.judge_overhead(overheads)
