"""The reports of the experiments about trees, from results that are known."""

from __future__ import annotations

import pytest

from docs.tools.experiments.paths import configurations, event_cost, program, reconfigured
from stagegen.inspection.findings import tree_findings
from stagegen.inspection.series import series_of
from stagegen.inspection.trace import read_trace
from tests.inspection import made


def configuration(tmp_path, seconds):
    calls = [made.two_levels(1000.0 * (i + 1), None) for i in range(3)]
    file = made.write(tmp_path / "events", "allreduce/tree", calls, made.TWO_HOSTS)
    (series,) = series_of(read_trace(file), 0).series
    tables = configurations.tables_of(tree_findings(series))
    return {"seconds": seconds, "first_s": 1e-3, "traced_s": seconds, **tables}


def test_the_tables_of_configurations_are_those_of_the_fastest(tmp_path):
    found = {
        f"4 × 8 {name}": configuration(tmp_path, seconds)
        for name, seconds in (("nary", 1e-3), ("binary", 0.5e-3), ("quad", 0.8e-3))
    }
    text = configurations.EXPERIMENT.report(found)
    assert "| 4 × 8 binary | 1000 | 500 | 2.00 | 500 |" in text
    assert "`4 × 8 nary` (Table 1)" in text
    assert "`4 × 8 binary` (Table 2)" in text
    assert "| 3. arrival |" in text
    (core,) = [line for line in text.splitlines() if line.startswith("| core | 3 |")][:1]
    assert core.count("|") == 9
    assert "0 messages, fastest" in text


def test_what_events_cost_is_the_median_of_pairs():
    row = event_cost._pairs(
        "".join(f"{100 + i % 7} {(100 + i % 7) * 1.01:.3f}\n" for i in range(99))
    )
    assert row["more"] == pytest.approx(0.01, abs=1e-4)
    assert row["low"] <= row["more"] <= row["high"] < 0.02
    found = {"4 × 8 messages": {"kept": row, "none": {**row, "more": 0.0, "low": 0.0, "high": 0.0}}}
    (target,) = event_cost.EXPERIMENT.targets(found)
    assert target.met
    assert "+1.00 %" in event_cost.EXPERIMENT.report(found)


def test_programs_say_whether_there_was_a_search():
    one = {"seconds": {"native": 3.0, "first": 2.0, "found": 1.0}, "is_found": False}
    text = program.EXPERIMENT.report({"4 × 8 gsum": one, "8 × 4 gsum": {**one, "is_found": True}})
    assert "instead of a search) | 3.00 | 2.00 | 1.00 | 2.00 | 3.00 |" in text
    assert "| 8 × 4 gsum | 3.00" in text


def test_a_search_tells_what_was_kept_and_where_the_gain_is_from():
    result = {
        "seconds": {
            "first": [2e-3, 4e-3, 3e-3], "last": [1e-3, 2e-3, 1e-3], "native": [2e-3] * 3,
            "other": [1.5e-3] * 3,
        },
        "other": "ring", "chosen": "configured_tree_result", "tried": 16,
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
    assert "| 2.00 | 0.67 |" in text
    assert (gain.met, level.met) == (False, True), "nothing was kept in one of the two"
