"""Experiments about adapting: what is compared runs in turn, and what counts as the best."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from docs.tools.experiments.adaptive import (
    _jobs,
    _source,
    computing,
    halves,
    imbalance,
    programs,
    second_run,
    tables_4_13_to_4_19,
    uplink,
)
from stagegen.adaptive.learned import read_learned
from tests.adaptive.test_commands import learned_file

TABLES = tables_4_13_to_4_19
#: What a call of each takes, in seconds; the policy begins with slow ones.
SECONDS = {"MPI": 4.0, "table": 2.0, "star": 2.0, "star-basic": 2.0, "star-enhanced": 2.0,
           "guard": 2.0, "alltoall=native": 1.0, "alltoall=bruck": 3.0}  # fmt: skip


def write_learned(path, size):
    """A learned file whose candidates are the table's ring, native, and bruck, which serves."""
    _, form = learned_file(path.parent)
    (one,) = form["situations"]
    one["bytes"] = size
    one["candidates"][1]["algorithm"] = "native"
    path.write_text(json.dumps(form))


@pytest.fixture
def jobs(monkeypatch):
    """Jobs that take what SECONDS says; yields (what served, the words) of each."""
    asked = []

    def calls(_folder, served, *words, learn=None):
        asked.append((served, words))
        if learn is not None:
            size = int(words[1])
            write_learned(learn, size)
            form = json.loads(learn.read_text())
            more = [word for word in words if str(word).startswith("then=")]
            if more:
                other = json.loads(learn.read_text())["situations"][0]
                form["situations"].append(other | {"bytes": int(more[0].removeprefix("then="))})
                learn.write_text(json.dumps(form))
        times = [SECONDS[served]] * int(words[2])
        return {"elapsed": times, "last": times}

    for module in (computing, halves, imbalance, TABLES, uplink):
        monkeypatch.setattr(module, "calls", calls)
    monkeypatch.setattr(imbalance, "message_ms", lambda _folder, _size: 0.5)
    monkeypatch.setenv("BENCH_REPETITIONS", "3")
    return asked


