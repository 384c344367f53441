"""``stagegen reconfigure`` on a model of the times: its log, its rule, and how it goes on."""

from __future__ import annotations

import json
import random
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from stagegen.adaptive.known import NOTHING_KNOWN
from stagegen.audit import audit_folder
from stagegen.catalogue import load_catalogue
from stagegen.catalogue.algorithm import NATIVE
from stagegen.catalogue.selection import Selection
from stagegen.cli import _reconfigure_live, _reconfigure_rule, reconfigure
from stagegen.errors import InputError
from stagegen.inspection.parts import SlowestRank
from stagegen.inspection.stages import CORE, LATENCY, Stage
from stagegen.library import write_library
from stagegen.measure.launch import registry
from stagegen.measure.records import Candidate
from stagegen.parts.trees import algorithm_of
from stagegen.report.units import format_seconds
from stagegen.topology import load_topology
from stagegen.trees import make_tree, read_tree, shape_of, tree_yaml
from stagegen.trees.cost import node_seconds, seconds_up
from stagegen.tune.decision import CLUSTER, NATIVE_CANDIDATE, DecisionTable, Rule, Table
from stagegen.tune.reconfigure import Timed
from stagegen.tune.reconfigure import reconfigure as steps_of_search
from stagegen.tune.reconfigure_steps import Nodes, Setup
from tests.library.schemas import validate
from tests.measure.fakes import ENVIRONMENT
from tests.trees.made import damaged

FILE = "topologies/slots-4x2x2.yaml"
TOPOLOGY = load_topology(FILE)


def cost(tree):
    """A model in which a node's time grows with the square of its contributors."""
    return seconds_up(tree, {n.name: len(n.contributors) ** 2 * 1e-6 for n in tree.nodes})


class Model(Timed):
    """Things whose times are known."""

    def __init__(self, seconds, is_representative=False):
        self.seconds, self.is_representative = seconds, is_representative

    def look(self):
        return [(one,) * 4 for one in self.seconds]

    def launch(self, _, places):
        return [(self.seconds[i],) * 9 for i in places]


@pytest.fixture
def made(monkeypatch):
    """What was measured; in the search by the model, in the last race as it says itself."""
    found = {"looks": [], "nodes": [], "representative": False, NATIVE: 1.0}
    found |= {algorithm_of("reconfigured"): 1e-6, algorithm_of("second"): 1e-7}

    class Bed(_reconfigure_live.Bed):
        def look(self, setups):
            found["looks"].append(setups)
            return Model([cost(one.tree) * (0.9 if one.on_host == 2 else 1) for one in setups])

        def timed(self, _, candidates):
            found["raced"] = [one.spec for one in candidates]
            return Model([found[one.algorithm] for one in candidates], found["representative"])

        def nodes(self, setup):
            found["nodes"].append(setup)
            parts = {"core": cost(setup.tree)}
            return Nodes(node_seconds(TOPOLOGY, setup.tree), measured=True, parts=parts)

        def explain(self, setups):
            core = Stage(CORE, CORE, 0, LATENCY, 0)
            return [[SlowestRank(cost(one.tree), ((core, cost(one.tree)),))] for one in setups]

    monkeypatch.setattr(reconfigure, "Bed", Bed)
    return found


def run(folder, *options, topology=FILE, launcher="local"):
    start = folder / "start.tree.yaml"
    start.write_text(tree_yaml(make_tree(TOPOLOGY, shape_of("nary"), "start")))
    words = ["--topology", topology, "--launcher", launcher, "--tree", start, "--output", folder]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_LAUNCHERS", dict(registry._LAUNCHERS))
        done = CliRunner().invoke(reconfigure.command, [*map(str, words), *options])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    header, *steps = map(json.loads, (folder / "steps.jsonl").read_text().splitlines())
    return done.output, header, steps


