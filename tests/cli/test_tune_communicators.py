"""`stagegen tune --communicators`, from the topology file to calls on communicators of any kind."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

import stagegen.cli.tune as cli
from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.generate import Toolchain, run_make
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.launch.registry import make_launcher
from stagegen.topology import load_topology
from stagegen.tune import DecisionTable
from stagegen.tune.allowance import allowance
from stagegen.tune.decision import HOSTS
from stagegen.tune.shapes import Shape
from tests.cli.test_tune import stagegen
from tests.library.schemas import validate

pytestmark = pytest.mark.mpi

TOPOLOGY = """
name: two-switch
launcher: local
switches:
  s0: {hosts: "n[0-3]"}
  s1: {hosts: "n[4-6]"}
links:
  - {ends: [s0, s1]}
defaults: {bandwidth: 100Mbit, latency: 50us}
groups:
  left: "n[0-2]"
ranks: cyclic
"""

COMMUNICATORS = {"whole": 7, "left": 3, "per-switch": 2, "half": 4}

#: Few routines, as they all are compiled; with and without schedules, in depth-first order.
ROUTINES = {"flat", "binomial", "topology_linear", "topology_binary"}

#: Prints, of several communicators, the routine of each of some sizes, and makes the calls.
PROGRAM = """
#include <stdio.h>
#include <mpi.h>
#include "libcoll.h"

