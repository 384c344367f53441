"""The conformance page has the totals that lie beside it, and totals are those of a log."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from stagegen.catalogue import load_catalogue

SCRIPT = Path(__file__).parents[2] / "docs" / "tools" / "conformance.py"
SPEC = importlib.util.spec_from_file_location("conformance_page", SCRIPT)
assert SPEC is not None
MAKER = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = MAKER
SPEC.loader.exec_module(MAKER)


def run(ranks: int, passed: int, way: str = "plain", **others: object) -> str:
    """A line of a log."""
    totals = {"alltoall": passed, "barrier": 1}
    known = {"way": way, "cluster": ranks, "slots": 1, "ranks": ranks, "level": "quick"}
    return json.dumps({**known, "mpi": "MPICH 1.2", "passed": totals, **others})


def test_the_page_has_the_totals_beside_it():
    assert MAKER.main(["--check"]) == 0


def test_the_totals_are_of_all_collectives_and_some_of_each():
    found = json.loads(MAKER.TOTALS.read_text(encoding="utf-8"))
    collectives = load_catalogue().collectives
    for each in found["runs"]:
        assert tuple(sorted(each["passed"])) == collectives
        assert min(each["passed"].values()) > 0


def test_a_log_becomes_a_row_for_each_run():
    lines = [run(8, 1000), run(3, 20), run(8, 50, cluster=16), run(6, 70, slots=2)]
    page = MAKER.page(MAKER.totals([*lines, run(8, 7, "synchronous")]))
    sums = re.search(
        r"All ([\d,]+) calls gave [^.]*\.\nThey were made in (\d+) runs with MPICH 1.2", page
    )
    assert sums is not None
    assert sums.groups() == ("1,152", "5")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "quick" in line]
    assert rows == [
        "| 3 | 3 | quick | 20 | 1 |",
        "| 8 | 8 | quick | 1,000 | 1 |",
        "| 8 | 16 | quick | 50 | 1 |",
        "| 6 | 6 | 2 | quick | 70 | 1 |",
        "| 8 | 8 | quick | 7 | 1 |",
    ]
    assert "Sanitizers" not in page


def test_runs_of_another_commit_are_marked():
    one, other = ({"commit": c, "templates": "a", "drivers": "b"} for c in ("0123", "4567"))
    lines = [run(8, 1, revision=one), run(3, 2, revision=other), run(4, 3, revision=one)]
    page = MAKER.page(MAKER.totals(lines))
    assert "at commit 0123\n(git hashes of `templates` a and `drivers` b),\n" in page
    assert "and 1 of them, marked ², at commit 4567\n" in page
    assert "| 3 | 3 | quick ² | 2 | 1 |" in page
    assert "| 4 | 4 | quick | 3 | 1 |" in page


def test_a_log_of_many_commits_becomes_a_page():
    lines = [run(ranks, 1, revision={"commit": str(ranks), "templates": "", "drivers": ""})
             for ranks in range(2, 14)]  # fmt: skip
    page = MAKER.page(MAKER.totals(lines))
    assert page.count("of them, marked") == 11
    assert "| 13 | 13 | quick ¹² | 1 | 1 |" in page


def test_the_last_of_two_equal_runs_counts():
    found = MAKER.totals([run(8, 1000), run(8, 2)])
    assert [each["passed"]["alltoall"] for each in found["runs"]] == [2]


@pytest.mark.parametrize("damage", ["1,", "2,", "full", "MPICH"])
def test_a_page_with_other_totals_is_found(damage, tmp_path, monkeypatch, capsys):
    log = tmp_path / "log"
    log.write_text("\n".join([run(8, 1000), run(3, 2000, level="full")]))
    monkeypatch.setattr(MAKER, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(MAKER, "TOTALS", tmp_path / "totals.json")
    assert MAKER.main([str(log)]) == 0
    assert MAKER.main(["--check"]) == 0
    MAKER.PAGE.write_text(MAKER.PAGE.read_text().replace(damage, "7"))
    assert MAKER.main(["--check"]) == 1
    assert "run python docs/tools/conformance.py" in capsys.readouterr().err