def test_a_search_ends_with_a_faster_tree_and_resumes(tmp_path, made):
    said, header, steps = run(tmp_path, "--steps", "48")
    assert (header["collective"], header["size"]) == ("allreduce", 4)
    assert (header["launcher"], header["mpi"]) == ("local", "mpich")
    assert [one["step"] for one in steps] == list(range(1, len(steps) + 1))
    kept = [one for step in steps for one in step["tried"] if one["accepted"]]
    result = read_tree(tmp_path / "result.tree.yaml", TOPOLOGY)
    assert tree_yaml(result.renamed("start")) == kept[-1]["after"]["tree"]
    assert all(one["ratio"] < 0.97 for one in kept)
    assert kept[-1]["after"]["on_host"] == 2
    assert all("µs, measured" in t["why"] for s in steps for t in s["tried"] if t["node"])
    assert len(made["nodes"]) == len(kept) + 1
    start = read_tree(tmp_path / "start.tree.yaml", TOPOLOGY)
    gain = json.loads((tmp_path / "gain.json").read_text())
    validate("reconfigure-gain", gain)
    for key, tree in (("first", start), ("last", result)):
        assert gain[f"{key}_s"]["core"] == gain[f"{key}_s"]["the call"] == cost(tree)
        stages = {"core": cost(tree), "before and after the tree": 0.0, "the call": cost(tree)}
        assert gain[f"{key}_stages_s"] == stages
    assert gain["last_s"]["core"] < gain["first_s"]["core"]
    first, last = (format_seconds(cost(tree)) for tree in (start, result))
    told = [line.split() for line in said.splitlines() if line.startswith("core ")]
    assert told == [["core", *first.split(), *last.split()]] * 2, "by parts, and by stages"
    whole = (tmp_path / "steps.jsonl").read_text()
    cut = whole.splitlines(keepends=True)
    (tmp_path / "steps.jsonl").write_text("".join(cut[:3]) + cut[3][:20])
    looks = len(made["looks"])
    run(tmp_path, "--steps", "48", "--resume")
    assert (tmp_path / "steps.jsonl").read_text() == whole
    assert len(made["looks"]) - looks == len(steps) - 2