static void show(const char *name, int member, int key) {
    static char data[70000];
    int rank;
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, key, &comm);
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(comm, &rank);
    for (int bytes = 1; bytes < 70000; bytes *= 4) {
        const char *choice = libcoll_choice("bcast", bytes, comm);
        if (rank == 0)
            printf("%s %d %s\\n", name, bytes, choice);
        data[bytes - 1] = (char)(rank == 0 ? 7 : 0);
        MPI_Bcast(data, bytes, MPI_CHAR, 0, comm);
        if (data[bytes - 1] != 7)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    show("cluster", 1, -rank);
    show("left", LEFT, rank);
    show("five", rank != 1 && rank != 3, -rank);
    show("pair", rank > 4, rank);
    MPI_Finalize();
    return 0;
}
"""

#: What each of them is, and how many ranks it has.
WHO = {"cluster": ("cluster", 7), "left": ("group left", 3), "five": ("hosts", 5),
       "pair": ("hosts", 2)}  # fmt: skip


@dataclass(frozen=True)
class Tuned:
    topology: Path
    folder: Path
    decision: DecisionTable
    records: list


def few_routines(whole: Catalogue) -> Catalogue:
    kept = (a for a in whole.algorithms if a.name == "native" or a.name in ROUTINES)
    return replace(whole, algorithms=tuple(a for a in kept if a.collective == "bcast"))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("communicators")
    topology, output = folder / "two-switch.yaml", folder / "out"
    topology.write_text(TOPOLOGY)
    catalogue = few_routines(load_catalogue())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "load_catalogue", lambda **_: catalogue)
        words = ["tune", "--topology", topology, "--output", output, "--budget", "0"]
        words += ["--sizes", "1,4KiB", "--communicators", ",".join(COMMUNICATORS)]
        result = stagegen(*words)
        assert result.returncode == 0, result.stderr
        again = stagegen(*words[:3], "--from-log", output / "measurements.jsonl",
                         "--output", folder / "again")  # fmt: skip
        assert again.returncode == 0, again.stderr
    records = [json.loads(x) for x in (output / "measurements.jsonl").read_text().splitlines()]
    decision = json.loads((output / "decision.json").read_text())
    return Tuned(topology, output, DecisionTable.from_json(decision), records)


def test_every_communicator_was_checked_and_measured(tuned):
    assert tuned.records[0]["communicators"] == list(COMMUNICATORS)
    for what in ("check", "measurement"):
        found = {r["communicator"] for r in tuned.records if r["kind"] == what}
        assert found == set(COMMUNICATORS)
    assert not [r for r in tuned.records if r["kind"] == "check" and r["wrong"]]
    for record in tuned.records:
        validate("measurements", record)


@pytest.mark.parametrize("name", ["lab", "hydra", "openmpi", "slurm", "local"])
def test_only_hosts_that_are_machines_are_measured_at_once_unless_asked(name, tmp_path):
    asked = []
    topology = tmp_path / "two-switch.yaml"
    topology.write_text(TOPOLOGY)
    launcher = make_launcher(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "launcher_and_toolchain", lambda *_: (launcher, None, "asked for"))
        patch.setattr(cli, "measure", lambda *_, at_once: asked.append(at_once))
        for words in ([], ["--at-once"], ["--in-turn"]):
            result = stagegen("tune", "--topology", topology, "--budget", "20", *words)
            assert result.returncode == 0, result.stderr
    assert asked == [name not in ("lab", "local"), True, False]


#: Groups that share no link, and groups that do.
APART, CROSSED = "{left: [n0, n1], right: [n4, n5]}", "{one: [n0, n4], other: [n1, n5]}"


@pytest.mark.parametrize(
    ("name", "groups", "words", "limited"),
    [
        ("local", APART, [], True),
        ("hydra", "{}", [], True),
        ("hydra", CROSSED, [], True),
        ("hydra", APART, [], False),
        ("hydra", APART, ["--in-turn"], True),
        ("local", APART, ["--at-once"], False),
        ("local", "{}", ["--budget", "auto"], True),
        ("local", "{}", ["--budget", "20"], False),
    ],
)
def test_a_tuning_has_a_budget_unless_groups_are_timed_at_once(
    name, groups, words, limited, tmp_path
):
    asked = []
    file = tmp_path / "two-switch.yaml"
    document = yaml.safe_load(TOPOLOGY)
    document["groups"] = yaml.safe_load(groups)
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    launcher = make_launcher(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "launcher_and_toolchain", lambda *_: (launcher, None, "asked for"))
        patch.setattr(cli, "measure", lambda _, options, *__, **___: asked.append(options))
        result = stagegen("tune", "--topology", file, *words)
        assert result.returncode == 0, result.stderr
    (options,) = asked
    topology, catalogue = load_topology(file), load_catalogue()
    expected = allowance(topology, catalogue, replace(options, total=None)) if limited else None
    assert options.total == expected


@pytest.mark.parametrize(
    "words", [["--budget", "10m"], ["--timing", "imbalance:4"], ["--from-log", "x.jsonl"]]
)
def test_at_once_is_refused_where_groups_are_timed_in_turn(words, tmp_path):
    topology = tmp_path / "two-switch.yaml"
    topology.write_text(TOPOLOGY)
    result = stagegen("tune", "--topology", topology, "--at-once", *words)
    assert result.returncode == 2
    assert "--at-once" in result.stderr


def test_groups_that_share_nothing_are_timed_at_once(tmp_path):
    """The whole, which shares links with both, is not; the log alone decides the same."""
    topology, output = tmp_path / "two-switch.yaml", tmp_path / "out"
    topology.write_text(TOPOLOGY.replace("ranks:", '  right: "n[4-6]"\nranks:'))
    catalogue = few_routines(load_catalogue())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "load_catalogue", lambda **_: catalogue)
        words = ["--sizes", "1,4KiB", "--communicators", "whole,left,right", "--budget", "0"]
        result = stagegen("tune", "--topology", topology, "--output", output, "--at-once", *words)
        assert result.returncode == 0, result.stderr
        again = stagegen("tune", "--topology", topology, "--output", tmp_path / "again",
                         "--from-log", output / "measurements.jsonl")  # fmt: skip
        assert again.returncode == 0, again.stderr
    records = [json.loads(x) for x in (output / "measurements.jsonl").read_text().splitlines()]
    for record in records:
        validate("measurements", record)
    beside = {
        (r["communicator"], *r["beside"])
        for r in records
        if r["kind"] == "measurement" and "beside" in r
    }
    assert beside == {("left", "right"), ("right", "left")}
    decisions = [folder / "decision.json" for folder in (output, tmp_path / "again")]
    assert decisions[0].read_bytes() == decisions[1].read_bytes()


def test_routines_with_tables_are_only_candidates_where_they_have_them(tuned):
    """All candidates are checked; those that lost on other communicators are not timed."""
    checked = {
        (r["communicator"], r["routine"].split(":")[0])
        for r in tuned.records
        if r["kind"] == "check"
    }
    seen = {
        (r["communicator"], spec.split(":")[0])
        for r in tuned.records
        if r["kind"] == "measurement"
        for spec in r["seconds"]
    }
    assert {one for one in seen if one[1] != "native"} <= checked
    assert {name for name, routine in seen if routine == "topology_binary"} == {"whole", "left"}
    assert {name for name, routine in checked if routine == "topology_binary"} == {"whole", "left"}
    assert {name for name, routine in checked if routine == "topology_linear"} == set(COMMUNICATORS)


def test_the_decision_has_tables_for_all_shapes(tuned):
    validate("decision", tuned.decision.to_json())
    tables = [
        (t.communicator, t.ranks, t.hosts.first, t.hosts.last, t.confirmed)
        for t in tuned.decision.tables
    ]
    assert tables == [
        ("cluster", 7, 7, 7, True),
        ("group left", 3, 3, 3, True),
        *(("hosts", n, n, n, True) for n in (2, 3, 4, 7)),
        *(("hosts", *one, False) for one in [(2, 2, 2), (3, 3, 3), (4, 4, 5), (7, 6, None)]),
        *(("other", *one, False) for one in [(2, 2, 2), (3, 3, 3), (4, 4, 5), (7, 6, 14)]),
    ]


def test_the_log_alone_decides_the_same(tuned):
    again = tuned.folder.parent / "again"
    assert (again / "decision.json").read_bytes() == (tuned.folder / "decision.json").read_bytes()
    assert (again / "src/rules.c").read_bytes() == (tuned.folder / "src/rules.c").read_bytes()


def test_the_report_has_every_communicator_and_the_rule_between_them(tuned):
    text = " ".join((tuned.folder / "report.html").read_text().split())
    assert "bcast on 4 ranks: half" in text
    assert "The ranks of the group left, in any order" in text
    own, near = (
        table.rules
        for table in tuned.decision.tables
        if (table.communicator, table.shape) == (HOSTS, Shape(7, 1))
    )
    told = "measured with 7x1, else predicted and not confirmed"
    if own != near:  # a small gain is for the measured shape alone
        assert "1 ranks on each of 7 hosts: measured<" in text
        told = "predicted from 7x1, not confirmed"
    assert f"1 or more ranks on each of 6 or more hosts: {told}" in text
    assert "predicted from 7x1 on the cluster, not confirmed" in text
    assert "at most 2 times as many or as few hosts" in text


def test_the_library_serves_each_communicator_as_decided(tuned, tmp_path):
    topology = load_topology(tuned.topology)
    left = [f"rank == {r}" for r, host in enumerate(topology.ranks) if host in ("n0", "n1", "n2")]
    run_make(tuned.folder, Toolchain.find(), "libcoll.a")
    (tmp_path / "main.c").write_text(PROGRAM.replace("LEFT", " || ".join(left)))
    command = [Toolchain.find().mpicc, "-std=c11", "-Wall", "-Wextra", "-Werror", "main.c"]
    command += [f"-I{tuned.folder / 'include'}", "-o", "main", str(tuned.folder / "libcoll.a")]
    subprocess.run([*command, "-pthread"], cwd=tmp_path, check=True, timeout=120)
    answers = run(tmp_path / "main", topology, tmp_path / "answers")
    assert answers == {
        (name, size, tuned.decision.table("bcast", kind, Shape(ranks, 1)).choice(size).algorithm)
        for name, (kind, ranks) in WHO.items()
        for size in (4**k for k in range(9))
    }


def run(program: Path, topology, output: Path) -> set[tuple[str, int, str]]:
    job = Job((str(program),), {"LIBCOLL_PLACEMENT": "rank"})
    with output.open("wb") as out:
        job = replace(job, streams=Streams(subprocess.DEVNULL, out, subprocess.STDOUT))
        with LocalLauncher().start(job, topology) as running:
            status = running.wait(120)
    text = output.read_text()
    assert status == os.EX_OK, text
    rows = (line.split() for line in text.splitlines())
    return {(name, int(size), choice) for name, size, choice in rows}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("everyone", "unknown communicator 'everyone'; choose from whole, left, per-switch"),
        ("whole,7", "or a number from 2 to 6"),
        ("", "unknown communicator ''"),
    ],
)
def test_wrong_names_are_a_usage_error(tmp_path, names, message):
    (tmp_path / "t.yaml").write_text(TOPOLOGY)
    words = ["tune", "--topology", tmp_path / "t.yaml", "--output", tmp_path / "out"]
    result = stagegen(*words, "--communicators", names)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()
