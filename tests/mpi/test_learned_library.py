"""`tune --adaptive`, a run, `learn`, a run again: it starts from what programs learned."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path
from statistics import median

import pytest

from stagegen.adaptive.learned import read_learned
from stagegen.catalogue.selection import Selection
from stagegen.generate import run_make
from stagegen.measure.timing import Timing
from stagegen.tune.scope import Options
from tests.cli.test_tune import stagegen
from tests.library.recorded import record
from tests.library.schemas import validate
from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

TOPOLOGY = """
name: small
launcher: local
defaults: {bandwidth: 1Gbit, latency: 50us}
switches:
  s0: {hosts: "n[0-1]"}
  s1: {hosts: "n[2-3]"}
links:
  - {ends: [s0, s1]}
"""
ALGORITHMS = ("ring", "bruck", "recursive_doubling", "spreading_simple")
SIZE, RANKS, CALLS = 3000, 4, 120  # between the sizes that tuning measured


def tuned(folder: Path) -> Path:
    """Return a library that was made with `tune --adaptive` from a recorded log."""
    topology, log, output = (folder / name for name in ("small.yaml", "log.jsonl", "library"))
    topology.write_text(TOPOLOGY, encoding="utf-8")
    selection = Selection(tuple(f"allgather/{name}" for name in sorted(ALGORITHMS)))
    options = Options(
        ("allgather",), (64, 2048, 65536), Timing("barrier"), 20.0, ("whole",), selection
    )
    record(topology, log, options=options)
    from_log(folder)
    return output


def from_log(folder: Path, log: str = "log.jsonl"):
    made = stagegen(
        "tune", "--topology", folder / "small.yaml", "--from-log", folder / log, "--adaptive",
        "--output", folder / "library",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return made


def run(library: Path, file: Path):
    """Build the library and return what a program of one collective learned with it."""
    run_make(library, support.toolchain(), "libcoll.a")
    program = builds.c_program(builds.Mpi.of_environment(), library, "adaptive.c")
    words = (program, "same", "allgather", str(SIZE), str(CALLS))
    settings = {"LIBCOLL_ADAPTIVE": "halving,sites=1", "LIBCOLL_LEARN": str(file)}
    result = support.run(RANKS, *words, variables=settings)
    assert result.returncode == 0, result.stdout + result.stderr
    (situation,) = read_learned(file).situations
    return situation


def known(library: Path, size: int | None = None):
    """The known times of the cluster's table, by algorithm and size."""
    form = json.loads((library / "known.json").read_text(encoding="utf-8"))
    validate("known", form)
    (table,) = (one for one in form["tables"] if one["communicator"] == "cluster")
    rows = {(row["candidate"].partition(":")[0], row["bytes"]): row for row in table["times"]}
    return rows if size is None else {n: row for (n, s), row in rows.items() if s == size}


def on_the_line(rows, name: str) -> float:
    """Seconds at SIZE, between the two known sizes around it."""
    sizes = sorted(size for of, size in rows if of == name)
    low = max(size for size in sizes if size <= SIZE)
    high = min(size for size in sizes if size >= SIZE)
    below, above = (rows[name, size]["seconds"] for size in (low, high))
    return below + (SIZE - low) / (high - low) * (above - below)


def test_the_next_run_starts_from_what_programs_learned(tmp_path):
    library = tuned(tmp_path)
    before = known(library)
    assert not any("learned" in row for row in before.values())
    first = run(library, tmp_path / "first.json")
    told = {c.algorithm: s for c, s in zip(first.candidates, first.known_s, strict=True)}
    expected = {n: row["seconds"] for (n, size), row in before.items() if size == 2048}
    line = {name: on_the_line(before, name) for name in expected}
    assert told == pytest.approx({name: line[name] for name in told})

    words = ("learn", tmp_path / "first.json", "--library", library)
    learned = stagegen(*words)
    assert learned.returncode == 0, learned.stderr
    now = known(library, SIZE)
    assert {key: row for key, row in known(library).items() if key[1] != SIZE} == before
    tried = {first.candidates[i].algorithm: first.times_of(i) for i in first.medians}
    assert set(tried) <= set(now) == set(expected)
    for name, times in tried.items():
        assert now[name]["seconds"] == pytest.approx(median(times))
        assert now[name]["learned"] == {
            "files": ["first.json"], "calls": len(times), "factor": None,
        }  # fmt: skip
    for name in set(now) - set(tried):
        factor = now[name]["learned"]["factor"]
        assert now[name]["seconds"] == pytest.approx(line[name] * factor)

    again = stagegen(*words)
    assert again.returncode == 2
    assert "another build" in again.stderr
    second = run(library, tmp_path / "second.json")
    told = {c.algorithm: s for c, s in zip(second.candidates, second.known_s, strict=True)}
    assert told == pytest.approx({name: now[name]["seconds"] for name in told})
    limit = 1.5 * min(second.known_s)
    fixed = {0, [c.algorithm for c in second.candidates].index("native")}
    entering = {i for i, seconds in enumerate(second.known_s) if i in fixed or seconds <= limit}
    # Each is tried in its turn, the fastest first; later races have a wider margin.
    race = list(takewhile(lambda stage: not stage.is_monitoring, second.stages))
    assert {stage.candidate for stage in race} == entering
    order = [stage.candidate for stage in race[: len(entering)]]
    assert order == sorted(entering, key=lambda i: second.known_s[i])


def test_tuning_again_says_that_it_drops_what_was_learned(tmp_path):
    library = tuned(tmp_path)
    original = {p: p.read_bytes() for p in library.rglob("*") if p.is_file()}
    form = json.loads((library / "known.json").read_text(encoding="utf-8"))
    assert "dropped" not in from_log(tmp_path).stderr
    form["tables"][0]["times"][0]["learned"] = {"files": ["a.json"], "calls": 3, "factor": None}
    (library / "known.json").write_text(json.dumps(form), encoding="utf-8")
    said = from_log(tmp_path, "library/measurements.jsonl").stderr
    assert "0 rules and 1 known times that `stagegen learn` took from a.json" in said
    assert {p: p.read_bytes() for p in library.rglob("*") if p.is_file()} == original