def test_a_search_resumes_with_more_steps(tmp_path, made):
    """The last batch was cut: it is tried whole, and the log is that of a search in one go."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    _, _, steps = run(whole, "--steps", "48")
    _, _, cut = run(parts, "--steps", "12")
    assert [len(one["tried"]) for one in cut] == [8, 4]
    assert run(parts, "--steps", "48", "--resume")[2] == steps
    looks = len(made["looks"])
    run(parts, "--steps", "48", "--resume")
    assert len(made["looks"]) == looks
    assert (parts / "steps.jsonl").read_text() == (whole / "steps.jsonl").read_text()


def test_the_result_is_a_rule_with_its_origin(tmp_path, made):
    said, _, steps = run(tmp_path, "--steps", "16")
    race = json.loads((tmp_path / "rule.json").read_text())
    validate("reconfigure-rule", race)
    kept = [one for step in steps for one in step["tried"] if one["accepted"]]
    found = f"{algorithm_of('reconfigured')}:on_host={kept[-1]['after']['on_host']}"
    assert (race["routine"], race["rule"]) == (found, True)
    assert race["against"] == [{"routine": NATIVE, "ratio": 1e-6, "faster": True}]
    assert race["raced_s"] == {
        name: {str(launch): [seconds] * 9 for launch in range(1, 6)}
        for name, seconds in ((found, 1e-6), (NATIVE, 1.0))
    }
    folder = tmp_path / "library"
    decision = json.loads((folder / "decision.json").read_text())
    (table,) = decision["tables"]
    zero, rule, rest = table["rules"]
    assert (zero["algorithm"], rest["algorithm"], rest["from"]) == (NATIVE, NATIVE, 5)
    assert (rule["from"], rule["to"]) == (4, 4)
    assert rule["algorithm"] == algorithm_of("reconfigured")
    origin = rule["reconfigured"]
    changes = [one["change"] for one in kept]
    assert (origin["began"], origin["kept"], origin["tried"]) == ("start", changes, 16)
    assert (origin["instead_of"], origin["instead_of_seconds"]) == (NATIVE, 1.0)
    assert "a rule for allreduce of 4 bytes" in said
    assert f"allreduce_{algorithm_of('reconfigured')}" in {p.routine for p in audit_folder(folder)}


def test_a_folder_gets_the_rule_beside_its_own(tmp_path, made):
    run(tmp_path, "--steps", "8")
    folder = tmp_path / "library"
    (folder / "report.html").write_text("the old table")
    said, *_ = run(tmp_path, "--steps", "8", "--library", str(folder), "--name", "second")
    assert "report.html: removed" in said
    assert not (folder / "report.html").exists()
    (table,) = json.loads((folder / "decision.json").read_text())["tables"]
    _, rule, _ = table["rules"]
    before, now = algorithm_of("reconfigured"), algorithm_of("second")
    assert rule["algorithm"] == now
    assert [one["algorithm"] for one in rule["alternatives"]] == [before, NATIVE]
    assert rule["reconfigured"]["instead_of"].startswith(before)
    with pytest.raises(
        InputError,
        match="library: --name 'second' becomes allreduce/config",
    ):
        run(tmp_path, "--library", str(folder), "--name", "second")


def test_files_name_the_command_that_made_them(tmp_path, made):
    folder = tmp_path / "library"
    own = "stagegen reconfigure --topology topology.yaml --tree start.tree.yaml"
    for options, rest in (
        ((), "--collective allreduce --size 4 --name reconfigured"),
        (
            ("--library", str(folder), "--name", "second", "--collective", "barrier"),
            "--collective barrier --name second --library .",
        ),
    ):
        run(tmp_path, "--steps", "8", *options)
        assert json.loads((folder / "manifest.json").read_text())["command"] == f"{own} {rest}"
        text = re.sub(r"\s+(\* +)?", " ", (folder / "src" / "dispatch.c").read_text())
        assert f"Made by: {own} {rest} " in text
        for file in filter(Path.is_file, folder.rglob("*")):
            assert "from-log measurements" not in file.read_text()
            assert str(tmp_path) not in file.read_text()


def tuned_library(folder, algorithms):
    """Write a library of a catalogue with these algorithms, whose allreduces are recursive."""
    catalogue = replace(load_catalogue(), algorithms=tuple(algorithms))
    rules = (Rule(0, Candidate("recursive_doubling")),)
    hosts = len(set(TOPOLOGY.ranks))
    table = Table.exactly("allreduce", CLUSTER, TOPOLOGY.rank_count, hosts, rules)
    decision = DecisionTable(TOPOLOGY.name, TOPOLOGY.hash, catalogue.hash, False, (table,))
    write_library(folder, TOPOLOGY, catalogue, decision, {})
    return folder


def test_an_algorithm_that_was_added_since_is_no_obstacle(tmp_path, made):
    made["recursive_doubling"] = 1.0
    before = [one for one in load_catalogue().algorithms if one.full_name != "alltoall/ring"]
    folder = tuned_library(tmp_path / "tuned", before)
    said, *_ = run(tmp_path, "--steps", "8", "--library", str(folder))
    assert "a rule for allreduce of 4 bytes" in said


def test_a_routine_of_the_library_that_has_changed_since_is_named(tmp_path, made):
    name = "allreduce/recursive_doubling"
    every = load_catalogue().algorithms
    other = [replace(one, hash="0" * 64) if one.full_name == name else one for one in every]
    folder = tuned_library(tmp_path / "tuned", other)
    with pytest.raises(InputError, match=f"changed since they were measured: {name}; measure"):
        run(tmp_path, "--library", str(folder))
    assert not made["looks"]


def test_calls_that_adapt_try_the_same_algorithms_as_before(tmp_path, made):
    folder, whole = tmp_path / "tuned", load_catalogue()
    few = Selection(algorithms=("allreduce/recursive_doubling",))
    hosts = len(set(TOPOLOGY.ranks))
    rules = (Rule(0, NATIVE_CANDIDATE),)
    table = Table.exactly("allreduce", CLUSTER, TOPOLOGY.rank_count, hosts, rules)
    decision = DecisionTable(TOPOLOGY.name, TOPOLOGY.hash, whole.hash, False, (table,))
    write_library(folder, TOPOLOGY, whole.selecting(few), decision, {}, NOTHING_KNOWN)

    def routines():
        return {one.routine for one in whole.algorithms if (source(one)).is_file()}

    def source(algorithm):
        return folder / "src" / f"{algorithm.routine}.c"

    before, known = routines(), (folder / "known.json").read_text()
    assert "allreduce_recursive_doubling" in before
    run(tmp_path, "--steps", "8", "--library", str(folder))
    assert (folder / "known.json").read_text() == known
    assert routines() == before
    assert (folder / "src" / f"allreduce_{algorithm_of('reconfigured')}.c").is_file()


OWN = """
from dataclasses import dataclass, replace

