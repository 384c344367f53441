"""Experiments are found, keep what they measure, and have a place on their pages."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from docs.tools import kept
from docs.tools.experiments import __main__ as program
from docs.tools.experiments import results
from docs.tools.experiments.experiment import Experiment
from docs.tools.experiments.page import with_report
from docs.tools.experiments.registry import find_experiments, find_groups
from docs.tools.target import Target
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE

GROUPS = {group: find_experiments(group) for group in find_groups()}
EVERY = {one.name: one for group in GROUPS.values() for one in group.values()}
TOPS = {name: results.top_of(group) for group, own in GROUPS.items() for name in own}
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


@pytest.mark.parametrize("name", EVERY)
def test_the_page_is_that_of_the_kept_results(name):
    page = (ROOT / EVERY[name].page).read_text(encoding="utf-8")
    known = results.found(EVERY[name], TOPS[name])
    assert bool(known) == results.file_of(EVERY[name], TOPS[name]).exists()
    if known:
        assert with_report(page, name, EVERY[name].report(known)) == page
        assert EVERY[name].targets(known) is not None


@pytest.mark.parametrize("name", EVERY)
def test_every_kept_point_is_one_of_the_experiment(name):
    path = results.file_of(EVERY[name], TOPS[name])
    points = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    assert set(points) <= set(EVERY[name].points)
    assert list(points) == sorted(points)
    assert all(("carried" in one) != ("environment" in one) for one in points.values())


def test_a_new_point_changes_only_its_row(tmp_path, monkeypatch):
    one, top = EVERY["balanced"], TOPS["balanced"]
    point = "alltoall star-enhanced"
    others = json.loads(results.file_of(one, top).read_text(encoding="utf-8"))
    others.pop(point, None)
    page = (ROOT / one.page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    path = results.file_of(one, top)
    kept.write(path, others)
    before = path.read_bytes()
    page = with_report(page, one.name, one.report(results.found(one, top)))
    assert not results.is_measured(one, point, top)
    results.keep(one, point, {"whole": 1.5, "after": 1.25, "pairs": 1.125, "table_s": 0.0125,
                              "selected_after": 50, "chosen": "ring"}, top)  # fmt: skip
    assert results.is_measured(one, point, top)
    row = f"| {point} | 12.5 | 1.500 | 1.250 | 1.125 | 50 | `ring` |"
    told = with_report(page, one.name, one.report(results.found(one, top))).splitlines()
    assert [line for line in told if line != row] == page.splitlines()
    lines = [line.rstrip(",") for line in path.read_text(encoding="utf-8").splitlines()]
    old = [line.rstrip(",") for line in before.decode().splitlines()]
    assert [line for line in lines if line in old] == old
    (new,) = [line for line in lines if line not in old]
    assert new.startswith(f' "{point}": ')


def test_what_was_carried_from_the_page_is_measured_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    kept.write(results.file_of(experiment(asked), TOP), {"b": {"carried": True, "result": "old"}})
    assert results.found(experiment(asked), TOP) == {"b": "old"}
    program._measure([experiment(asked)], options(points=("b",)), TOP)
    assert asked == ["b"]
    assert results.found(experiment(asked), TOP) == {"b": "b"}


def test_a_point_says_under_which_congestion_control_it_was_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CONGESTION_VARIABLE, "reno")
    one = replace(experiment([]), congestion={"a 2": "bbr"})
    for point in ("a 1", "a 2"):
        results.measure(one, point, TOP)
    points = kept.read(results.file_of(one, TOP))
    told = {point: of["environment"]["congestion_control"] for point, of in points.items()}
    assert told == {"a 1": "reno", "a 2": "bbr"}


@pytest.mark.parametrize("name", EVERY)
def test_what_is_kept_has_the_congestion_control_of_its_point(name):
    known = kept.read(results.file_of(EVERY[name], TOPS[name])) or {}
    named = {one for point in EVERY[name].points for one in re.split("[ ,]", point)}
    assert {*EVERY[name].congestion.values()} == named & {"bbr", "cubic"}
    for point, congestion in EVERY[name].congestion.items():
        assert congestion in re.split("[ ,]", point)
        if "environment" in known.get(point, {}):
            assert known[point]["environment"]["congestion_control"] == congestion


def test_only_what_the_report_needs_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = replace(experiment([]), summary=lambda result: result[:1])
    results.measure(one, "a 1", TOP)
    assert results.found(one, TOP) == {"a 1": "a"}
    whole = results.folder_of(one, "a 1", TOP) / "result.json"
    assert json.loads(whole.read_text(encoding="utf-8")) == "a 1"


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
def test_a_missed_target_is_reported(met, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = Experiment("own", "", {}, lambda _: "", PAGE, lambda _: [Target(met, "a promise")])
    assert program.judge([one], TOP) == kept
