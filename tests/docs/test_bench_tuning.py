"""``make bench-tuning``: what it draws, what it does on the model, and what it keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from docs.tools.bench_tuning import in_lab, runs
from docs.tools.bench_tuning.by_model import Modelled
from docs.tools.bench_tuning.drawn import draw_jobs, draw_program, trace_of, whole_calls
from docs.tools.bench_tuning.exhaustive import Exhaustive, plain_candidates, quick_sizes
from docs.tools.bench_tuning.in_lab import InLab, Natives, least_seconds, rows_of
from docs.tools.bench_tuning.page import BEGIN, END, PAGE, page
from docs.tools.bench_tuning.plan import (
    CATALOGUE,
    EXHAUSTIVE_BOUND,
    LAB,
    MODEL,
    PARTS,
    TRIALS,
    Setting,
)
from docs.tools.bench_tuning.results import (
    Row,
    read_results,
    result_of,
    summary,
    with_result,
    write_results,
)
from docs.tools.bench_tuning.runs import DONE, Clock, OutOfTime, seconds_of_runs
from docs.tools.bench_tuning.truth import CatalogueTruth
from stagegen.errors import InputError
from stagegen.measure.comparison import Comparison
from stagegen.topology import WHOLE
from stagegen.tune.bounds import patience
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.program import program_of, read_trace
from stagegen.tune.recorded import read_recorded
from tests.library.schemas import validate

REFERENCE = Path("generated/reference")


def model(part: str, **more) -> Setting:
    few = {"collectives": ("bcast",), "sizes": (1, 4096, 65536)}
    return Setting.of(part, MODEL, **{**few, **more})


@pytest.mark.parametrize("seed", [1, 2])
def test_jobs_differ_and_fit_the_cluster(seed):
    cluster = Setting.of("jobs", MODEL).topology
    jobs = draw_jobs(cluster, seed)
    assert len(set(jobs)) == len(jobs) == 10
    assert jobs == draw_jobs(cluster, seed) != draw_jobs(cluster, seed + 2)
    slots = Counter(cluster.ranks)
    for job in jobs:
        topology, ranks = job.topology(cluster), job.communicator(cluster).ranks
        assert topology.rank_count == len(ranks) == len(set(ranks)) >= 2
        assert Counter(topology.ranks) == Counter(cluster.ranks[rank] for rank in ranks)
        assert all(slots[host] >= count for host, count in Counter(topology.ranks).items())


def test_a_program_is_a_trace_that_tuning_reads(tmp_path):
    cluster = Setting.of("program", MODEL).topology
    calls = draw_program(cluster, CATALOGUE, ("barrier", "bcast"), 1, lambda name, size: 1e-3)
    assert {one.size for one in calls if one.collective == "barrier"} == {0}
    text = trace_of(calls, cluster)
    validate("trace", json.loads(text))
    (tmp_path / "trace").write_text(text)
    assert read_trace(tmp_path / "trace", cluster) == calls
    wanted = {(w.collective, s) for w in program_of(calls, cluster).wanted for s in w.sizes}
    assert wanted <= set(whole_calls(calls))


def test_the_truth_is_above_the_bound_and_the_best_is_the_least():
    setting = model("whole")
    truth = CatalogueTruth(setting.topology, CATALOGUE, setting.communicators)
    other = CatalogueTruth(setting.topology, CATALOGUE, setting.communicators, seed=2)
    for name, size in (("bcast", 65536), ("alltoall", 4096), ("barrier", 0)):
        seconds, best = truth.best(name, size, WHOLE)
        assert truth(name, best, size, WHOLE) == seconds > truth._bounds(name, size, WHOLE)
        plain = [NATIVE_CANDIDATE, *plain_candidates(setting, name, size)]
        times = [truth(name, candidate, size, WHOLE) for candidate in plain]
        assert seconds <= min(times)
        assert times != [other(name, candidate, size, WHOLE) for candidate in plain]


def test_the_same_ranks_take_the_same_time_by_any_name():
    setting = model("jobs")
    whole = setting.communicators[0]
    others = [replace(whole, name="job"), replace(whole, name="part", ranks=whole.ranks[:-1])]
    truth = CatalogueTruth(setting.topology, CATALOGUE, (*setting.communicators, *others))
    times = [truth("bcast", NATIVE_CANDIDATE, 64, name) for name in (WHOLE, "job", "part")]
    assert times[0] == times[1] != times[2]


def setting_of(part: str) -> Setting:
    jobs = {"collectives": ("alltoall", "barrier"), "sizes": (1, 1024)}
    return model(part, **jobs if part == "jobs" else {})


@cache
def values_of(part: str) -> dict[str, Any]:
    """What a part brings on the model."""
    return Modelled(setting_of(part)).result()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_on_the_model_has_the_same_result_again_and_a_row_on_the_page(part):
    assert Modelled(setting_of(part)).result() == values_of(part)
    text = page(f"{BEGIN}{END}", [result_of(setting_of(part), values_of(part))])
    assert "| the model |" in text


def test_tuning_on_the_model_takes_longer_than_any_tuner_needs():
    assert values_of("whole")["seconds"] > values_of("whole")["least_seconds"] > 0


def test_tuning_on_the_model_loses_little_against_the_best_candidates():
    assert 0 <= values_of("exhaustive")["loss"] < 0.1


def test_the_losses_of_two_tunings_on_the_model_cancel_out():
    twice = values_of("twice")
    assert (1 + twice["a_in_b"]) * (1 + twice["b_in_a"]) == pytest.approx(1)


def test_tunings_on_the_model_keep_to_their_budgets_and_all_of_the_time_loses_little():
    """The last command may exceed a budget: it begins with a launch, which takes 5 s."""
    steps = values_of("budget")["steps"]
    for one in steps:
        assert 0.5 * one["budget"] < one["seconds"] < one["budget"] + 5.5
    assert steps[-1]["loss"] < 0.05


def test_tuning_for_a_program_loses_little_against_the_full_tuning():
    program = values_of("program")
    assert -1 < program["loss"] < 0.03
    assert program["full_seconds"] == values_of("whole")["seconds"]


def test_tuning_for_all_shapes_takes_more_time_than_for_the_whole_cluster():
    shapes = values_of("shapes")
    assert shapes["seconds"] > shapes["whole_seconds"] == values_of("whole")["seconds"]
    assert shapes["communicators"] == len(setting_of("shapes").communicators) > 1


def test_each_job_is_compared_at_each_size_of_each_collective():
    jobs = values_of("jobs")
    assert (jobs["jobs"], jobs["compared"]) == (10, 10 * (2 + 1))


def test_seconds_of_runs_begin_anew_where_times_fall():
    events = "\n".join(
        ["      0.10 INFO    a", "     12.50 DEBUG   b", "  more of b", "      0.00 INFO    c",
         "      3.25 WARNING d"]
    )  # fmt: skip
    assert seconds_of_runs(events) == [12.5, 3.25]
    assert seconds_of_runs("") == []


def test_a_run_that_is_out_of_time_is_told_to_stop(monkeypatch, tmp_path):
    script = (
        "import signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path(sys.argv[-1]).touch(), "
        "sys.exit(143)))\n"
        "print('x', flush=True); time.sleep(60)\n"
    )
    (tmp_path / "stagegen.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutOfTime):
        runs.stagegen(Clock.of(2.0), "tune", tmp_path / "stopped")
    assert (tmp_path / "stopped").exists()
    with pytest.raises(OutOfTime):
        Clock.of(-1.0).require_time()


def test_a_tuning_goes_on_and_is_done_once(monkeypatch, tmp_path):
    asked = []

    def answer(clock, *words):
        asked.append(words)
        folder = Path(words[words.index("--output") + 1])
        folder.mkdir(exist_ok=True)
        with (folder / "tune.log").open("a") as events:
            events.write("      2.00 INFO    x\n      1.00 INFO    y\n")
        (folder / "measurements.jsonl").write_text("")
        if len(asked) == 1:
            raise OutOfTime
        return ""

    monkeypatch.setattr(runs, "stagegen", answer)
    with pytest.raises(OutOfTime):
        runs.tuned(Clock(), tmp_path / "whole", "--topology", "T")
    found = runs.tuned(Clock(), tmp_path / "whole", "--topology", "T")
    assert found == runs.tuned(Clock(), tmp_path / "whole", "--topology", "T")
    assert found["runs"] == 3, "2.00, then 1.00 to 2.00, then 1.00"
    assert [words[-1] == "--resume" for words in asked] == [False, True]


def reference() -> Setting:
    header = json.loads((REFERENCE / "measurements.jsonl").open().readline())
    names, sizes = tuple(header["collectives"]), tuple(header["sizes"])
    return Setting.of("whole", LAB, str(REFERENCE / "topology.yaml"), names, sizes)


def test_the_least_that_any_tuner_needs_follows_from_a_log():
    setting, log = reference(), read_recorded(REFERENCE)
    natives, times = Natives(log), log.times()
    sizes = [(name, size) for name in setting.collectives for size in setting.sizes_of(name)]
    of_native = sum(natives(name, size) for name, size in sizes)
    assert 2 * of_native < least_seconds(setting, log, times) <= 4 * of_native
    name, size = sizes[-1]
    assert natives(name, size + 1) == natives(name, size), "the nearest one counts"


def test_the_exhaustive_measurement_is_kept_and_the_best_meet_the_choice(monkeypatch, tmp_path):
    setting = model("exhaustive")
    asked = []

    def compare(clock, *words):
        options = dict(zip(words[1::2], map(str, words[2::2]), strict=True))
        asked.append(options)
        specs = options["--algorithms"].split(",")
        rows = [{"routine": spec, "ratio": 1 + len(spec) / 100} for spec in specs]
        return json.dumps({"rows": rows})

    monkeypatch.setattr("docs.tools.bench_tuning.exhaustive.stagegen", compare)
    everyone = plain_candidates(setting, "bcast", 65536)
    choice = max(everyone, key=lambda c: len(c.spec))
    met = Exhaustive(setting, tmp_path, Clock()).meeting("bcast", 65536, (choice,))
    best = sorted(everyone, key=lambda c: (len(c.spec), c))[:3]
    assert met.keys() >= {NATIVE_CANDIDATE, choice, *best}
    looked = {spec for one in asked[:-1] for spec in one["--algorithms"].split(",")}
    assert looked == {"native", *(candidate.spec for candidate in everyone)}
    count = len(asked)
    assert Exhaustive(setting, tmp_path, Clock()).meeting("bcast", 65536, (choice,)) == met
    assert len(asked) == count, "nothing is measured twice"
    assert {one["--algorithms"].split(",")[0] for one in asked} == {"native"}
    again = Exhaustive(setting, tmp_path, Clock())
    assert again.loss("bcast", 65536, best[0]) == 1
    assert again.loss("bcast", 65536, choice) == 1 + len(choice.spec) / 100
    assert asked[-1]["--algorithms"] == f"{best[0].spec},{choice.spec}", "a pair of its own"


def test_all_candidates_are_timed_where_the_bound_is_short_and_the_row_says_at_how_many_sizes(
    monkeypatch, tmp_path
):
    setting = replace(reference(), part="exhaustive")
    (tmp_path / "whole").symlink_to(REFERENCE.resolve())
    monkeypatch.setattr(in_lab, "tuned", lambda *_: {"seconds": 100.0, "runs": 1})
    monkeypatch.setattr(Exhaustive, "loss", lambda *_: 1.1)
    found = InLab(setting, Clock(), tmp_path).result()
    assert found["loss"] == pytest.approx(0.1)
    quick = {name: quick_sizes(setting, name) for name in setting.collectives}
    assert found["compared"] == sum(map(len, quick.values())) < found["of"]
    assert quick.pop("alltoallv") == ()
    assert quick["barrier"] == (0,)
    for name, sizes in quick.items():
        every = setting.sizes_of(name)
        assert sizes == every[: len(sizes)]
        slow = every[len(sizes) :]
        bounds = [patience(setting.topology, CATALOGUE.collective(name), one) for one in slow]
        assert all(bound > EXHAUSTIVE_BOUND for bound in bounds)
    text = page(f"{BEGIN}{END}", [result_of(setting, found)])
    assert f"| {found['compared']} of {found['of']} | 10.0 % |" in text


def test_the_lab_part_reports_what_the_folder_has(monkeypatch, tmp_path):
    setting = reference()
    (tmp_path / "whole").symlink_to(REFERENCE.resolve())
    done = {"seconds": 100.0, "runs": 2}
    monkeypatch.setattr(in_lab, "tuned", lambda *_: done)
    values = InLab(setting, Clock(), tmp_path).result()
    assert values["runs"] == 2
    assert 0 < values["least_seconds"] < values["seconds"]
    assert not (REFERENCE / DONE).exists()


def test_before_anything_is_tuned_it_is_said_if_no_size_can_be_compared(tmp_path):
    setting = replace(reference(), part="exhaustive", collectives=("alltoallv",))
    with pytest.raises(InputError, match="alltoallv: at no size"):
        InLab(setting, Clock(), tmp_path).result()
    assert not list(tmp_path.iterdir())


def test_two_tunings_meet_in_pairs_where_their_choices_differ(monkeypatch, tmp_path):
    setting = replace(reference(), part="twice")
    (tmp_path / "whole").symlink_to(REFERENCE.resolve())
    other = tmp_path / "twice"
    other.mkdir()
    for name in ("topology.yaml", "measurements.jsonl"):
        (other / name).symlink_to((REFERENCE / name).resolve())
    decision = json.loads((REFERENCE / "decision.json").read_text(encoding="utf-8"))
    for table in decision["tables"]:
        if table["collective"] == "bcast":
            native = {"algorithm": "native", "parameters": {}, "crossover": None}
            table["rules"] = [{"from": 0, **native, "alternatives": []}]
    (other / "decision.json").write_text(json.dumps(decision), encoding="utf-8")
    monkeypatch.setattr(in_lab, "tuned", lambda *_: {"seconds": 100.0, "runs": 1})
    met = []

    def compare(clock, *words):
        options = dict(zip(words[1::2], map(str, words[2::2]), strict=True))
        met.append((options["--collective"], int(options["--sizes"])))
        first, second = options["--algorithms"].split(",")
        assert first == "native" != second
        return json.dumps(
            {"rows": [{"routine": first, "ratio": 1}, {"routine": second, "ratio": 0.5}]}
        )

    monkeypatch.setattr("docs.tools.bench_tuning.exhaustive.stagegen", compare)
    found = InLab(setting, Clock(), tmp_path).result()
    known, lab = read_recorded(REFERENCE).decision, InLab(setting, Clock(), tmp_path)
    tuned = {size: lab._chosen(known, "bcast", size) for size in setting.sizes_of("bcast")}
    differ = [size for size, one in tuned.items() if one != NATIVE_CANDIDATE]
    assert met == [("bcast", size) for size in differ]
    shares = found["paired_by_collective"]
    assert [name for name, share in shares.items() if share] == ["bcast"]
    assert -0.5 <= shares["bcast"] < 0, "each pair takes half of the time"
    assert found["paired"] == pytest.approx((1 + shares["bcast"]) ** (1 / len(shares)) - 1)


def test_results_replace_those_of_the_same_setting(tmp_path):
    first, second = (result_of(model("whole"), {"seconds": s}) for s in (1.0, 2.0))
    other = result_of(model("twice"), {"a_in_b": 0.123456})
    found = with_result(with_result(with_result((), other), first), second)
    assert [one.values for one in found] == [{"seconds": 2.0}, {"a_in_b": 0.1235}]
    write_results(found, tmp_path / "results")
    assert read_results(tmp_path / "results") == found
    assert read_results(tmp_path / "none") == ()


def test_a_summary_counts_slow_calls_and_names_the_slowest():
    rows = [Row("bcast", 1, "a", "ring", 0.96), Row("bcast", 2, "b", "ring", 0.5),
            Row("barrier", 0, "a", "native", 1.0)]  # fmt: skip
    found = summary(rows)
    assert (found["slower"], found["slower_by"]) == (2, {"barrier": 0, "bcast": 2})
    assert found["worst"]["bcast"]["job"] == "b"


@pytest.mark.parametrize(
    ("speedups", "wanted", "again"),
    [
        ((0.98,), 0.98, False),
        ((0.9, 1.0, 0.9, 1.1, 0.8, 1.0), 1.0, True),
        ((0.9,) * 6, 0.9, True),
    ],
)
def test_a_call_that_seems_to_be_slow_is_timed_in_other_launches_and_only_these_count(
    speedups, wanted, again
):
    left = iter(speedups)
    asked = []

    def compare(calls: list[tuple[str, int]], repetitions: int) -> list[Comparison]:
        asked.append(calls)
        factors = {8: next(left), 16: 1.5}
        return [
            Comparison(name, size, "ring", (3.0, 3.0), (3.0 / factors[size],) * 2)
            for name, size in calls
        ]

    calls = [("bcast", 16), ("bcast", 8)]
    rows = rows_of(compare, calls, "two hosts")
    assert asked == [calls, *[[("bcast", 8)]] * (len(speedups) - 1)]
    assert [(row.speedup, row.again) for row in rows] == [
        (1.5, False),
        (pytest.approx(wanted), again),
    ]
    assert summary(rows)["again"] == again
    assert summary(rows)["slower"] == (wanted < 0.97)


def test_the_page_is_of_the_results():
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, read_results()) == text
    assert page(text, ()).count("Not measured yet") == len(PARTS)
    assert page(text, ()).count("Not tried yet") == len(TRIALS)


def test_a_wrong_word_is_a_usage_error():
    command = [sys.executable, "-m", "docs.tools.bench_tuning", "--parts", "none"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