from stagegen.measure.launch.local import LocalLauncher


@dataclass(frozen=True)
class Own(LocalLauncher):
    name: str = "own"

    def environment(self, topology, mpi="mpich"):
        return replace(super().environment(topology, mpi), representative=True)
"""


@pytest.fixture
def cluster(tmp_path):
    """The topology, with a user's own launcher beside it that starts ranks on the cluster."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    (folder / "stagegen.yaml").write_text("launchers: {own: own.py:Own}\n")
    (folder / "own.py").write_text(OWN)
    file = folder / "cluster.yaml"
    file.write_text(Path(FILE).read_text())
    return file


def representative(folder):
    return json.loads((folder / "decision.json").read_text())["representative"]


def test_a_launcher_of_stagegen_yaml_is_known(tmp_path, made, cluster):
    made["representative"] = True
    run(tmp_path, "--steps", "8", topology=cluster, launcher="own")
    assert representative(tmp_path / "library")


def test_a_table_of_the_cluster_gets_no_rule_from_elsewhere(tmp_path, made, cluster):
    run(tmp_path, "--steps", "8")
    folder = tmp_path / "library"
    assert not representative(folder)
    file = folder / "decision.json"
    file.write_text(file.read_text().replace('"representative": false', '"representative": true'))
    looks, options = len(made["looks"]), ("--library", str(folder), "--name", "second")
    with pytest.raises(InputError, match="local does not measure it; give another --launcher"):
        run(tmp_path, "--steps", "8", *options)
    assert len(made["looks"]) == looks
    assert representative(folder)
    said, *_ = run(tmp_path, "--steps", "8", *options, topology=cluster, launcher="own")
    assert "not representative" in said, "the launcher's hosts turned out to be crowded"
    assert not representative(folder)


@pytest.mark.parametrize("name", ["../../x", "", "1st", "a b", "a" * 81])
def test_a_name_is_checked_before_anything_is_measured(tmp_path, made, name):
    with pytest.raises(InputError, match=r"--name '.*' has to begin with a letter"):
        run(tmp_path, "--steps", "1", "--name", name)
    assert not made["looks"]


def test_a_tree_that_is_not_faster_makes_no_rule(tmp_path, made):
    run(tmp_path, "--steps", "8")
    made[NATIVE] = made[algorithm_of("reconfigured")]
    said, *_ = run(tmp_path, "--steps", "8")
    assert "no rule: it is not faster than native beyond doubt" in said
    race = json.loads((tmp_path / "rule.json").read_text())
    validate("reconfigure-rule", race)
    assert (race["rule"], race["representative"]) == (False, False)
    assert race["verdict"] in said
    assert race["against"] == [{"routine": NATIVE, "ratio": 1.0, "faster": False}]
    assert not (tmp_path / "library").exists()
    assert [one.partition(":")[0] for one in made["raced"]] == [
        algorithm_of("reconfigured"),
        NATIVE,
    ]


