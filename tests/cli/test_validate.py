"""``stagegen validate``: exit statuses and JSON, by a model and for real on this machine."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from stagegen.catalogue import load_catalogue
from stagegen.cli import validate
from stagegen.generate.timings import read_mechanism
from stagegen.measure.arrivals import Replay
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.records import Candidate
from stagegen.measure.timing import Timing
from stagegen.topology import load_topology
from stagegen.tune.recorded import read_recorded
from stagegen.tune.scope import Wanted
from tests.cli.test_tune import CLUSTER, recorded, stagegen
from tests.cli.test_tune_log import Starter, header_with
from tests.library.recorded import cost
from tests.measure.fakes import ENVIRONMENT, Model

__all__ = ["recorded"]  # the fixture

EXAMPLE = Path(__file__).parents[2] / "docs/examples/timing/arrival.c"
RANKS = load_topology(CLUSTER).rank_count

INTERVAL = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
ROUTINE = {
    "required": [
        "routine", "median_s", "interval_s", "ratio", "ratio_interval", "repetitions",
    ],
    "additionalProperties": False,
    "properties": {
        "routine": {"type": "string"},
        "median_s": {"type": "number", "exclusiveMinimum": 0},
        "interval_s": INTERVAL,
        "ratio": {"type": "number", "exclusiveMinimum": 0},
        "ratio_interval": INTERVAL,
        "repetitions": {"type": "integer", "minimum": 1},
    },
}  # fmt: skip
SCHEMA = {
    "type": "object",
    "required": [
        "environment", "environments_differ", "timing", "seed", "drawn", "measured", "holds",
        "rows",
    ],
    "additionalProperties": False,
    "properties": {
        "environment": {"type": "object"},
        "environments_differ": {"type": "array", "items": {"type": "string"}},
        "timing": {"type": "string"},
        "seed": {"type": "integer"},
        "drawn": {"type": "integer", "minimum": 1},
        "measured": {"type": "integer", "minimum": 1},
        "holds": {"type": "boolean"},
        "rows": {
            "type": "array",
            "items": {
                "additionalProperties": False,
                "required": [
                    "collective", "communicator", "ranks", "hosts", "size", "choice", "holds",
                    "beaten_by",
                    "why", "routines",
                ],
                "properties": {
                    "collective": {"type": "string"},
                    "communicator": {"type": "string"},
                    "ranks": {"type": "integer", "minimum": 2},
                    "hosts": {"type": "integer", "minimum": 1},
                    "size": {"type": "integer", "minimum": 0},
                    "choice": {"type": "string"},
                    "holds": {"type": "boolean"},
                    "beaten_by": {"type": "array", "items": {"type": "string"}},
                    "why": {"type": "string"},
                    "routines": {"type": "array", "items": ROUTINE},
                },
            },
        },
    },
}  # fmt: skip


@pytest.fixture
def folder(recorded, tmp_path):
    """A generated folder of its own, since validate builds below it."""
    return Path(shutil.copytree(recorded[2], tmp_path / "folder"))


def validated(monkeypatch, folder, *words, slower=(), environment=ENVIRONMENT, sessions=None):
    """Validate with times of the model that made the folder, but for some that are slower now.

    `sessions` gets the model of each session, and the files of its program.
    """

    def starter(place, files, toolchain, launcher, topology, log, *, computes):
        made = Starter(log, AdmitsAll(), environment=environment)
        made.make_late = lambda request: 0.0
        made.model = Model(
            lambda c, size: cost(c, size) * (3 if c.algorithm in slower else 1), noise=0.01
        )
        if sessions is not None:
            sessions.append((made.model, files))
        return made

    monkeypatch.setattr("stagegen.cli.validate.SessionStarter", starter)
    monkeypatch.setattr(
        "stagegen.cli.validate.launcher_and_toolchain", lambda *_: (LocalLauncher(), None, "")
    )
    return stagegen("validate", folder, "--launcher", "local", *words)


class AdmitsAll:
    def admit(self, *environments):
        return ()


def test_a_decision_holds_if_the_model_has_no_faster_rival(monkeypatch, folder):
    result = validated(monkeypatch, folder, "--sample", "60", "--format", "json")
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, SCHEMA)
    assert answer["measured"] == answer["drawn"] == 60
    assert answer["environments_differ"] == []
    for row in answer["rows"]:
        specs = [one["routine"] for one in row["routines"]]
        first, *others = (cost(Candidate.from_spec(spec), row["size"]) for spec in specs)
        if min(others) > 0.98 * first:
            assert row["holds"]
        if min(others) < 0.95 * first:
            assert not row["holds"]
    held = [row["holds"] for row in answer["rows"]]
    assert answer["holds"] == all(held) == (result.returncode == 0)
    assert sum(held) > 50
    again = validated(monkeypatch, folder, "--sample", "60", "--format", "json")
    assert json.loads(again.stdout) == answer
    other = validated(monkeypatch, folder, "--sample", "60", "--seed", "1", "--format", "json")
    assert json.loads(other.stdout)["rows"] != answer["rows"]


def test_a_routine_that_became_slow_does_not_hold(monkeypatch, folder):
    decision = json.loads((folder / "decision.json").read_text())
    chosen = {rule["algorithm"] for one in decision["tables"] for rule in one["rules"]} - {"native"}
    words = ("--sample", "40", "--format", "json")
    result = validated(monkeypatch, folder, *words, slower=chosen)
    assert result.returncode == 1
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, SCHEMA)
    assert not answer["holds"]
    lost = [row for row in answer["rows"] if not row["holds"]]
    assert lost
    for row in lost:
        ratios = {one["routine"]: one["ratio"] for one in row["routines"]}
        assert all(ratios[faster] < 1 for faster in row["beaten_by"])
    text = validated(monkeypatch, folder, "--sample", "40", slower=chosen)
    assert text.returncode == 1
    assert "decisions hold; 40 were drawn" in text.stdout


@pytest.mark.parametrize(("group", "gain"), [(0, 0.03), (None, 0.1)])
def test_a_decision_on_ranks_that_stand_for_others_needs_more_gain(
    monkeypatch, folder, group, gain
):
    recorded = read_recorded(folder)
    tables = validate._communicators(recorded, recorded.topology)
    made_from = {key: replace(one, group=group) for key, one in tables.items()}
    monkeypatch.setattr(validate, "_communicators", lambda *_: made_from)
    decisions = validate._decisions(recorded, recorded.topology, load_catalogue())
    assert {one.gain for one in decisions} == {gain}


def test_a_job_is_measured_at_the_sizes_at_which_a_program_calls_it_there(monkeypatch, folder):
    recorded = read_recorded(folder)
    tables = validate._communicators(recorded, recorded.topology)
    made_from = {key: replace(one, name="a job") for key, one in tables.items()}
    monkeypatch.setattr(validate, "_communicators", lambda *_: made_from)
    options = validate._options(recorded)
    wanted = tuple(
        Wanted(collective, name, (size,))
        for name, size in (("whole", 4096), ("a job", 100))
        for collective in options.collectives
    )
    monkeypatch.setattr(validate, "_options", lambda _: replace(options, wanted=wanted))
    decisions = list(validate._decisions(recorded, recorded.topology, load_catalogue()))
    changes = {end for d in recorded.decision.tables for r in d.rules for end in r.crossover or ()}
    assert {one.size for one in decisions if one.key[0] == "alltoall"} - changes == {100}


def test_another_environment_is_reported(monkeypatch, folder):
    other = replace(ENVIRONMENT, congestion_control="reno")
    result = validated(monkeypatch, folder, "--sample", "1", environment=other)
    assert "made in another environment: congestion_control differ" in result.stdout


def test_a_budget_ends_the_sample_after_at_least_one(monkeypatch, folder):
    words = ("--sample", "9", "--budget", "0", "--format", "json")
    answer = json.loads(validated(monkeypatch, folder, *words).stdout)
    assert (answer["measured"], answer["drawn"]) == (1, 9)


def test_a_folder_without_its_log_is_validated_too(monkeypatch, folder):
    (folder / "measurements.jsonl").unlink()
    result = validated(monkeypatch, folder, "--sample", "5", "--format", "json")
    assert result.returncode in (0, 1), result.stderr
    jsonschema.validate(json.loads(result.stdout), SCHEMA)


def tuned_by(folder: Path, timing: Timing) -> None:
    """Let the log of a folder say that it was measured in another way."""
    log = folder / "measurements.jsonl"
    header_with(log, log, timing=timing.to_json())


def timed_again(monkeypatch, folder, *words):
    """Validate two decisions; return the answer, the timings of all measurements, and the files."""
    monkeypatch.setattr(validate, "require_sound", lambda *_: None)  # there is no compiler
    sessions = []
    words = (*words, "--sample", "2", "--format", "json")
    result = validated(monkeypatch, folder, *words, sessions=sessions)
    assert result.returncode in (0, 1), result.stderr
    ((model, files),) = sessions
    return json.loads(result.stdout), {one.timing for one in model.asked}, files


def test_a_mechanism_of_ones_own_times_the_decisions_that_it_made(monkeypatch, folder):
    own = Timing("arrival", 2.0, "mean", hash=read_mechanism(EXAMPLE).hash)
    tuned_by(folder, own)
    answer, timings, files = timed_again(monkeypatch, folder, "--timing", EXAMPLE)
    assert answer["timing"] == "arrival"
    assert timings == {own}
    assert files["timing_arrival.c"] == EXAMPLE.read_text()


def test_a_replay_times_the_decisions_that_it_made_with_all_its_delays(monkeypatch, folder):
    delays = [0.0, 0.002, *[0.0] * (RANKS - 2)]
    tuned_by(folder, Timing("replay", 0, "mean", arrivals=Replay.of("ranks 1=2ms", [delays])))
    answer, (timing,), _ = timed_again(monkeypatch, folder, "--timing", "replay:1=2ms")
    assert answer["timing"] == "replay"
    assert timing.arrivals.in_turn == ((0, 2000, *[0] * (RANKS - 2)),)
    assert {row["ranks"] for row in answer["rows"]} == {RANKS}


@pytest.mark.parametrize(
    ("logged", "name"),
    [
        (Timing("arrival", 2.0, hash="0" * 64), "name arrival.c with --timing"),
        (
            Timing("replay", 0, "mean", arrivals=Replay.of("a+0x1", [[0.0] * RANKS])),
            "name the recording with --timing",
        ),
    ],
)
def test_a_folder_whose_log_lacks_the_mechanism_is_timed_by_barrier_and_says_so(
    monkeypatch, folder, logged, name
):
    tuned_by(folder, logged)
    result = validated(monkeypatch, folder, "--sample", "1", "--format", "json")
    assert json.loads(result.stdout)["timing"] == "barrier"
    assert f"this is by barrier: {name}" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("logged", "given", "why"),
    [
        (Timing("arrival", 2.0, hash="0" * 64), EXAMPLE, "with arrival.c; name it"),
        (Timing("mpptest"), EXAMPLE, "with --timing mpptest; leave out --timing"),
        (Timing("mpptest"), "barrier", "with --timing mpptest; leave out --timing"),
        (
            Timing("replay", 0, "mean", arrivals=Replay.of("a+0x1", [[0.0] * RANKS])),
            "replay:1=2ms",
            "measured with other delays",
        ),
    ],
)
def test_another_timing_than_the_logs_is_refused(monkeypatch, folder, logged, given, why):
    tuned_by(folder, logged)
    result = validated(monkeypatch, folder, "--timing", given)
    assert result.returncode == 2
    assert result.stderr.startswith(f"{folder / 'measurements.jsonl'}:1: ")
    assert why in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("decision.json", "{"),
        ("decision.json", "[]"),
        ("decision.json", '{"version": 2}'),
        ("decision.json", '{"version": 1}'),
        ("measurements.jsonl", "{}\n"),
        ("topology.yaml", "name: other\nswitches: {s0: {hosts: [a, b]}}\n"),
    ],
)
def test_a_damaged_folder_is_reported_with_its_file(folder, file, text):
    (folder / file).write_text(text)
    result = stagegen("validate", folder, "--launcher", "local")
    assert result.returncode == 2
    assert result.stderr.startswith(str(folder / file))


def test_what_is_no_folder_is_reported(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        result = stagegen("validate", path)
        assert result.returncode == 2
        assert str(path) in result.stderr


def test_a_routine_that_has_changed_since_is_reported(monkeypatch, folder):
    log = folder / "measurements.jsonl"
    header, *rest = log.read_text().splitlines(keepends=True)
    form = json.loads(header)
    form["routines"] = dict.fromkeys(form["routines"], "0" * 64)
    log.write_text(json.dumps(form) + "\n" + "".join(rest))
    result = validated(monkeypatch, folder, "--sample", "2")
    assert result.returncode == 2
    assert "have changed since they were measured" in result.stderr


@pytest.mark.mpi
def test_decisions_are_measured_again_for_real(folder):
    """The times are of this machine: whatever they say, status and verdicts agree with them."""
    words = ("--launcher", "local", "--sample", "2", "--repetitions", "4", "--format", "json")
    result = stagegen("validate", folder, *words)
    assert result.returncode in (0, 1), result.stderr
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, SCHEMA)
    assert answer["environment"]["machines"]
    assert answer["holds"] == (result.returncode == 0)
    assert answer["measured"] == len(answer["rows"]) == 2
