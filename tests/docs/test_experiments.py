"""Experiments are found, keep what they measure, and have a place on their pages."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from docs.tools.experiments import __main__ as program
from docs.tools.experiments import results
from docs.tools.experiments.experiment import Experiment
from docs.tools.experiments.page import with_report
from docs.tools.experiments.registry import find_experiments, find_groups
from docs.tools.target import Target

EVERY = {one.name: one for group in find_groups() for one in find_experiments(group).values()}
ROOT = Path(__file__).resolve().parents[2]
TOP, PAGE = Path("kept"), Path("page.md")


@pytest.mark.parametrize("name", EVERY)
def test_an_experiment_has_points_and_a_place_on_the_page(name):
    assert EVERY[name].points
    text = (ROOT / EVERY[name].page).read_text(encoding="utf-8")
    assert "something" in with_report(text, name, "something")


def test_points_have_folders_of_their_own():
    for one in EVERY.values():
        assert len({results.folder_of(one, point, TOP) for point in one.points}) == len(one.points)


def experiment(asked: list[str], fails: str = "") -> Experiment:
    """An experiment whose points return their own names."""

    def measure(point: str, folder: Path) -> str:
        if point == fails:
            raise KeyboardInterrupt
        assert folder.is_dir()
        asked.append(point)
        return point

    points = {name: lambda folder, name=name: measure(name, folder) for name in ("a 1", "a 2", "b")}
    return Experiment("own", "nothing", points, lambda found: " ".join(found.values()), PAGE)


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"points": (), "anew": False, "seconds": 60.0, **given})


def test_what_was_measured_is_kept_and_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        program._measure([experiment(asked, fails="a 2")], options(), TOP)
    assert results.found(experiment(asked), TOP) == {"a 1": "a 1"}
    program._measure([experiment(asked)], options(), TOP)
    assert asked == ["a 1", "a 2", "b"]
    program._measure([experiment(asked)], options(points=("a *",), anew=True), TOP)
    assert asked == ["a 1", "a 2", "b", "a 1", "a 2"]


def test_no_point_begins_after_the_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    program._measure([experiment(asked)], options(seconds=-1.0), TOP)
    assert asked == []


def test_the_page_has_what_was_found_and_keeps_the_rest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- own -->\nold\n<!-- end of own -->\nafter\n")
    program.write_pages([experiment([])], TOP)
    assert "old" in page.read_text(), "nothing was found"
    results.keep(experiment([]), "b", "new", TOP)
    pictured = replace(
        experiment([]), pictures=lambda found: {Path("figures/a.svg"): f"<svg>{len(found)}</svg>"}
    )
    program.write_pages([pictured], TOP)
    assert page.read_text() == "before\n<!-- own -->\nnew\n<!-- end of own -->\nafter\n"
    assert Path("figures/a.svg").read_text() == "<svg>1</svg>"


@pytest.mark.parametrize(("met", "kept"), [(True, True), (None, True), (False, False)])
def test_a_missed_target_is_told(met, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = Experiment("own", "", {}, lambda _: "", PAGE, lambda _: [Target(met, "a promise")])
    assert program.judge([one], TOP) == kept