def test_arms_run_in_turn_and_each_round_begins_with_another(monkeypatch):
    monkeypatch.setenv("BENCH_REPETITIONS", "3")
    order = []
    found = _jobs.in_turn({name: lambda i, name=name: order.append((i, name)) for name in "ab"})
    assert order == [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b")]
    assert {name: len(rounds) for name, rounds in found.items()} == {"a": 3, "b": 3}


def test_nothing_is_compared_without_a_repetition(monkeypatch):
    monkeypatch.setenv("BENCH_REPETITIONS", "0")
    with pytest.raises(ValueError, match="from 1 upwards"):
        _jobs.repetitions()


def test_a_ratio_is_the_median_of_those_of_the_rounds():
    assert _jobs.ratio([2.0, 9.0, 3.0], [1.0, 3.0, 3.0]) == 2.0


def test_the_table_and_the_native_routine_are_among_the_single_ones(tmp_path):
    file = tmp_path / "own.json"
    write_learned(file, 64)
    assert _jobs.singles(file, 64) == ["table", "alltoall=native", "alltoall=bruck"]
    one = _jobs.situation(file, 64)
    assert _jobs.alone(one, 0, of_source=True) == "alltoall=ring"


def test_the_routines_that_run_beside_the_policy_are_the_fastest():
    assert _jobs.finalists(list("abcd"), {"a": 4, "b": 1, "c": 3, "d": 2}.__getitem__) == list(
        "bdc"
    )


def test_late_processes_have_the_same_pattern_in_all_arms_of_a_round(tmp_path, jobs):
    result = imbalance._measure("alltoall", 16, tmp_path)
    assert result["best"] == "alltoall=native"
    assert all("factor=16" in words and "message=0.500000" in words for _, words in jobs)
    rounds = [(served, words[-1]) for served, words in jobs if words[2] > imbalance.SHORT]
    for seed in ("seed=1", "seed=2", "seed=3"):
        own = [served for served, its in rounds if its == seed]
        assert sorted(own) == ["alltoall=bruck", "alltoall=native", "guard", "star", "table"]
    (target,) = imbalance._targets({"one": result})
    assert target.met is False, "star takes twice the native routine's time"


def test_the_halves_have_a_best_routine_each_and_the_table_is_not_run_twice(tmp_path, jobs):
    result = halves._measure("alltoall", tmp_path)
    for part in result["parts"]:
        assert part["best"] == "alltoall=native"
        assert set(part["times"]) == {"star", "guard", "table", "alltoall=native",
                                      "alltoall=bruck"}  # fmt: skip
    assert "2.000 | 1.000 | 1.000 | 1.000 |" in halves._report({"alltoall": result})
    whole = {}
    for served, words in jobs:
        if words[2] == halves.CALLS:
            whole.setdefault(served, set()).add(words)
    assert all(len(runs) == 3 for runs in whole.values())
    assert len(set(map(frozenset, whole.values()))) == 1, "delays are not the same for all"
    assert len([served for served, words in jobs if served == "star"]) == 4


def test_the_guard_is_compared_with_the_best_routine_at_half_of_the_rate(tmp_path, jobs):
    result = uplink._measure("alltoall", tmp_path)
    assert result["best"] == "alltoall=native"
    alone = [words for served, words in jobs if served.startswith("alltoall=")]
    assert alone
    assert all("at=0" in words for words in alone)
    assert result["reactions"] == [None] * 3
    after, before, late = uplink._targets({"alltoall": result})
    assert (after.met, before.met, late.met) == (False, True, None)
    late = uplink._targets({"alltoall": result | {"reactions": [50, None]}})[2]
    assert late.met
    late = uplink._targets({"alltoall": result | {"reactions": [50, 51]}})[2]
    assert late.met is False


def test_a_guard_has_reacted_when_another_routine_is_chosen_not_when_it_is_tried():
    def stage(candidate, calls, is_monitoring):
        return SimpleNamespace(candidate=candidate, calls=calls, is_monitoring=is_monitoring)

    before, after = stage(0, uplink.AT, True), stage(0, 10, True)
    tried, chosen = stage(2, 3, False), stage(2, 20, True)
    reaction = uplink.reaction
    assert reaction(SimpleNamespace(stages=[before, after, tried, chosen])) == 13
    assert reaction(SimpleNamespace(stages=[before, after, tried, after])) is None


def test_the_micro_benchmark_computes_between_the_calls_of_every_arm(tmp_path, jobs):
    result = TABLES._measure("alltoall", 2048, tmp_path)
    first, *others = jobs
    assert first[0] == "MPI"
    assert result["rest_ms"] == TABLES.REST_MOST_MS, "five times 4 s is more than that"
    assert all(f"rest={TABLES.REST_MOST_MS:.3f}" in words for _, words in others)
    assert result["choices"] == {}, "both chose the same"
    text = TABLES._report({"alltoall 2048 B": result})
    assert "As Table 4.19" in text
    assert "| `bruck` | 90 | 2181 | simple |" in text, "the source's row is beside ours"
    assert "| – | – | – |" in text, "the source has no such policy"


def test_shares_of_a_call_are_beside_those_of_the_source():
    costs = {"o_ms_a_s": 0.2, "o_ma_s": 0.1}
    one = {"before_s": 10.0, "after_s": 4.0, "overheads": costs}
    (theirs,) = [row for row in TABLES._beside({}).splitlines() if "alltoall 256 KiB" in row]
    assert theirs == (
        "| alltoall 256 KiB | – | 1.27 | 1.18 | – | 0.96 | 0.94 "
        "| – | 0.24% | 0.00014% | – | 0.06% | 0.1% |"
    )
    result = {"MPI": 5.0, "star-enhanced": one}
    (ours,) = [
        row
        for row in TABLES._beside({"allreduce 16384 B": result}).splitlines()
        if "allreduce 16 KiB" in row
    ]
    assert ours.startswith("| allreduce 16 KiB | 2.00 | 2.03 | 1.43 | 0.80 | 0.78 | 0.53 | 2% |")
    assert "| 2.5% |" in ours


def test_the_overheads_of_the_source_add_up_to_its_times():
    for which, one in _source.MICRO.items():
        assert one.o_ms_a + one.o_ms_c == pytest.approx(one.selecting, rel=0.01), which


def test_each_program_is_beside_what_it_stands_for():
    times = {"MPI": [6.0, 9.0, 1.0], "table": [3.0, 2.0, 2.0],
             "star-enhanced": [2.0, 3.0, 1.0], "star-enhanced′": [1.0, 1.5, 1.0]}  # fmt: skip
    rows = programs._beside({"bodies": {"times": times}}).splitlines()
    at = rows.index("| NBODY: our `bodies` | 3.00 | 1.50 | 2.00 | 2.00 |")
    assert rows[at + 1] == "| NBODY: the source's, on (a) | 1.08 | 1.07 | 1.01 | – |"
    assert rows[at + 2].startswith("| NBODY: the source's, on (b) |")


def test_what_computes_between_its_calls_is_compared_with_the_search_included(tmp_path, jobs):
    result = computing._measure("alltoall", tmp_path)
    assert result["rest_ms"] == 5 * 4000
    rounds = [(served, words[2]) for served, words in jobs[1:]]
    assert sorted(rounds) == sorted((served, 300) for served in ("MPI", "table", "star") * 3)
    (target,) = computing._targets({"alltoall": result})
    assert target.met is False
    assert "| 4000 | 2000 | 2000 | 1.000 | 2.000 |" in computing._report({"alltoall": result})


def test_the_excess_of_star_may_be_a_fifth_of_that_of_basic():
    def policy(calls, seconds):
        return {"selected_after": calls, "selection_s": seconds, "after_s": 1.0}

    def result(star):
        return {"MPI": 2.0, "table": 1.5, "star-basic": policy(90, 190.0),
                "star-enhanced": policy(50, 90.0), "star": policy(40, star),
                "choices": {"star": [1.0, 1.1], "star-basic": [1.0, 1.0]}}  # fmt: skip

    assert TABLES.excess(result(60.0), "star-basic") == 100.0
    excess, choice = TABLES._targets({"point": result(60.0)})
    assert (excess.met, choice.met) == (True, False)
    excess, _ = TABLES._targets({"point": result(61.0)})
    assert excess.met is False


def test_what_was_selected_serves_from_the_first_call_on(tmp_path):
    file = tmp_path / "own.json"
    write_learned(file, 64)
    form = json.loads(file.read_text())
    short = form["situations"][0] | {"bytes": 8, "calls": 1, "current": 1}
    kept = form["situations"][0] | {"collective": "allgather", "current": 0}
    form["situations"] += [short, kept]
    file.write_text(json.dumps(form))
    situations = read_learned(file).situations
    assert [one.collective for one in programs.largest(situations)] == ["allgather", "alltoall"]
    assert programs.selected(situations, of_source=False) == "alltoall=bruck"
    assert programs.selected(situations, of_source=True) == "allgather=ring,alltoall=bruck"
    assert programs.selected(situations[2:], of_source=False) == "table"


def test_a_program_has_the_times_of_all_and_what_was_learned(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_REPETITIONS", "2")
    served_by = []

    def run(_folder, served, *_words, learn=None):
        served_by.append(served)
        if learn is not None:
            write_learned(learn, 64)
        return f"right: a program, {2.5 if served == 'table' else 2.0} s\n"

    monkeypatch.setattr(programs, "run", run)
    result = programs._measure("frames", tmp_path)
    assert result["primed"] == {"star-enhanced′": "alltoall=bruck", "star′": "alltoall=bruck"}
    assert served_by.count("alltoall=bruck") == 4
    text = programs._report({"frames": result})
    assert "| 1.250 | 1.00 |" in text
    assert "frames: alltoall of 64 B, 4 ranks, `guard` | `bruck` | 6 |" in text
    gain, watching = programs._targets({"frames": result})
    assert gain.met
    assert watching.met
    slow = {**result["times"], "guard": [2.6, 2.6]}
    assert not programs._targets({"frames": {**result, "times": slow}})[1].met


def test_a_second_run_has_the_library_that_learned(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_REPETITIONS", "2")
    made, known = [], tmp_path / "top" / "library-own"
    (known / "build").mkdir(parents=True)
    (known / "decision.json").touch()

    def run(_folder, served, _program, learn=None, preloaded=None):
        made.append((served, learn, preloaded))
        return f"right: a program, {4.0 if preloaded is None else 2.0} s\n"

    monkeypatch.setattr(second_run, "run", run)
    monkeypatch.setattr(second_run, "library", lambda *_: known)
    monkeypatch.setattr(second_run, "stagegen", lambda *words: made.append(words))
    monkeypatch.setattr(second_run, "run_make", lambda *words: made.append(words[2:]))
    folder = tmp_path / "second_run" / "sort"
    result = second_run._measure("sort", folder)
    file, learned = folder / "learned.json", folder / "library"
    assert made[:3] == [
        ("star", file, None),
        ("learn", file, "--library", learned),
        ("libcoll.so",),
    ]
    assert (learned / "decision.json").exists()
    assert not (learned / "build").exists(), "what was built has other rules"
    assert [served for served, _, own in made[3:] if own == learned] == ["table", "star"] * 2
    assert "| 4.000 | 4.000 | 2.000 | 2.000 | 2.000 | 2.000 |" in second_run._report(
        {"sort": result}
    )
    (target,) = second_run._targets({"sort": result})
    assert target.met
