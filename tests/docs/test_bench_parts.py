"""The parts of ``make bench``: tuned together, and what is measured once stays."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.tools.bench import __main__ as program
from docs.tools.bench import parts
from docs.tools.bench.kept import read_kept
from docs.tools.bench.parts import Part, Tuning
from docs.tools.bench.plan import CATALOGUE, CLUSTERS, FIXED, KIB
from docs.tools.bench.results import results
from docs.tools.bench.rows import Launches
from stagegen.errors import MeasurementError
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.measure.records import Candidate
from stagegen.tune.field import Sample
from tests.measure.fakes import ENVIRONMENT

RANDOM = next(cluster for cluster in CLUSTERS.values() if cluster is not FIXED)
SIZES = (32 * KIB, 64 * KIB, 256 * KIB)


class Stagegen:
    """Answers in place of the command; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.congestion: set[str] = set()
        self.decides = "something"
        self.tuned_s = 1.0
        self.launched: list[tuple[str, list[tuple[str, int]]]] = []

    def __call__(self, line, check, stdout, env):
        words = line[line.index("stagegen") + 1 :]
        self.asked.append(words)
        self.congestion.add(env["STAGEGEN_LAB_CONGESTION"])
        answer = getattr(self, words[0])(dict(zip(words[1::2], words[2::2], strict=False)))
        return subprocess.CompletedProcess(line, 0, json.dumps(answer).encode())

    def tune(self, options):
        folder = Path(options["--output"])
        folder.mkdir(parents=True, exist_ok=True)
        names = options["--collectives"].split(",")
        tables = [{"collective": name, "rules": self.decides} for name in names]
        (folder / "decision.json").write_text(json.dumps({"tables": tables}))
        (folder / "measurements.jsonl").write_text("")

    def bench(self, options):
        sizes = map(int, options["--sizes"].split(","))
        name = options["--collectives"]
        return {"environment": ENVIRONMENT.to_json(), "rows": [self.row(name, s) for s in sizes]}

    def row(self, name, size):
        return {
            "collective": name, "size": size, "native_s": 2.0, "tuned_s": self.tuned_s,
            "bound_s": 0.9, "native_interval_s": [1.9, 2.1], "tuned_interval_s": [0.9, 1.1],
            "repetitions": 9, "routine": "ring", "speedup": 2.0,
        }  # fmt: skip

    def compare(self, options):
        size = int(options["--sizes"])
        rows = [
            {"size": size, "routine": spec, "median_s": 1.0, "interval_s": [1.0, 1.0],
             "over_bound": 1.1, "repetitions": 1, "seconds": [1.0]}
            for spec in options["--algorithms"].split(",")
        ]  # fmt: skip
        return {"environment": ENVIRONMENT.to_json(), "rows": rows}

    def launch(self, cluster, library, points):
        self.launched.append((os.environ[CONGESTION_VARIABLE], list(points)))
        run = str(len(self.launched))
        return {point: Launches(run, (2.0,) * 5, (1.0,) * 5) for point in points}

    def commands(self) -> list[str]:
        """Return what was asked for since the last time."""
        commands = [words[0] + " --resume" * ("--resume" in words) for words in self.asked]
        self.asked.clear()
        return commands


@pytest.fixture
def stagegen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stagegen:
    """A fake command, in an empty folder."""
    fake = Stagegen()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parts.subprocess, "run", fake)
    monkeypatch.setattr(parts, "launch", fake.launch)
    seen = {32 * KIB: {Candidate(name): Sample((1.0,)) for name in ("aapc_none", "ring")}}
    monkeypatch.setattr(parts, "samples_of", lambda log, topology: seen)
    return fake


def tuning(*collectives: str, congestion: str = "cubic") -> Tuning:
    """A tuning on a random cluster."""
    return Tuning(RANDOM, congestion, collectives)


def kept(congestion: str = "cubic"):
    return read_kept(RANDOM.name, congestion)


def together(congestion: str = "cubic") -> dict[str, set[str]]:
    """Return what each collective's rows say they were tuned with."""
    lines = kept(congestion).form["rows"]
    names = {line["collective"] for line in lines}
    return {n: {line["together"] for line in lines if line["collective"] == n} for n in names}