def test_a_log_of_another_search_is_refused(tmp_path, made):
    run(tmp_path, "--steps", "1")
    looks = len(made["looks"])
    with pytest.raises(InputError, match=r"steps\.jsonl:1: it is of another size"):
        run(tmp_path, "--steps", "1", "--size", "8", "--resume")
    assert len(made["looks"]) == looks


def test_a_log_that_was_made_elsewhere_is_refused(tmp_path, made, cluster):
    """By another launcher, or with another MPI library; or the log lacks these."""
    run(tmp_path, "--steps", "1", topology=cluster)
    log, looks = tmp_path / "steps.jsonl", len(made["looks"])
    with pytest.raises(InputError, match=r"steps\.jsonl:1: it is of another launcher; leave out"):
        run(tmp_path, "--steps", "1", "--resume", topology=cluster, launcher="own")
    text = log.read_text()
    log.write_text(text.replace('"mpi": "mpich"', '"mpi": "openmpi"', 1))
    with pytest.raises(InputError, match=r"steps\.jsonl:1: it is of another mpi; leave out"):
        run(tmp_path, "--steps", "1", "--resume", topology=cluster)
    log.write_text(text.replace(', "mpi": "mpich"', "", 1))
    with pytest.raises(InputError, match=r"steps\.jsonl:1: it does not say its mpi; leave out"):
        run(tmp_path, "--steps", "1", "--resume", topology=cluster)
    assert len(made["looks"]) == looks


def test_the_resulting_file_says_how_ranks_on_hosts_hand_over_data(tmp_path, made):
    run(tmp_path, "--steps", "1")
    first, *lines = (tmp_path / "result.tree.yaml").read_text().splitlines()
    tree = make_tree(TOPOLOGY, shape_of("nary"), "reconfigured")
    assert "\n".join(lines) + "\n" == tree_yaml(tree, TOPOLOGY), "the tree itself is as before"
    routine = f"{algorithm_of('reconfigured')}:on_host=2"
    by = "ranks of a host hand over data by shared memory"
    assert first == f"# allreduce of 4 bytes: {routine}; {by}"
    run(tmp_path, "--steps", "1", "--collective", "barrier")
    assert (tmp_path / "result.tree.yaml").read_text().startswith(f"# barrier: {routine}; {by}\n")


def test_a_file_whose_tree_has_no_such_choice_says_so():
    topology = load_topology("topologies/quickstart.yaml")
    setup = Setup(make_tree(topology, shape_of("flat"), "t"))
    assert reconfigure._routine(topology, setup, "t") == (
        "configured_tree_t; no rank hands over data to another one of its host"
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "wrong"),
    [
        (r"\A.*\n", "[]\n", 1, "expected {…}"),
        (r"\A.*\n", '{"topology": "\udcff\n', 1, "can't decode byte 0xff"),
        (r"(?s)\A.*\Z", "{", 1, "no whole line"),
        (r"\n.*\n", "\n{}\n", 2, "before is missing or wrong"),
        (r"\n.*\n", "\n3\n", 2, "expected {…}"),
        (r"\n.*\n", "\n{\n", 2, "a damaged one: Expecting"),
        (r'("looked_s": \{"0": \[)[^,]*', r"\g<1>0", 2, "times is missing or wrong"),
        (r'"change": "[^"]*"', '"change": 1', 2, "tried: change is missing or wrong"),
        (r'("tried": .*"raced_s": \{"1")', r'\1: [1.0], "9"', 2, "raced_s has a launch that"),
        (r'("tried": .*"looked_s": \{"0")', r'\1: [1.0], "9"', 2, "looked_s has a launch that"),
        (r'"looked_s": \{"0"', r'"looked_s": {"1"', 2, "times is missing or wrong"),
    ],
)
def test_a_damaged_log_is_refused_with_its_line(tmp_path, made, old, new, line, wrong):
    run(tmp_path, "--steps", "1")
    log, looks = tmp_path / "steps.jsonl", len(made["looks"])
    wrong_text, changes = re.subn(old, new, log.read_text(), count=1)
    assert changes == 1
    log.write_text(wrong_text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InputError, match=re.escape(wrong)) as caught:
        run(tmp_path, "--steps", "1", "--resume")
    assert str(caught.value).startswith(f"{log}:{line}: ")
    assert len(made["looks"]) == looks


