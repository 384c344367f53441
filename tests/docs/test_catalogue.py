"""The catalogue page is what the front matter says, whole and up to date."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path

import pytest

from stagegen.repository import Algorithm, load_catalogue
from stagegen.repository.algorithm import CONSTRAINTS, NATIVE

SCRIPT = Path(__file__).parents[2] / "docs" / "catalogue.py"
PAGE = SCRIPT.with_suffix(".md")
MAKER = runpy.run_path(str(SCRIPT))
CATALOGUE = load_catalogue()
ALGORITHMS = [a for a in CATALOGUE.algorithms if a.name != NATIVE]


def part_of(algorithm: Algorithm, page: str) -> str:
    """What the page says of an algorithm."""
    (part,) = page.split(f"(../templates/{algorithm.template.as_posix()})\n")[1:]
    return part.split("\n#")[0]


def test_the_page_is_up_to_date():
    text = PAGE.read_text(encoding="utf-8")
    assert text == MAKER["page"](CATALOGUE), "run python docs/catalogue.py"


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.routine)
def test_cost_parameters_and_reference_are_told(algorithm):
    part = part_of(algorithm, MAKER["page"](CATALOGUE))
    for text in (algorithm.summary, algorithm.cost, algorithm.reference):
        assert text in part
    for parameter in algorithm.parameters:
        assert f"`{parameter.name}`: {parameter.meaning}" in part
        assert f"**{parameter.default}**" in part


def test_constraints_are_told():
    ask = [name for name in CONSTRAINTS if name != "unprepared"]
    algorithm = dataclasses.replace(
        ALGORITHMS[0], constraints=tuple(ask), needs="ring", min_bytes=1024, max_bytes=4096
    )
    told = MAKER["needs"](algorithm)
    assert len(told) == len(ask) + 3
    text = "; ".join(told)
    for part in ("all ranks of the cluster", "at least 1,024 bytes", "at most 4,096 bytes"):
        assert part in text


@pytest.mark.parametrize(("wrong", "status"), [("", 0), ("stale", 1)])
def test_check_says_whether_it_is_stale(wrong, status, tmp_path, monkeypatch, capsys):
    page = tmp_path / "catalogue.md"
    page.write_text(MAKER["page"](CATALOGUE) + wrong, encoding="utf-8")
    monkeypatch.setitem(MAKER["main"].__globals__, "PAGE", page)
    assert MAKER["main"](["--check"]) == status
    assert ("not up to date" in capsys.readouterr().err) == bool(wrong)
    assert MAKER["main"]([]) == 0
    assert page.read_text(encoding="utf-8") == MAKER["page"](CATALOGUE)
