"""The reports of the experiments about trees, from results that are known."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from docs.tools.experiments.paths import (
    configurations,
    event_cost,
    noise_floor,
    program,
    reconfigured,
)
from docs.tools.experiments.paths._figures import figures_of
from docs.tools.experiments.paths._kept import departures_of, drawn_of, tables_of
from docs.tools.experiments.tuned import Tuned
from stagegen.inspection.findings import tree_findings
from stagegen.inspection.series import series_of
from stagegen.inspection.trace import read_trace
from stagegen.tune.reconfigure_steps import MESSAGES
from tests.inspection import made


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    calls = [made.two_levels(1000.0 * (i + 1), None) for i in range(3)]
    file = tmp_path_factory.mktemp("trace") / "events"
    made.write(file, "allreduce/tree", calls, made.TWO_HOSTS)
    (series,) = series_of(read_trace(file), 0).series
    return tree_findings(series)


def configuration(tree, shape, **seconds):
    return {
        "shape": shape,
        "seconds": seconds,
        "traced_s": seconds[shape][0],
        **tables_of(tree),
        **drawn_of(tree),
    }


def test_configurations_stand_beside_theirs(tree):
    found = {
        "4 × 8 nary": configuration(tree, "nary", nary=[1e-3, 1.2e-3]),
        "4 × 8 binary": configuration(tree, "binary", nary=[1e-3, 2e-3], binary=[1e-3, 1e-3]),
        "8 × 4 nary": configuration(tree, "nary", nary=[5e-4]),
        "8 × 4 split": configuration(tree, "split", nary=[5e-4], split=[5e-4]),
    }
    text = configurations.EXPERIMENT.report(found)
    assert "| 4 × 8 nary | 1100 | 1100 | 1.00 | – | 1000 |" in text
    assert "| 4 × 8 binary | 1500 | 1000 | 1.50 (1.00–2.00) | 1.49 | 1000 |" in text
    assert "takes 1100 to 1500 µs on 4 × 8; 500 to 500 µs on 8 × 4" in text
    assert "`4 × 8 nary` (theirs: 8W)" in text
    (core,) = [line for line in text.splitlines() if line.startswith("| core | 3 |")][:1]
    assert core.endswith("| 11 | 10 | 3 | 8 | 64 | 8 | 14 |"), (
        "Table 2: theirs are the last columns"
    )
    second = text[text.index("Table 2") : text.index("Table 3")].strip().splitlines()
    theirs = " | – | – | – | – | – | – | – | 17 | 17 | 1 | 15 | 65 | 16 | 18 |"
    assert f"| cluster-root subtree level 1 up latency{theirs}" in second, "only theirs has it"
    call = "| time of a call | 77 | 77 | 0 | 77 | 77 | 77 | 77 | 680 | 678 | 124 | 388 | 2509 | 537"
    assert second[-1] == f"{call} | 807 |"
    assert "earlier run" not in text
    (total,) = [
        line for line in text.splitlines() if line.startswith("| total, no arrival wait |")
    ][:1]
    assert total.split(" | ")[2] == "278", "Table 3: theirs are beside ours"
    assert "1 message, fastest" in text


def test_results_of_an_earlier_rule_about_host_subtrees_say_so(tree):
    one = configuration(tree, "binary", nary=[1e-3], binary=[1e-3])
    del one["stages"]["time of a call"]
    text = configurations.EXPERIMENT.report({"4 × 8 binary": one})
    assert "Tables 2 to 4 are of an earlier run." in text
    call = [line for line in text.splitlines() if line.startswith("| time of a call |")]
    assert call == [f"| time of a call{' | –' * 7} | 680 | 678 | 124 | 388 | 2509 | 537 | 807 |"]


def test_theirs_is_beside_an_order_of_as_many():
    orders = [[float(i == k) for k in range(8)] for i in range(8)]
    first, last = configurations._orders(orders).splitlines()[2::7]
    assert first.startswith("| 1. arrival | 100.0 (0.0) | 0.0 (99.9) |")
    assert last.startswith("| 8. arrival | 0.0 (100.0) | 0.0 (0.0) |")


def test_split_trees_are_compared_with_those_that_take_turns_with_them(tree):
    times = {"nary": [1.0], "binary": [3.0, 1.0, 2.0], "split-2": [1.0, 1.0, 1.0]}
    found = {"8 × 4 split-2, 256 bytes": configuration(tree, "split-2", **times)}
    with pytest.raises(ValueError, match="zip"):
        configurations.EXPERIMENT.report(found)
    times["nary"] = [1.0] * 3
    found = {"8 × 4 split-2, 256 bytes": configuration(tree, "split-2", **times)}
    text = configurations.EXPERIMENT.report(found)
    assert "| `split-2` over `binary` | 256 | 2.00 (1.00–3.00) | 0.81 |" in text
    found = {"8 × 4 splitNOW": configuration(tree, "splitNOW", nary=[1], quad=[3], splitNOW=[1])}
    text = configurations.EXPERIMENT.report(found)
    assert "| `splitNOW` over `quad` | 4 | 3.00 (3.00–3.00) | 2.44 |" in text


def test_departures_begin_where_a_subtree_has_the_result(tree):
    """Rank 2, the first of its host, departs from the root at once; rank 1 after 6 and its way."""
    found = departures_of(tree)
    assert found["root"][0] == pytest.approx(0.0, abs=0.01)
    assert found["host"] == sorted(found["host"])
    assert len(found["host"]) == len(found["root"]) == 2


def test_figures_show_what_was_measured(tree):
    names = ("nary", "quad", "binaryquad", "binary", "split", "split-2", "splitBlade")
    times = {name: [1.0] for name in names}
    every = {
        f"{shape} {name}{size}": configuration(tree, name, **times)
        for shape in ("4 × 8", "8 × 4", "10 × 1")
        for name in names
        for size in ("", ", 256 bytes")
    }
    figures = {one.name: one for one in figures_of(every)}
    assert sorted(figures) == [
        "paths-10.svg", "paths-12.svg", "paths-13-14.svg", "paths-16.svg", "paths-17-18.svg",
        "paths-19.svg", "paths-20.svg", "paths-21.svg",
    ]  # fmt: skip
    for one in figures.values():
        picture = ElementTree.fromstring(one.svg)
        assert picture.tag.endswith("svg")
    lines = figures["paths-12.svg"].svg.count("<polyline")
    assert lines == 8, "four ranks in each of two configurations"
    assert figures["paths-17-18.svg"].svg.count("<polyline") == 8
    assert [one.name for one in figures_of({p: every[p] for p in ("4 × 8 nary",)})] == []
    pictures = configurations.EXPERIMENT.pictures(every)
    assert {file.name: svg for file, svg in pictures.items()} == {
        name: one.svg for name, one in figures.items()
    }
    text = configurations.EXPERIMENT.report(every)
    assert all(f"](figures/{name})" in text for name in figures)


def test_what_events_cost_is_reported_by_place_and_for_both():
    """The second call of a pair takes 10 % longer, and events 1 %."""
    plain = [100 + i % 7 for i in range(99)]
    text = "".join(
        f"1 {1.1 * one:.4f} {1.01 * one:.4f}\n2 {one} {1.1 * 1.01 * one:.4f}\n" for one in plain
    )
    row = event_cost._pairs(text)
    assert row["second"]["more"] == pytest.approx(1.1 * 1.01 - 1, abs=1e-3)
    assert row["first"]["more"] == pytest.approx(1.01 / 1.1 - 1, abs=1e-3)
    assert row["both"]["more"] == pytest.approx(0.01, abs=1e-3)
    assert row["both"]["low"] <= row["both"]["more"] <= row["both"]["high"] < 0.02
    none = event_cost._pairs("".join(f"1 {one} {one}\n2 {one} {one}\n" for one in plain))
    found = {"4 × 8 messages": {"kept": row, "none": none}}
    (target,) = event_cost.EXPERIMENT.targets(found)
    assert target.met
    noisy = {**none, "both": {"more": 0.0, "low": -0.03, "high": 0.01}}
    found["8 × 4 messages"] = {"kept": {**row, "both": {**row["both"], "high": 0.9}}, "none": noisy}
    sure, unknown = event_cost.EXPERIMENT.targets(found)
    assert (sure.met, unknown.met) == (True, None)
    found["8 × 4 messages"]["none"] = none
    (target,) = event_cost.EXPERIMENT.targets(found)
    assert target.met is False
    text = event_cost.EXPERIMENT.report(found)
    assert "+1.00 %" in text
    assert "| +0.00 % (+0.00 to +0.00) |" in text


def test_identical_trees_take_turns_in_the_same_jobs(tmp_path, monkeypatch):
    """The quotients of five jobs: 1.5, 0.5, 1, 1.25, 2; those of the medians would be 1.2."""
    jobs = iter([(3e-3, 2e-3), (1e-3, 2e-3), (5e-3, 5e-3), (5e-3, 4e-3), (10e-3, 5e-3)])
    made, asked = [], []

    def answer(name, *words):
        asked.append((name, words))
        return {"rows": [{"median_s": seconds} for seconds in next(jobs)]}

    monkeypatch.setattr(noise_floor, "stagegen", lambda *words: made.append(words))
    monkeypatch.setattr(reconfigured, "answer", answer)
    result = noise_floor.EXPERIMENT.points["4 × 8"](tmp_path)
    files = [tmp_path / f"{name}.tree.yaml" for name in ("one", "other")]
    assert [words[-1] for words in made] == files
    assert all(words[:2] == ("tree", "make") and "nary" in words for words in made)
    assert next(jobs, None) is None
    for name, words in asked:
        assert name == "compare"
        assert [words[i + 1] for i, word in enumerate(words) if word == "--tree"] == files
        specs = words[words.index("--algorithms") + 1]
        assert specs == "configured_tree_one:on_host=2,configured_tree_other:on_host=2"
    kept = noise_floor.EXPERIMENT.summary(result)
    assert kept == {"one": 5e-3, "other": 4e-3, "ratio": [1.25, 0.5, 2.0]}
    text = noise_floor.EXPERIMENT.report({"4 × 8": kept})
    assert "| 4 × 8 | 5 | 4 | 1.250 (0.500–2.000) |" in text
    assert "earlier run" not in text


def test_identical_trees_of_an_earlier_run_are_told_apart():
    found = {"4 × 8": {"one": 3e-3, "other": 2e-3}}
    text = noise_floor.EXPERIMENT.report(found)
    assert "| 4 × 8 | 3 | 2 | 1.500 |" in text
    assert "A ratio without brackets is of an earlier run" in text


def test_programs_say_whether_there_was_a_search():
    one = {"seconds": {"native": 3.0, "first": 2.0, "found": 1.0}, "is_found": False}
    text = program.EXPERIMENT.report({"4 × 8 gsum": one, "8 × 4 gsum": {**one, "is_found": True}})
    assert "instead of a search) | 3.00 | 2.00 | 1.00 | 2.00 | 3.00 |" in text
    assert "| 8 × 4 gsum | 3.00" in text


def test_the_report_of_a_search_has_what_was_kept_and_where_the_gain_is_from():
    result = {
        "seconds": {
            "first": [2e-3, 4e-3, 3e-3], "last": [1e-3, 2e-3, 1e-3], "native": [2e-3] * 3,
            "ring": [1.5e-3] * 3, "flat": [2e-3] * 3,
        },
        "others": ["ring", "flat"], "raced": 120, "rule": True,
        "chosen": "configured_tree_result", "tried": 16,
        "kept": ["add a level below root"],
        "why": ["root takes 30 µs, measured; 0.5 × the time before"],
        "gain": {"first_s": {"core": 2e-4}, "last_s": {"core": 1e-4}},
    }  # fmt: skip
    nothing = {
        **result,
        "kept": [],
        "why": [],
        "gain": None,
        "seconds": {**result["seconds"], "first": [1e-3, 2e-3, 1e-3]},
    }
    summary = reconfigured.EXPERIMENT.summary
    found = {"4 × 8 allreduce": summary(result), "8 × 4 allreduce": summary(nothing)}
    text = reconfigured.EXPERIMENT.report(found)
    assert "- 4 × 8 allreduce: add a level below root: root takes 30 µs, measured" in text
    assert "| core | 200 → 100 |" in text
    gain, level = reconfigured.EXPERIMENT.targets(found)
    assert "| 2.00 (2.00–3.00) | 0.67 | yes |" in text
    assert "| 4 × 8 allreduce: `ring` | 1.5 | 0.67 | 120 |" in text
    assert "| 4 × 8 allreduce: `flat` | 2 | 0.50 | 120 |" in text
    assert (gain.met, level.met) == (False, True), "nothing was kept in one of the two"


def test_the_report_of_a_search_has_the_stages_where_the_result_has_them():
    """Results of old form have parts only; a tree may have stages that the other one has not."""
    parts = {
        "first_s": {"core": 2e-4, "the call": 3e-4},
        "last_s": {"core": 1e-4, "the call": 2e-4},
    }
    first = {"host subtree level 0 down latency": 1e-4, "core": 2e-4}
    last = {"core": 1e-4, "rank departure wait": 1e-4}
    stages = {"first_stages_s": first, "last_stages_s": last}
    only = {"first_stages_s": {"core": 5e-6}, "last_stages_s": {"core": 4e-6}}
    gains = {"4 × 8 reduce": parts, "8 × 4 reduce": parts | stages, "8 × 4 bcast": parts | only}
    _, of_parts, _, of_stages = reconfigured._gains(gains)
    assert "| core | 200 → 100 | 200 → 100 | 200 → 100 |" in of_parts
    lines = of_stages.splitlines()
    assert "| stage | 8 × 4 reduce | 8 × 4 bcast |" in lines[0]
    assert lines[2:] == [
        "| host subtree level 0 down latency | 100 → – | – |",
        "| core | 200 → 100 | 5 → 4 |",
        "| rank departure wait | – → 100 | – |",
    ]
    assert len(list(reconfigured._gains({"4 × 8 reduce": parts}))) == 2


def test_the_best_others_are_those_of_several_looks():
    looks = [[1.0, 2.0, 3.0, 4.0], [9.0, 2.0, 3.0, 1.0], [9.0, 2.0, 3.0, 4.0]]
    assert reconfigured.best(("lucky", "a", "b", "c"), looks) == ["a", "b", "c"]


def test_the_last_tree_is_raced_with_the_best_others_and_compositions(tmp_path, monkeypatch):
    """In the only look of tuning, ring is the best; in all others it is the slowest."""
    seen = {"native": 1.0, "configured_tree_result:on_host=1": 1.0, "ring": 1.0, "rab1_ring": 2.0}
    seen |= {"of_reduce_and_bcast+reduce/native+bcast/native": 3.0, "flat": 4.0}
    seen |= {"of_halves+allreduce/configured_tree_result:on_host=1+allreduce/native": 0.5}
    asked = []

    def command(name, *words):
        if name == "reconfigure":
            search = tmp_path / "search"
            search.mkdir()
            (search / "steps.jsonl").write_text('{"size": 4}\n')

    def answer(name, *words):
        assert name == "compare"
        specs = words[words.index("--algorithms") + 1].split(",")
        asked.append(specs)
        return {"rows": [{"median_s": 9.0 if spec == "ring" else seen.get(spec, 5.0)}
                         for spec in specs]}  # fmt: skip

    monkeypatch.setattr(reconfigured, "stagegen", command)
    monkeypatch.setattr(reconfigured, "answer", answer)
    monkeypatch.setattr(reconfigured, "read_tuned", lambda folder: Tuned("native", seen, True))
    result = reconfigured.EXPERIMENT.points["4 × 8 allreduce"](tmp_path)
    others = ["rab1_ring", "of_reduce_and_bcast+reduce/native+bcast/native", "flat"]
    assert result["others"] == others
    assert asked[0] == ["ring", *others], "neither native nor the tree, itself or as a part"
    last = f"configured_tree_result:on_host={MESSAGES}"
    assert asked[-1] == ["configured_tree_first", last, "native", *others]
    assert list(result["seconds"]) == ["first", "last", "native", *others]
    assert result["rule"] is False
    kept = reconfigured.EXPERIMENT.summary(result)
    text = reconfigured.EXPERIMENT.report({"4 × 8 allreduce": kept})
    assert "| 4 × 8 allreduce: `flat` | 4000 | 0.25 | 7 |" in text