@pytest.mark.parametrize("logs", [300, 1200])
def test_damaged_logs_are_gone_on_with_or_refused(tmp_path, made, logs):
    """Whatever the reader lets pass, the search takes: any other error fails the test."""
    run(tmp_path, "--steps", "9")
    log = tmp_path / "steps.jsonl"
    text = log.read_text()
    header, *steps = map(json.loads, text.splitlines())
    assert len(steps) == 2
    chance = random.Random(6)
    read = 0
    refused = []
    for number in range(logs):
        whole = damaged(chance, text) if number % 8 == 0 else changed(chance, header, steps)
        log.write_bytes(whole)
        try:
            known = reconfigure._known(log, header)
        except InputError as error:
            refused.append(str(error))
            continue
        read += 1
        if read <= logs // 30:
            assert list(search(known))
    assert read > logs // 12
    assert len(refused) > logs // 4
    assert all(re.match(rf"{re.escape(str(log))}:\d+: .", error) for error in refused)


def changed(chance, header, steps):
    """A log in which something in a step is gone, or is something else."""
    steps = json.loads(json.dumps(steps))
    place = chance.choice(steps)
    while True:
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        below = place[key]
        if not isinstance(below, dict | list) or not below or chance.random() < 0.3:
            break
        place = below
    if chance.random() < 0.4:
        del place[key]
    else:
        place[key] = chance.choice(
            [None, True, 0, -1, 1e-5, 10**400, 1e300, float("nan"), "x", [], {}, [{}], {"1": [1]}]
        )
    return "".join(f"{json.dumps(one)}\n" for one in (header, *steps)).encode()


def search(known):
    """The search of the test above, with the times of the model."""

    def look(setups):
        return Model([cost(one.tree) * (0.9 if one.on_host == 2 else 1) for one in setups])

    def nodes(setup):
        return Nodes(node_seconds(TOPOLOGY, setup.tree), measured=True)

    start = Setup(make_tree(TOPOLOGY, shape_of("nary"), "start"))
    return steps_of_search(TOPOLOGY, start, look, nodes, 0.03, 9, 8, 5, known)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"launcher": "lab"}, "measured with launcher lab, this is mine"),
        ({"mpi": "openmpi"}, "measured with mpi openmpi, this is mpich"),
        ({"mpi_version": "3.4"}, "measured with mpi_version 3.4, this is"),
        ({"scale": 0.5}, "measured with scale 0.5, this is 1.0"),
        ({"kernel": "5.10"}, None),
    ],
)
def test_a_table_gets_no_rule_of_another_launcher_or_library(monkeypatch, tmp_path, changes, why):
    now = replace(ENVIRONMENT, launcher="mine", mpi="mpich", scale=1.0, representative=True)
    monkeypatch.setattr(_reconfigure_rule, "_environments", lambda _: [replace(now, **changes)])
    launcher = SimpleNamespace(name="mine", environment=lambda *_: now)
    decision = DecisionTable(TOPOLOGY.name, TOPOLOGY.hash, "0" * 64, True, ())
    target = _reconfigure_rule.Target(tmp_path, decision, (), Candidate(NATIVE))
    toolchain = SimpleNamespace(flavour="mpich")
    refuses = nullcontext() if why is None else pytest.raises(InputError, match=why)
    with refuses:
        _reconfigure_rule.require_the_cluster(target, TOPOLOGY, launcher, toolchain)
