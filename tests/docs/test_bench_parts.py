"""The parts of ``make bench``: what is measured once stays, and what it is of is known."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from docs.tools.bench import parts
from docs.tools.bench.kept import read_kept
from docs.tools.bench.parts import Part
from docs.tools.bench.plan import CLUSTERS, FIXED, KIB
from docs.tools.bench.results import results
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

    def __call__(self, line, check, stdout, env):
        words = line[line.index("stagegen") + 1 :]
        self.asked.append(words)
        self.congestion.add(env["STAGEGEN_LAB_CONGESTION"])
        answer = getattr(self, words[0])(dict(zip(words[1::2], words[2::2], strict=False)))
        return subprocess.CompletedProcess(line, 0, json.dumps(answer).encode())

    def tune(self, options):
        folder = Path(options["--output"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "decision.json").write_text(self.decides)
        (folder / "measurements.jsonl").write_text("")

    def bench(self, options):
        sizes = map(int, options["--sizes"].split(","))
        name = options["--collectives"]
        return {"environment": ENVIRONMENT.to_json(), "rows": [self.row(name, s) for s in sizes]}

    def row(self, name, size):
        return {
            "collective": name, "size": size, "native_s": 2.0, "tuned_s": 1.0, "bound_s": 0.9,
            "native_interval_s": [1.9, 2.1], "tuned_interval_s": [0.9, 1.1], "repetitions": 9,
            "routine": "ring", "speedup": 2.0,
        }  # fmt: skip

    def compare(self, options):
        size = int(options["--sizes"])
        rows = [
            {"size": size, "routine": spec, "median_s": 1.0, "interval_s": [1.0, 1.0],
             "over_bound": 1.1, "repetitions": 1, "seconds": [1.0]}
            for spec in options["--algorithms"].split(",")
        ]  # fmt: skip
        return {"environment": ENVIRONMENT.to_json(), "rows": rows}

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
    seen = {32 * KIB: {Candidate(name): Sample((1.0,)) for name in ("aapc_none", "ring")}}
    monkeypatch.setattr(parts, "samples_of", lambda log, topology: seen)
    return fake


def kept(part: Part):
    return read_kept(part.cluster.name, part.congestion)


def test_a_part_is_measured_once(stagegen):
    part = Part(RANDOM, "cubic", "allgather")
    part.measure()
    assert stagegen.commands() == ["tune", "bench"]
    assert stagegen.congestion == {"cubic"}
    part.measure()
    assert stagegen.commands() == []
    part.measure(anew=True)
    assert stagegen.commands() == ["tune", "bench"]


def test_another_machine_measures_only_what_is_not_kept(stagegen):
    Part(RANDOM, "cubic", "allgather").measure()
    shutil.rmtree("generated")
    stagegen.commands()
    Part(RANDOM, "cubic", "allgather").measure()
    assert stagegen.commands() == []
    Part(RANDOM, "cubic", "bcast").measure()
    assert stagegen.commands() == ["tune", "bench"]
    rows = kept(Part(RANDOM, "cubic", "bcast")).rows()
    assert [row.collective for row in rows] == ["allgather", "bcast"]


def test_what_other_routines_or_a_page_brought_is_measured_again(stagegen, monkeypatch):
    part = Part(RANDOM, "bbr", "allgather")
    part.measure()
    assert [row.size for row in kept(part).rows()] == [64 * KIB]
    stagegen.commands()
    stagegen.decides = "another"
    monkeypatch.setattr(Part, "_routines", lambda self: "others")
    part.measure()
    assert stagegen.commands() == ["tune --resume", "bench"]
    part.measure()
    assert stagegen.commands() == []
    lines = [{**line, "carried": True} for line in kept(part).form["rows"]]
    kept(part).with_lines("rows", lines).write()
    part.measure()
    assert stagegen.commands() == ["tune --resume", "bench"]
    assert not any("carried" in line for line in kept(part).form["rows"])


def test_a_part_that_was_stopped_goes_on(stagegen, monkeypatch):
    part = Part(RANDOM, "cubic", "alltoall")
    compare = stagegen.compare
    monkeypatch.setattr(stagegen, "compare", lambda options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        part.measure()
    assert stagegen.commands() == ["tune", "bench", "compare"]
    assert [row.size for row in kept(part).rows()] == list(SIZES)
    assert kept(part).meetings() == ()
    monkeypatch.setattr(stagegen, "compare", compare)
    part.measure()
    assert stagegen.commands() == ["tune --resume", *["compare"] * len(SIZES)]


def test_families_meet_at_every_size_of_alltoall(stagegen):
    part = Part(RANDOM, "cubic", "alltoall")
    part.measure()
    assert stagegen.commands() == ["tune", "bench", *["compare"] * len(SIZES)]
    assert [meeting.size for meeting in kept(part).meetings()] == list(SIZES)


def test_results_are_of_what_is_there(stagegen):
    assert results() == ()
    Part(RANDOM, "bbr", "bcast").measure()
    (one,) = results()
    assert (one.cluster, one.congestion) == (RANDOM.name, "bbr")
    assert one.ranks == RANDOM.topology().rank_count
    assert [row.collective for row in one.rows] == ["bcast"]
    Part(RANDOM, "cubic", "alltoall").measure()
    Part(RANDOM, "cubic", "allgather").measure()
    cubic, bbr = results()
    assert (cubic.congestion, bbr) == ("cubic", one)
    assert [row.collective for row in cubic.rows] == ["allgather", *["alltoall"] * len(SIZES)]
    assert len(cubic.meetings) == len(SIZES)
