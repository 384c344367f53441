"""`stagegen tune` and its log: what is refused, what is kept, and going on after failures."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.errors import MeasurementError
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.session import SessionError
from tests.cli.test_tune import CLUSTER, contents, from_log, recorded, stagegen
from tests.library.recorded import cost
from tests.library.schemas import validate
from tests.measure.fakes import ENVIRONMENT, Model

__all__ = ["recorded"]  # the fixture

CATALOGUE = load_catalogue()


def header_with(log: Path, path: Path, **changes: object) -> Path:
    lines = log.read_text().splitlines(keepends=True)
    header = {**json.loads(lines[0]), **changes}
    header = {key: value for key, value in header.items() if value is not None}
    path.write_text("".join([json.dumps(header) + "\n", *lines[1:]]))
    return path


HEADERS = [
    {"sizes": []},
    {"sizes": ["a"]},
    {"sizes": [True]},
    {"sizes": [0, 1]},
    {"sizes": [2, 1]},
    {"sizes": {"1": 1}},
    {"sizes": None},
    {"collectives": []},
    {"collectives": "bcast"},
    {"collectives": ["bcast", "gossip"]},
    {"collectives": [["bcast"]]},
    {"communicators": []},
    {"communicators": "whole"},
    {"communicators": ["whole", 3]},
    {"communicators": ["whole", "gossip"]},
    {"timing": "barrier"},
    {"timing": {"mechanism": "barrier"}},
    {"timing": {"mechanism": ["barrier"], "computation": 0}},
    {"timing": {"mechanism": "stopwatch", "computation": 0}},
    {"timing": {"mechanism": "barrier", "computation": "0"}},
    {"timing": {"mechanism": "barrier", "computation": 0, "metric": "fastest"}},
    {"timing": {"mechanism": "barrier", "computation": 0, "computation_ms": -1}},
    {"timing": {"mechanism": "barrier", "computation": 0, "iterations": []}},
    {"timing": {"mechanism": "barrier", "computation": 0, "iterations": [[64, 2], [1, 3]]}},
    {"timing": {"mechanism": "arrival", "computation": 0, "hash": 5}},
    {"budget": "20"},
    {"budget": -1},
    {"total_budget": "10m"},
    {"budget": float("nan")},
    {"version": 7},
    {"topology_hash": 5},
]


@pytest.mark.parametrize("changes", HEADERS)
def test_a_damaged_header_is_reported_with_file_and_line(recorded, tmp_path, changes):
    log = header_with(recorded[0], tmp_path / "damaged.jsonl", **changes)
    result = from_log(CLUSTER, log, tmp_path / "out")
    assert result.returncode == 2
    assert result.stderr.startswith(f"{log}:1: ")
    assert not (tmp_path / "out").exists()


DIFFERENT = [
    ("--sizes", "1:2KiB"),
    ("--collectives", "bcast"),
    ("--communicators", "whole,half"),
    ("--timing", "mpptest"),
    ("--metric", "mean"),
    ("--iterations", "source"),
    ("--budget", "3"),
    ("--budget", "20s"),
]


@pytest.mark.parametrize(("option", "value"), DIFFERENT)
@pytest.mark.parametrize("resume", [True, False])
def test_options_unlike_those_of_the_log_are_refused(recorded, tmp_path, option, value, resume):
    words = ["--from-log", tmp_path / "measurements.jsonl"]
    (tmp_path / "measurements.jsonl").write_bytes(recorded[0].read_bytes())
    if resume:
        words = ["--resume", "--launcher", "local"]
    words = ["tune", "--topology", CLUSTER, "--output", tmp_path, *words]
    result = stagegen(*words, option, value)
    assert result.returncode == 2, result.stderr
    assert f"{option} differs from what" in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["measurements.jsonl"]


def test_options_that_are_those_of_the_log_change_nothing(recorded, tmp_path):
    log, _, folder, _ = recorded
    words = ["tune", "--topology", CLUSTER, "--output", tmp_path, "--from-log", log]
    options = ["--sizes", "1,1024,16384,65536", "--timing", "barrier", "--budget", "20"]
    options += ["--metric", "slowest", "--iterations", "adaptive", "--computation", "100"]
    assert stagegen(*words, *options).returncode == 0
    assert contents(tmp_path) == contents(folder)


# Tuning with sessions that are no jobs.


class Starter:
    """Starts sessions of a cost model, or fails on request."""

    def __init__(
        self, log, admission, fails: str = "", deadly: str = "", environment=ENVIRONMENT, noise=0.01
    ):
        self.log, self.admission, self.fails, self.deadly = log, admission, fails, deadly
        self.environment, self.scale = environment, 1.0
        self.model = Model(cost, noise=noise)

    def __call__(self):
        if self.fails == "start":
            raise MeasurementError("the session did not start")
        allowed = self.admission.admit(self.environment)
        form = self.environment.to_json()
        self.log.write(*allowed, {"kind": "session", "environment": form, "mpi": "a model"})
        return self

    def build(self):
        pass

    def use(self, communicators):
        pass

    def check(self, collective, candidates, timeout, *, again=False):
        return self.model.check(collective, candidates)

    def measure(self, request, timeout):
        algorithms = [candidate.algorithm for candidate in request.candidates]
        if self.fails == "measure" or self.deadly in algorithms:
            raise SessionError(f"the job has ended ({', '.join(algorithms)})")
        return self.model.measure(request)

    def close(self):
        pass


def tuned(monkeypatch, output: Path, *words: str, **how) -> subprocess.CompletedProcess[str]:
    def starter(folder, files, toolchain, launcher, topology, log, admission, computes):
        return Starter(log, admission, **how)

    monkeypatch.setattr("stagegen.cli._tune_run.SessionStarter", starter)
    monkeypatch.setattr(
        "stagegen.cli.tune.launcher_and_toolchain", lambda *_: (LocalLauncher(), None, "")
    )
    words = ("--communicators", "whole", *words)
    words = ("--launcher", "local", "--collectives", "alltoall", "--sizes", "1,65536", *words)
    return stagegen("tune", "--topology", CLUSTER, "--output", output, *words)


def use_catalogue(monkeypatch, catalogue: Catalogue) -> None:
    monkeypatch.setattr("stagegen.cli.tune.load_catalogue", lambda **_: catalogue)


def without(routine: str) -> Catalogue:
    return replace(
        CATALOGUE, algorithms=tuple(a for a in CATALOGUE.algorithms if a.full_name != routine)
    )


def with_changed(routine: str) -> Catalogue:
    """Return the catalogue as it is after a change of one routine."""
    changed = (
        replace(a, hash="0" * 64) if a.full_name == routine else a for a in CATALOGUE.algorithms
    )
    return replace(CATALOGUE, algorithms=tuple(changed))


def algorithms_measured(path: Path, before: bytes) -> set[str]:
    """Return which algorithms the records of a log are of that were added to it."""
    data = path.read_bytes()
    assert data.startswith(before)
    records = [json.loads(line) for line in data[len(before) :].splitlines()]
    for record in records:
        validate("measurements", record)
    specs = (spec for r in records if r["kind"] == "measurement" for spec in r["seconds"])
    return {spec.partition(":")[0] for spec in specs}


def test_an_algorithm_that_was_added_is_no_candidate_of_a_log(tmp_path, monkeypatch):
    use_catalogue(monkeypatch, without("alltoall/ring"))
    assert tuned(monkeypatch, tmp_path / "one").returncode == 0
    use_catalogue(monkeypatch, CATALOGUE)
    result = from_log(CLUSTER, tmp_path / "one" / "measurements.jsonl", tmp_path / "two")
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("then", [without("alltoall/ring"), with_changed("alltoall/ring")])
def test_resuming_measures_the_routine_that_was_added_or_changed(tmp_path, monkeypatch, then):
    live = tmp_path / "live"
    path = live / "measurements.jsonl"
    use_catalogue(monkeypatch, then)
    assert tuned(monkeypatch, live, noise=0).returncode == 0
    before = path.read_bytes()
    use_catalogue(monkeypatch, CATALOGUE)
    assert tuned(monkeypatch, live, "--resume", noise=0).returncode == 0
    assert algorithms_measured(path, before) == {"ring"}
    again = from_log(CLUSTER, path, tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert contents(live) == contents(tmp_path / "again")


def test_a_log_alone_is_not_enough_after_a_routine_changed(tmp_path, monkeypatch):
    use_catalogue(monkeypatch, with_changed("alltoall/ring"))
    assert tuned(monkeypatch, tmp_path / "one").returncode == 0
    use_catalogue(monkeypatch, CATALOGUE)
    log = tmp_path / "one" / "measurements.jsonl"
    result = from_log(CLUSTER, log, tmp_path / "two")
    assert result.returncode == 2
    assert "changed since they were measured: alltoall/ring; use --resume" in result.stderr
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize("routine", ["bcast/native", "bcast/binomial"])
def test_a_change_elsewhere_asks_for_nothing(tmp_path, monkeypatch, routine):
    use_catalogue(monkeypatch, with_changed(routine))
    assert tuned(monkeypatch, tmp_path / "one").returncode == 0
    use_catalogue(monkeypatch, CATALOGUE)
    log = tmp_path / "one" / "measurements.jsonl"
    assert from_log(CLUSTER, log, tmp_path / "two").returncode == 0


def logs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.jsonl"))


def test_a_run_that_cannot_start_leaves_the_log_and_others_are_numbered(tmp_path, monkeypatch):
    path = tmp_path / "measurements.jsonl"
    assert tuned(monkeypatch, tmp_path).returncode == 0
    first = path.read_bytes()
    for _ in range(2):
        result = tuned(monkeypatch, tmp_path, fails="start")
        assert result.returncode == 1
        assert "--resume" not in result.stderr
        assert path.read_bytes() == first
    result = tuned(monkeypatch, tmp_path, fails="measure")
    assert "go on with --resume" in result.stderr
    assert logs(tmp_path) == ["measurements.1.jsonl", "measurements.jsonl"]
    assert tuned(monkeypatch, tmp_path).returncode == 0
    assert logs(tmp_path) == ["measurements.1.jsonl", "measurements.2.jsonl", "measurements.jsonl"]
    assert (tmp_path / "measurements.1.jsonl").read_bytes() == first


def test_a_stopped_run_goes_on_but_not_under_other_conditions(tmp_path, monkeypatch):
    path = tmp_path / "measurements.jsonl"
    assert tuned(monkeypatch, tmp_path, fails="measure").returncode == 1
    before = path.read_bytes()
    other = replace(ENVIRONMENT, scale=0.5)
    result = tuned(monkeypatch, tmp_path, "--resume", environment=other)
    assert result.returncode == 2
    assert "measured with scale 1.0, this is 0.5" in " ".join(result.stderr.split())
    assert path.read_bytes() == before
    assert tuned(monkeypatch, tmp_path, "--resume").returncode == 0
    assert path.read_bytes().startswith(before)


def test_environments_are_mixed_only_on_request_and_the_result_says_so(tmp_path, monkeypatch):
    live = tmp_path / "live"
    path = live / "measurements.jsonl"
    assert tuned(monkeypatch, live, fails="measure").returncode == 1
    other = replace(ENVIRONMENT, scale=0.5, congestion_control="reno")
    resumed = tuned(monkeypatch, live, "--resume", "--mix-environments", environment=other)
    assert resumed.returncode == 0, resumed.stderr
    said = " ".join(resumed.stderr.split())
    assert "environments are mixed: scale, congestion_control differ" in said
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        validate("measurements", record)
    allowed = [r for r in records if r["kind"] == "mixed"]
    assert allowed == [{"kind": "mixed", "facts": ["scale", "congestion_control"]}]
    decision = json.loads((live / "decision.json").read_text())
    validate("decision", decision)
    assert decision["mixed"] == ["scale", "congestion_control"]
    assert "environments are mixed, as was asked for" in (live / "report.html").read_text()
    again = from_log(CLUSTER, path, tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert contents(live) == contents(tmp_path / "again")


def test_a_mixed_log_whose_user_did_not_ask_makes_no_table(tmp_path, monkeypatch):
    assert tuned(monkeypatch, tmp_path / "live").returncode == 0
    path = tmp_path / "mixed.jsonl"
    header, session, *rest = (tmp_path / "live" / "measurements.jsonl").read_text().splitlines()
    other = json.loads(session)
    other["environment"]["mpi_version"] = "9"
    text = "\n".join([header, session, json.dumps(other), *rest, ""])
    path.write_text(text)
    refused = from_log(CLUSTER, path, tmp_path / "no")
    assert refused.returncode == 2
    assert "mpi_version 0, this is 9" in " ".join(refused.stderr.split())
    assert not (tmp_path / "no").exists()
    words = ["tune", "--topology", CLUSTER, "--from-log", path, "--mix-environments"]
    asked = stagegen(*words, "--output", tmp_path / "yes")
    assert asked.returncode == 0, asked.stderr
    assert path.read_text() == text, "only the folder's own copy says what was asked for"
    own = tmp_path / "yes" / "measurements.jsonl"
    assert own.read_text() == text + '{"kind": "mixed", "facts": ["mpi_version"]}\n'
    assert json.loads((tmp_path / "yes" / "decision.json").read_text())["mixed"] == ["mpi_version"]
    assert from_log(CLUSTER, own, tmp_path / "again").returncode == 0
    assert contents(tmp_path / "yes") == contents(tmp_path / "again")


def test_a_routine_that_fails_is_reported_and_left_out_again_from_the_log(tmp_path, monkeypatch):
    result = tuned(monkeypatch, tmp_path / "live", deadly="pair")
    assert result.returncode == 0, result.stderr
    path = tmp_path / "live" / "measurements.jsonl"
    for line in path.read_text().splitlines():
        validate("measurements", json.loads(line))
    again = from_log(CLUSTER, path, tmp_path / "again")
    assert contents(tmp_path / "live") == contents(tmp_path / "again")
    said = "failed when timed, never chosen: alltoall pair on whole at 1 bytes: the job has ended"
    for one in (result, again):
        assert said in " ".join(one.stderr.split())
    report = " ".join((tmp_path / "again" / "report.html").read_text().split())
    assert "Failed when timed at 1 B, never chosen: pair: the job has ended" in report
