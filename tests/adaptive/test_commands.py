"""`stagegen adapt`: traces that are read as they were written, replays, reports."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from stagegen.adaptive.learned import read_learned
from stagegen.adaptive.policies import policy_names
from stagegen.adaptive.replay import overheads, replay
from stagegen.adaptive.trace import Trace, read_trace, synthetic, trace_of_measurements
from stagegen.catalogue.algorithm import Adaptation
from stagegen.cli import group
from stagegen.data import TOPOLOGIES
from stagegen.errors import InputError
from stagegen.measure.log import read_log
from stagegen.measure.records import Measurement
from tests.library.schemas import validate

REFERENCE = TOPOLOGIES.parent / "generated" / "reference" / "measurements.jsonl"


def run(*words):
    done = CliRunner().invoke(group, ["adapt", *map(str, words)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def learned_file(folder, **changes):
    """A file as a library writes it: three candidates, the second wins, then the third."""
    stages = [
        (0, False, 3.0, "to be examined"),
        (1, False, 1.0, "to be examined"),
        (2, False, 2.0, "selected"),
        (1, True, 4.0, "slower than the second best"),
        (2, True, 2.0, "still within the limit"),
    ]
    form = {
        "version": 1, "library": "0.1.0", "cluster": "reference", "topology_hash": "a" * 64,
        "policy": "star-basic", "left_out": 0,
        "settings": {"iterations": 2, "delta": 2, "delta_bound": 64, "epsilon": 0.1, "seed": 1},
        "situations": [{
            "collective": "alltoall", "bytes": 2048, "communicator": "cluster", "number": 0,
            "ranks": 4, "hosts": 4, "site": "program+0x1f", "calls": 10, "meetings_s": 0.5,
            "selected_after": 6, "current": 2, "stages_left_out": 0,
            "candidates": [
                {"algorithm": name, "parameters": {}, "group": i + 1, "is_representative": True,
                 "known_s": None if i else 2.5}
                for i, name in enumerate(("ring", "pair", "bruck"))
            ],
            "stages": [
                {"candidate": c, "calls": 2, "is_monitoring": m, "mean_s": [t, t],
                 "max_s": [t + 0.5, t + 0.7], "skew_s": t / 4, "decision": why}
                for c, m, t, why in stages
            ],
        }],
    }  # fmt: skip
    form |= changes
    path = folder / "learned.json"
    path.write_text(json.dumps(form))
    return path, form


def test_a_trace_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "trace.json"
    run("trace", "--synthetic", "bursty", "--calls", 40, "--seed", 3, "--output", file)
    assert read_trace(file) == synthetic("bursty", calls=40, seed=3)
    validate("adapt-trace.schema", json.loads(file.read_text()))


def test_a_log_becomes_a_trace_whose_calls_are_the_repetitions():
    records = [one for one in read_log(REFERENCE)[1] if one["kind"] == "measurement"]
    found = map(Measurement.from_json, records)
    one = next(m for m in found if len(m.request.candidates) > 1 and m.request.repetitions >= 5)
    trace = trace_of_measurements([one], "log")
    count = one.request.repetitions
    assert trace.calls == count - count // 5
    by_name = {c.spec: times for c, times in one.by_candidate().items()}
    assert trace.candidates[0] == "native"
    for name, times in zip(trace.candidates, trace.mean_s, strict=True):
        assert times == by_name[name][count // 5 :]


@pytest.mark.slow
@pytest.mark.mpi
def test_candidates_that_are_timed_in_turn_become_a_trace(tmp_path):
    file = tmp_path / "trace.json"
    words = ["--topology", TOPOLOGIES / "quickstart.yaml", "--launcher", "local", "--size", "64"]
    run("trace", *words, "--algorithms", "native,ring", "--calls", 10, "--output", file)
    trace = read_trace(file)
    assert trace.candidates == ("native", "ring")
    assert trace.entrants[0].is_native
    assert all(one.known_s > 0 for one in trace.entrants)
    assert trace.calls == 10
    assert 0 < trace.meeting_s < 1
    validate("adapt-trace.schema", trace.to_json())
    run("replay", file, "--policy", "all")


def test_a_trace_has_the_groups_of_the_front_matter_up_to_their_sizes():
    trace = synthetic("stationary", calls=5, size=1024)
    bare = replace(trace, entrants=tuple(replace(e, group=0) for e in trace.entrants))
    names = [name.partition(":")[0] for name in trace.candidates]
    marks = {
        names[1]: Adaptation(3, True),
        names[2]: Adaptation(2, max_bytes=256),
        names[3]: Adaptation(4, without_hosts=True),
    }
    first, one, *others = bare.with_adaptations(marks).entrants
    assert (one.group, one.is_representative) == (3, True)
    assert {e.group for e in (first, *others)} == {0}


def test_the_tables_choice_is_the_best_known():
    trace = synthetic("stationary", calls=5).as_tuned()
    assert trace.entrants[0].known_s == min(e.known_s for e in trace.entrants)
    whole = synthetic("stationary", calls=5)
    rows = dict(zip(whole.candidates, whole.mean_s, strict=True))
    assert dict(zip(trace.candidates, trace.mean_s, strict=True)) == rows


@pytest.mark.parametrize("damage", [{"version": 2}, {"candidates": []}, {"size": "x"}])
def test_a_damaged_trace_is_refused(tmp_path, damage):
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(synthetic("stationary", calls=5).to_json() | damage))
    with pytest.raises(InputError, match="is no trace"):
        read_trace(file)


def test_a_replay_says_what_each_policy_did(tmp_path):
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(synthetic("degraded", calls=300).to_json()))
    form = json.loads(run("replay", file, "--policy", "all", "--format", "json"))
    validate("adapt-replay.schema", form)
    assert [one["policy"] for one in form["replays"]] == list(policy_names())
    for one in form["replays"]:
        assert sum(stage["calls"] for stage in one["stages"]) == 300
        assert one["loss"] == pytest.approx(one["seconds"] / one["best_s"] - 1)
    text = run("replay", file, "--policy", "guard,star")
    assert "guard" in text
    assert "best single" in text


def test_a_replay_of_constant_times_has_overheads_that_can_be_counted_by_hand():
    flat = synthetic("stationary", calls=200)
    rows = tuple(tuple([1.0 + i] * 200) for i in range(len(flat.candidates)))
    trace = Trace.from_json(
        Trace(**{**flat.__dict__, "mean_s": rows, "max_s": rows, "meeting_s": 0.5}).to_json()
    )
    grouped = [rows[i][0] for i, one in enumerate(flat.entrants) if one.group]
    one = replay(trace, "star-basic").overheads
    assert one.selected_after == 10 * len(grouped)
    assert one.o_ms_a_s == pytest.approx(0.05)
    assert one.o_ms_c_s == pytest.approx(sum(grouped) / len(grouped))
    assert one.excess_s == pytest.approx(10 * sum(time - 1 for time in grouped))


def test_without_selection_nothing_counts_for_it():
    none = overheads([(True, [1.0, 1.0])], 1.0, 0.0, 0.25)
    assert (none.selected_after, none.o_ms_a_s, none.excess_s, none.o_ma_s) == (0, 0, 0, 0.25)


def test_a_report_has_what_was_tried_and_chosen_when_and_why(tmp_path):
    file, form = learned_file(tmp_path)
    validate("learned.schema", form)
    (told,) = json.loads(run("report", file, "--format", "json"))["situations"]
    assert told["chosen"] == "bruck"
    assert {row["candidate"]: row["median_s"] for row in told["tried"]} == {
        "ring": 3.0, "pair": 2.5, "bruck": 2.0,
    }  # fmt: skip
    assert [(row["call"], row["candidate"]) for row in told["changes"]] == [
        (0, "ring"), (2, "pair"), (4, "bruck"), (6, "pair"), (8, "bruck"),
    ]  # fmt: skip
    assert told["changes"][-1]["why"] == "slower than the second best"
    longest = {row["candidate"]: row["max_s"] for row in told["tried"]}
    assert longest == pytest.approx({"ring": 3.6, "pair": 3.1, "bruck": 2.6})
    assert {row["candidate"]: row["skew_s"] for row in told["tried"]} == {
        "ring": 0.75, "pair": 0.625, "bruck": 0.5,
    }  # fmt: skip
    costs = told["overheads"]
    assert costs["selected_after"] == 6
    assert costs["o_ms_a_s"] == pytest.approx(3 * 0.1 / 6)
    assert costs["o_ms_c_s"] == pytest.approx(2.0)
    assert costs["o_ma_s"] == pytest.approx(2 * 0.1 / 4)
    text = run("report", file, "--html", tmp_path / "page.html")
    assert "slower than the second best" in text
    assert "bruck (2 s, longest rank 2.6 s, skew 500 ms)" in text
    page = (tmp_path / "page.html").read_text()
    assert "bruck" in page
    assert "<th>longest rank</th><th>skew</th>" in page
    assert "<td>3.6 s</td>\n<td>750 ms</td>" in page
    assert "<svg" in page


def test_a_stage_whose_times_had_no_room_has_a_skew_alone(tmp_path):
    file, form = learned_file(tmp_path)
    form["situations"][0]["stages"][0].update(mean_s=[], max_s=[])
    file.write_text(json.dumps(form))
    validate("learned.schema", form)
    (told,) = json.loads(run("report", file, "--format", "json"))["situations"]
    (row,) = [row for row in told["tried"] if row["candidate"] == "ring"]
    assert (row["median_s"], row["max_s"], row["skew_s"]) == (None, None, 0.75)
    assert "ring: the first" in run("report", file)


@pytest.mark.parametrize("damage", [{"version": 2}, {"situations": [{}]}, {"left_out": "x"}])
def test_a_damaged_learned_file_is_refused(tmp_path, damage):
    file, _ = learned_file(tmp_path, **damage)
    with pytest.raises(InputError, match="is no file of LIBCOLL_LEARN"):
        read_learned(file)
