"""``make bench-arrival``: its experiments are found, keep what they measure, and have a place."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from docs.tools.bench_arrival import __main__ as program
from docs.tools.bench_arrival import results
from docs.tools.bench_arrival.experiment import Experiment, Target
from docs.tools.bench_arrival.page import with_report
from docs.tools.bench_arrival.registry import find_experiments

EVERY = find_experiments()
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", EVERY)
def test_an_experiment_has_points_and_a_place_on_the_page(name):
    assert EVERY[name].points
    text = (ROOT / EVERY[name].page).read_text(encoding="utf-8")
    assert "something" in with_report(text, name, "something")


def test_points_have_folders_of_their_own():
    for one in EVERY.values():
        assert len({results.folder_of(one, point) for point in one.points}) == len(one.points)


def experiment(asked: list[str], fails: str = "") -> Experiment:
    """An experiment whose points return their own names."""

    def measure(point: str, folder: Path) -> str:
        if point == fails:
            raise KeyboardInterrupt
        assert folder.is_dir()
        asked.append(point)
        return point

    points = {name: lambda folder, name=name: measure(name, folder) for name in ("a 1", "a 2", "b")}
    page = Path("page.md")
    return Experiment("own", "nothing", points, lambda found: " ".join(found.values()), page=page)


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"points": (), "anew": False, "seconds": 60.0, **given})


def test_what_was_measured_is_kept_and_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        program._measure([experiment(asked, fails="a 2")], options())
    assert results.found(experiment(asked)) == {"a 1": "a 1"}
    program._measure([experiment(asked)], options())
    assert asked == ["a 1", "a 2", "b"]
    program._measure([experiment(asked)], options(points=("a *",), anew=True))
    assert asked == ["a 1", "a 2", "b", "a 1", "a 2"]


def test_no_point_begins_after_the_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    program._measure([experiment(asked)], options(seconds=-1.0))
    assert asked == []


def test_the_page_has_what_was_found_and_keeps_the_rest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- own -->\nold\n<!-- end of own -->\nafter\n")
    program.write_pages([experiment([])])
    assert "old" in page.read_text(), "nothing was found"
    results.keep(experiment([]), "b", "new")
    program.write_pages([experiment([])])
    assert page.read_text() == "before\n<!-- own -->\nnew\n<!-- end of own -->\nafter\n"


@pytest.mark.parametrize(("met", "kept"), [(True, True), (None, True), (False, False)])
def test_a_missed_target_is_told(met, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = Experiment("own", "", {}, lambda _: "", lambda _: [Target(met, "a promise")])
    assert program.judge([one]) == kept
