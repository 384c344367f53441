"""Results of ``make bench`` that are kept: pages are made from them, and from nothing else."""

from __future__ import annotations

import json
from difflib import ndiff
from pathlib import Path

import pytest

from docs.tools.bench import __main__ as program
from docs.tools.bench import kept as kept_results
from docs.tools.bench.kept import Source, read_kept
from docs.tools.bench.page import page, readme
from docs.tools.bench.plan import CLUSTERS, CONGESTION, FIXED, KIB
from docs.tools.bench.results import Result, results
from tests.docs.bench_rows import row
from tests.measure.fakes import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
PAGE, README = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("docs/benchmark.md", "README.md")
)
FILES = sorted((ROOT / "docs/results/bench").glob("*.json"))

OF = Source("decision", "routines", "all")

#: A cluster; the tests below carry its rows over.
CARRIED = "random-1"


def form(collective: str, size: int, **more: object) -> dict[str, object]:
    """A row of `stagegen bench`."""
    return {
        "collective": collective, "size": size, "native_s": 2.0, "tuned_s": 1.0, "bound_s": 0.9,
        "native_interval_s": [1.9, 2.1], "tuned_interval_s": [0.9, 1.1], "repetitions": 9,
        "routine": "ring", "speedup": 2.0, **more,
    }  # fmt: skip


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a copy of all kept results."""
    for file in FILES:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(kept_results, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture
def carried(copied: Path) -> Path:
    """The same, with rows of one cluster that only a page still had."""
    lines = [form("alltoall", size, carried=True) for size in (32 * KIB, 64 * KIB, 256 * KIB)]
    for congestion in CONGESTION:
        (copied / f"{CARRIED}-{congestion}.json").unlink()
        read_kept(CARRIED, congestion).with_lines("rows", lines).write()
    return copied


def test_the_pages_are_those_of_the_kept_results():
    assert FILES
    assert page(PAGE, results()) == PAGE
    assert readme(README, results()) == README


def test_a_file_is_written_as_it_was_read(copied):
    for cluster in CLUSTERS:
        for congestion in CONGESTION:
            read_kept(cluster, congestion).write()
    for file in FILES:
        assert (copied / file.name).read_bytes() == file.read_bytes()


def test_a_new_row_changes_only_its_lines(carried):
    name = f"{CARRIED}-cubic.json"
    before, old = (carried / name).read_text().splitlines(), page(PAGE, results()).splitlines()
    one = form("bcast", 64 * KIB)
    read_kept(CARRIED, "cubic").with_rows([one], OF, ENVIRONMENT.to_json()).write()
    lines = (carried / name).read_text().splitlines()
    changed = [line for line in ndiff(before, lines) if line[:2] in ("- ", "+ ")]
    gone = {line[2:].rstrip(",") for line in changed if line[0] == "-"}
    new = {line[2:].rstrip(",") for line in changed if line[0] == "+"}
    assert gone <= new, "only a comma was added"
    (added,) = [line for line in new - gone if "environment" not in line.partition(":")[0]]
    assert json.loads(added)["collective"] == "bcast"
    told = page(PAGE, results()).splitlines()
    lost = set(old) - set(told)
    assert all("bcast" in line or "guideline" in line for line in lost), "its earlier row, targets"
    assert sum(line.startswith("| alltoall |") for line in told) == sum(
        line.startswith("| alltoall |") for line in old
    )
    rows = (sum(line.startswith("| bcast | 65536 |") for line in text)
            for text in (told, old))  # fmt: skip
    assert next(rows) == next(rows) + 1


def test_what_is_measured_replaces_what_was_carried(carried):
    before = read_kept(CARRIED, "bbr")
    assert all(line["carried"] for line in before.form["rows"])
    one = form("alltoall", 32 * KIB)
    after = before.with_rows([one], OF, ENVIRONMENT.to_json())
    (line,) = [line for line in after.form["rows"] if line["size"] == 32 * KIB]
    assert "carried" not in line
    assert line["tuned_s"] == 1.0
    assert {**line, **vars(OF)} == line
    environment = after.form["environments"][line["environment"]]
    assert environment["congestion_control"] == ENVIRONMENT.congestion_control
    assert len(after.form["rows"]) == len(before.form["rows"])
    assert after.sources("rows", [("alltoall", 32 * KIB)]) == {OF}
    assert after.sources("rows", [("alltoall", 64 * KIB), ("bcast", 1)]) == {None}


def test_a_row_of_an_earlier_run_stays_until_it_is_measured(copied):
    earlier = [form("bcast", size, carried=True) for size in (KIB, 64 * KIB)]
    before = read_kept(CARRIED, "bbr").with_lines("earlier", earlier)
    (gone, *rest) = before.earlier()
    one = form(gone.collective, gone.size)
    assert before.with_rows([one], OF, ENVIRONMENT.to_json()).earlier() == tuple(rest)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_that_is_kept_names_a_machine(file):
    text = file.read_text(encoding="utf-8")
    assert json.loads(text)
    assert "/" not in text
    assert "hosts" not in text


@pytest.mark.parametrize("known", [1, len(FIXED.collectives)])
def test_the_picture_stays_until_all_collectives_have_results(known, tmp_path, monkeypatch, capsys):
    drawn: list[object] = []
    monkeypatch.setattr(program, "plot", lambda results, path: drawn.append(path))
    for name, text in (("PAGE", PAGE), ("README", README)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.setattr(program, name, tmp_path / name)
    rows = tuple(row(name, KIB) for name in FIXED.collectives[:known])
    program._write([Result(FIXED.name, "cubic", 16, rows)])
    assert bool(drawn) == (known > 1)
    assert ("the picture stays" in capsys.readouterr().err) == (known == 1)
