"""The experiments about patterns: their clusters, and their reports from results that are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.tools.experiments.page import with_report
from docs.tools.experiments.patterns import (
    first_calls,
    in_theory,
    persistent,
    persistent_patterns,
    plans,
    tuned,
)
from docs.tools.experiments.patterns._clusters import CLUSTERS, topology_file
from docs.tools.experiments.tuned import Tuned, read_tuned
from stagegen.catalogue import load_catalogue
from stagegen.topology import load_topology

ROOT = Path(__file__).parents[2]


def test_one_cluster_is_drawn_at_random_and_is_no_star(tmp_path):
    fixed, drawn = CLUSTERS
    assert fixed == "chain-4x4-cyclic"
    topology = load_topology(topology_file(drawn, tmp_path))
    assert topology == CLUSTERS[drawn].topology()
    assert topology.launcher == "lab"
    inner = [end for link in topology.links for end in link.ends]
    assert max(map(inner.count, inner)) < len(topology.switches) - 1
    assert list(topology.ranks) != sorted(topology.ranks)


def test_every_pattern_is_tuned_for_on_every_cluster():
    names = {point.split()[0] for point in tuned.EXPERIMENT.points}
    assert names == set(CLUSTERS)
    assert len(tuned.EXPERIMENT.points) == 20 * 2 * len(CLUSTERS)


ROUNDS = """\
round 0: library 2.000000 s, native 1.000000 s
round 1: library 1.000000 s, native 1.500000 s
round 2: library 1.000000 s, native 2.000000 s
right: 3 rounds of 10 calls
"""


def test_first_calls_of_processes_are_told_apart():
    jobs = [first_calls.rounds_in(ROUNDS)] * 3
    assert jobs[0] == [[2.0, 1.0], [1.0, 1.5], [1.0, 2.0]]
    found = {"random-5 bbr zipf-1": {"chosen": "pattern_zipf_1", "jobs": jobs}}
    row = "| random-5 bbr zipf-1 | pattern_zipf_1 | 1.000 | 1.50 | 0.50 |"
    assert row in first_calls.EXPERIMENT.report(found)
    assert [one.met for one in first_calls.EXPERIMENT.targets(found)] == [True, False]


def test_calls_that_went_wrong_have_no_times():
    with pytest.raises(ValueError, match="no times of right calls"):
        first_calls.rounds_in(ROUNDS.replace("right", "wrong"))


def test_jobs_of_long_calls_have_fewer_rounds():
    assert [first_calls.rounds_of(s) for s in (0.01, 0.5, 20)] == [first_calls.ROUNDS, 3, 1]


def tuning(**seconds: float) -> dict[str, object]:
    """What tuning for the first pattern brought: times of what was timed, by its spec."""
    others = {"native": 4.0, **{spec.replace("__", ":"): s for spec, s in seconds.items()}}
    chosen = min(others, key=others.__getitem__)
    return {
        "bound": 2.0, "chosen": chosen, "launches": True, "seconds": others[chosen], "native": 4.0,
        "others": others,
    }  # fmt: skip


def test_every_schedule_of_a_pattern_has_its_measured_gap():
    found = {
        "random-5 cubic zipf-1": tuning(
            pattern_zipf_1__a=3.0, pattern_zipf_1__b=2.5, pattern_zipf_1_all_to_all__a=5.0
        ),
    }
    kept = {point: tuned.EXPERIMENT.summary(one) for point, one in found.items()}
    head, _, row = tuned.EXPERIMENT.report(kept).splitlines()[2:5]
    assert head.endswith("| native over it | `segments` | `greedy` | `all-to-all` |")
    assert row.endswith("| pattern_zipf_1:b | 2500 | 1.25 | 1.60 | 1.25 |  | 2.50 |")


def test_every_schedule_has_its_gap_in_theory(tmp_path, monkeypatch):
    """The bound is a load over a rate, so at least that of what the busiest rank sends."""
    monkeypatch.setattr(in_theory, "PATTERNS", tuned.PATTERNS[:4])
    experiment = in_theory.EXPERIMENT
    found = {name: measure(tmp_path) for name, measure in experiment.points.items()}
    assert set(found) == set(CLUSTERS)
    for name, patterns in found.items():
        assert len(patterns) == 4
        heavy = tuned.pattern_of(3, CLUSTERS[name].topology().rank_count)
        most = max(map(sum, heavy.sizes))
        assert patterns[heavy.name]["bound"] >= 8 * most / 20e6 * (1 - 1e-9)
        assert patterns[heavy.name]["gaps"]["segments"] == pytest.approx(0, abs=1e-3)
    (target,) = experiment.targets(found)
    assert target.met
    text = experiment.report(found)
    assert text.count("| zipf-1 |") == 2
    assert text.count("| worst |") == 2


@pytest.mark.slow
def test_the_page_has_the_gaps_of_these_schedulers(tmp_path):
    experiment = in_theory.EXPERIMENT
    found = {name: measure(tmp_path) for name, measure in experiment.points.items()}
    text = (ROOT / experiment.page).read_text(encoding="utf-8")
    assert with_report(text, experiment.name, experiment.report(found)) == text


JOB = """\
planned, ms       median   960.00,   950.00 to   990.00
native, ms        median  1650.00,   910.00 to  1890.00
native / planned  median     1.67,     0.95 to     1.96
"""


MEANS = """\
mean: planned 1000.000 ms, native 1600.000 ms
init: planned 2000.000 ms, native 100.000 ms
"""


def test_the_median_of_several_jobs_tells_how_fast_a_plan_is():
    slow, fast = persistent.rows_in(JOB.replace("1.67", "1.10")), persistent.rows_in(JOB)
    assert fast == {
        "planned": [960, 950, 990], "native": [1650, 910, 1890], "ratio": [1.67, 0.95, 1.96],
    }  # fmt: skip
    found = {f"random-5 bbr {job}": one for job, one in enumerate((slow, slow, fast), start=1)}
    row = "| 960 (950–990) | 1650 (910–1890) | 1.10, 1.10, 1.67 | 1.10 |"
    assert row in persistent.EXPERIMENT.report(found)
    assert [one.met for one in persistent.EXPERIMENT.targets(found)] == [False]
    found["random-5 bbr 1"] = fast
    assert [one.met for one in persistent.EXPERIMENT.targets(found)] == [True]


def test_a_job_without_all_rows_has_no_result():
    with pytest.raises(ValueError, match="not all of planned, ms, native, ms"):
        persistent.rows_in(JOB.replace("native, ms", "nothing, ms"))


def test_a_plan_of_a_pattern_pays_its_init_in_ten_starts():
    means = persistent_patterns.means_in(MEANS)
    assert means == {"planned_mean": 1000, "native_mean": 1600,
                     "planned_init": 2000, "native_init": 100}  # fmt: skip
    one = {**persistent.rows_in(JOB), **means, "bound": 800.0}
    assert persistent_patterns.ratio_with_init(one) == pytest.approx(16100 / 12000)
    found = {"random-5 bbr zipf-1": one}
    row = "| 800 | 960 (950–990) | 1650 (910–1890) | 1.20 | 1.67 | 2000, 100 | 1.34 |"
    assert row in persistent_patterns.EXPERIMENT.report(found)
    assert [one.met for one in persistent_patterns.EXPERIMENT.targets(found)] == [True, True]
    slow = {"random-5 bbr zipf-1": {**one, "planned_init": 8000, "bound": 700.0}}
    assert [one.met for one in persistent_patterns.EXPERIMENT.targets(slow)] == [False, False]
    with pytest.raises(ValueError, match="no means and inits in"):
        persistent_patterns.means_in(JOB)


def test_a_pattern_is_timed_with_a_plan_as_often_as_there_is_time(tmp_path, monkeypatch):
    asked = []

    def run(_topology, _program, counts, pairs, *words, **options):
        asked.append((pairs, words, options["variables"]["LIBCOLL_PERSISTENT"]))
        sizes = [[*map(int, row.split())] for row in counts.read_text().splitlines()]
        assert [*map(tuple, sizes)] == [*map(tuple, tuned.pattern_of(2, 12).sizes)]
        return JOB + MEANS + told

    monkeypatch.setattr(persistent_patterns.lab, "run", run)
    monkeypatch.setattr(persistent_patterns.lab, "compiled", lambda *_: "program")
    monkeypatch.setattr(persistent_patterns, "library_of", lambda *_: "library")
    folder = tmp_path / "persistent_patterns" / "point"
    folder.mkdir(parents=True)
    told = "rank 0: alltoallv persistent, planned 9..9 bytes 9 starts\n"
    result = persistent_patterns._measure("random-5", "bbr", 2, folder)
    assert asked == [(9, ("alltoallv",), "tokens")]
    assert 200 < result["bound"] < 300, "milliseconds"
    told = ""
    with pytest.raises(ValueError, match="no plan"):
        persistent_patterns._measure("random-5", "bbr", 2, folder)
    assert [*map(persistent_patterns.pairs_of, (0.1, 5, 100))] == [9, 6, 3]


def test_each_planned_routine_of_each_cluster_has_its_ratio():
    found = {"random-5 bbr bcast/topology_linear": persistent.rows_in(JOB)}
    head, *rows = (line for line in plans.EXPERIMENT.report(found).splitlines() if "|" in line)
    (row,) = (row for row in rows if "960" in row)
    assert row.startswith("| bcast, `topology_linear` | 1048576 |")
    place = head.split("|").index(" `random-5`, bbr ")
    assert row.split("|")[place].strip() == "960, 1650: 1.67"
    assert [one.met for one in plans.EXPERIMENT.targets(found)] == [True]


def test_what_is_measured_as_a_plan_has_one():
    catalogue = load_catalogue()
    measured = [catalogue.find(collective, routine) for collective, routine, _ in plans.PLANS]
    assert [one.name for one in measured if one.persistent is None] == []


def record(collective: str, size: int, launch: int, **seconds: float) -> str:
    times = {name: [one] for name, one in seconds.items()}
    shown = {"collective": collective, "size": size, "launch": launch, "seconds": times}
    return json.dumps({"kind": "measurement", **shown})


@pytest.mark.parametrize("is_raced", [True, False])
def test_what_is_read_of_a_tuning_is_of_its_collective_and_its_size(tmp_path, is_raced):
    """Smaller sizes of long calls have looks, and an allreduce tells what recognition takes."""
    rule = {"algorithm": "pair", "parameters": {}}
    table = {"collective": "alltoallv", "rules": [rule]}
    (tmp_path / "decision.json").write_text(json.dumps({"tables": [table]}))
    lines = [
        json.dumps({"kind": "log"}),
        record("alltoallv", 1024, 0, native=0.03, pair=0.02, ring=0.01),
        record("allreduce", 24, 0, native=0.004),
        record("alltoallv", 65536, 0, native=2.7, pair=2.6),
        *([record("alltoallv", 65536, 1, native=2.8, pair=2.5)] if is_raced else []),
    ]
    (tmp_path / "measurements.jsonl").write_text("\n".join(lines))
    seconds = {"native": 2.8, "pair": 2.5} if is_raced else {"native": 2.7, "pair": 2.6}
    assert read_tuned(tmp_path) == Tuned("pair", seconds, is_raced)