def test_collectives_are_tuned_together_and_compared_one_by_one(stagegen):
    tuning("allreduce", "bcast", "reduce").measure()
    (tuned, *compared) = stagegen.asked
    assert tuned[0] == "tune"
    assert tuned[tuned.index("--collectives") + 1] == "allreduce,bcast,reduce"
    assert [words[words.index("--collectives") + 1] for words in compared] == [
        "allreduce", "bcast", "reduce",
    ]  # fmt: skip
    folders = {words[words.index("--library") + 1] for words in compared}
    assert folders == {tuned[tuned.index("--output") + 1]}
    joint = {"allreduce+bcast+reduce"}
    assert together() == {"allreduce": joint, "bcast": joint, "reduce": joint}


def test_a_whole_run_tunes_all_collectives_of_a_cluster_once(stagegen):
    asked = argparse.Namespace(clusters=(), congestion=("bbr",), collectives=())
    tunings = program._tunings(asked)
    assert [one.cluster for one in tunings] == list(CLUSTERS.values())
    (fixed,) = [one for one in tunings if one.cluster is FIXED]
    assert (fixed.name, fixed.collectives) == ("all", CATALOGUE.collectives)
    named = argparse.Namespace(
        clusters=(RANDOM.name,), congestion=("bbr",), collectives=("reduce", "bcast")
    )
    assert [one.name for one in program._tunings(named)] == ["bcast+reduce"]


def test_a_part_is_measured_once(stagegen):
    tuning("allgather").measure()
    assert stagegen.commands() == ["tune", "bench"]
    assert stagegen.congestion == {"cubic"}
    tuning("allgather").measure()
    assert stagegen.commands() == []
    tuning("allgather").measure(anew=True)
    assert stagegen.commands() == ["tune", "bench"]


def test_another_machine_measures_only_what_is_not_kept(stagegen):
    tuning("allgather").measure()
    shutil.rmtree("generated")
    stagegen.commands()
    tuning("allgather").measure()
    assert stagegen.commands() == []
    tuning("barrier").measure()
    assert stagegen.commands() == ["tune", "bench"]
    assert [row.collective for row in kept().rows()] == ["allgather", "barrier"]


def test_what_was_tuned_without_its_parts_is_measured_again_with_them(stagegen):
    tuning("alltoallv").measure()
    tuning("allreduce").measure()
    stagegen.commands()
    tuning("allreduce", "alltoallv", "bcast").measure()
    assert stagegen.commands() == ["tune", "bench", "bench"], "alltoallv is made of nothing else"
    joint = "allreduce+alltoallv+bcast"
    assert together() == {"allreduce": {joint}, "alltoallv": {"alltoallv"}, "bcast": {joint}}
    tuning("allreduce").measure()
    assert stagegen.commands() == [], "what was tuned with more is as good"


def test_what_other_routines_or_a_page_brought_is_measured_again(stagegen, monkeypatch):
    one = tuning("allgather", congestion="bbr")
    one.measure()
    assert [row.size for row in kept("bbr").rows()] == [64 * KIB]
    stagegen.commands()
    monkeypatch.setattr(Part, "_routines", lambda self: "others")
    one.measure()
    assert stagegen.commands() == ["tune --resume", "bench"]
    one.measure()
    assert stagegen.commands() == []
    lines = [{**line, "carried": True} for line in kept("bbr").form["rows"]]
    kept("bbr").with_lines("rows", lines).write()
    one.measure()
    assert stagegen.commands() == ["tune --resume", "bench"]
    assert not any("carried" in line for line in kept("bbr").form["rows"])


def test_results_depend_on_routines_of_parts(monkeypatch):
    hashes = {
        name: Part(tuning(name), name)._routines() for name in ("allreduce", "alltoallv", "bcast")
    }
    changed = {**CATALOGUE.hashes, "reduce/flat": "another"}
    monkeypatch.setattr(type(CATALOGUE), "hashes", property(lambda self: changed))
    differ = {name for name, one in hashes.items() if Part(tuning(name), name)._routines() != one}
    assert differ == {"allreduce"}


def test_a_run_that_was_stopped_goes_on(stagegen, monkeypatch):
    compare = stagegen.compare
    monkeypatch.setattr(stagegen, "compare", lambda options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tuning("alltoall", "bcast").measure()
    assert stagegen.commands() == ["tune", "bench", "compare"]
    assert [row.size for row in kept().rows()] == list(SIZES)
    assert kept().meetings() == ()
    monkeypatch.setattr(stagegen, "compare", compare)
    tuning("alltoall", "bcast").measure()
    assert stagegen.commands() == ["tune --resume", *["compare"] * len(SIZES), "bench"]


def test_families_meet_at_every_size_of_alltoall(stagegen):
    tuning("alltoall").measure()
    assert stagegen.commands() == ["tune", "bench", *["compare"] * len(SIZES)]
    assert [meeting.size for meeting in kept().meetings()] == list(SIZES)


def test_what_is_slow_in_one_job_is_launched_again_once(stagegen):
    tuning("bcast").measure()
    assert stagegen.launched == [], "nothing is slow"
    stagegen.tuned_s = 3.0
    before = os.environ.get(CONGESTION_VARIABLE)
    for _ in range(2):
        tuning("allgather", "gather", congestion="bbr").measure()
    points = [("allgather", 64 * KIB), ("gather", 64 * KIB)]
    assert stagegen.launched == [("bbr", points)]
    assert os.environ.get(CONGESTION_VARIABLE) == before
    assert [row.judged_speedup for row in kept("bbr").rows()] == [2, 2]
    assert [row.speedup for row in kept("bbr").rows()] == [pytest.approx(2 / 3)] * 2


def test_what_is_measured_anew_is_launched_anew_with_all_that_is_suspect(stagegen):
    stagegen.tuned_s = 3.0
    one = tuning("allgather", "gather")
    one.measure()
    Part(one, "gather").measure(anew=True)
    assert [row.launches is None for row in kept().rows()] == [False, True]
    one.measure()
    ((_, first), (_, again)) = stagegen.launched
    assert first == again == [("allgather", 64 * KIB), ("gather", 64 * KIB)]


def test_launches_of_what_another_library_served_stay(stagegen):
    stagegen.tuned_s = 3.0
    for _ in range(2):
        tuning("gather").measure()
        tuning("bcast", "reduce").measure()
    own = [points for _, points in stagegen.launched]
    assert own == [[("gather", 64 * KIB)], [("bcast", 9 * 64 * KIB), ("reduce", 9 * 64 * KIB)]]
    runs = [row.launches.run for row in kept().rows()]
    assert runs == ["2", "1", "2"]


def test_a_further_launch_that_fails_ends_the_program_with_what_failed(
    stagegen, monkeypatch, capsys
):
    def fails(*of):
        raise MeasurementError("the job ended")

    stagegen.tuned_s = 3.0
    monkeypatch.setattr(parts, "launch", fails)
    words = ["bench", "--clusters", RANDOM.name, "--congestion", "bbr", "--collectives", "bcast"]
    monkeypatch.setattr(sys, "argv", words)
    assert program.main() == 1
    assert "error: the job ended\n" in capsys.readouterr().err


def test_what_was_compared_with_another_library_is_not_launched_again(stagegen, monkeypatch):
    stagegen.tuned_s = 3.0
    monkeypatch.setattr(parts, "launch", lambda *of: 1 / 0)
    one = tuning("bcast")
    with pytest.raises(ZeroDivisionError):
        one.measure()
    table = {"collective": "bcast", "rules": "others"}
    (one.folder / "decision.json").write_text(json.dumps({"tables": [table]}))
    one.measure()
    shutil.rmtree(one.folder)
    one.measure()
    assert [row.judged_speedup for row in kept().rows()] == [pytest.approx(2 / 3)]


def test_what_intercepting_costs_is_measured_once_and_in_place_of_the_pages(stagegen, monkeypatch):
    asked: list[Path] = []
    monkeypatch.setattr(parts, "measure_overhead", lambda folder: asked.append(folder) or {"b": 2})
    one = tuning("bcast")
    kept().with_lines("overheads", [{"collective": "a", "ns": 9, "carried": True}]).write()
    parts.keep_overhead(one)
    assert asked == [], "there is no library"
    one.measure()
    for _ in range(2):
        parts.keep_overhead(one)
    assert asked == [one.folder]
    assert kept().overheads() == {"b": 2}
    parts.keep_overhead(one, anew=True)
    assert asked == [one.folder] * 2


def test_results_are_of_what_is_there(stagegen):
    assert results() == ()
    tuning("bcast", congestion="bbr").measure()
    (one,) = results()
    assert (one.cluster, one.congestion) == (RANDOM.name, "bbr")
    assert one.ranks == RANDOM.topology().rank_count
    assert [row.collective for row in one.rows] == ["bcast"]
    tuning("allgather", "alltoall").measure()
    cubic, bbr = results()
    assert (cubic.congestion, bbr) == ("cubic", one)
    assert [row.collective for row in cubic.rows] == ["allgather", *["alltoall"] * len(SIZES)]
    assert len(cubic.meetings) == len(SIZES)
