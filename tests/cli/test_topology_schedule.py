"""`stagegen topology` and `stagegen schedule`: the JSON contract, exit statuses, no tracebacks."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import pytest

from stagegen.cli import main
from stagegen.data import TOPOLOGIES
from stagegen.schedule import SCHEME_NAMES, SCHEMES
from stagegen.schedule.bounds.lower import COLLECTIVES

FIGURE = str(TOPOLOGIES / "fig-3-2.yaml")
BENCHMARK = str(TOPOLOGIES / "chain-4x4-cyclic.yaml")

RANK = {"type": "integer", "minimum": 0}
PAIR = {"type": "array", "items": RANK, "minItems": 2, "maxItems": 2}
NAMES = {"type": "array", "items": {"type": "string"}}


def contract(collective: str, **properties) -> dict:
    properties = {"collective": {"const": collective}, "ranks": NAMES, **properties}
    return {"type": "object", "required": list(properties), "properties": properties}


ALLTOALL = contract(
    "alltoall",
    root={"type": "string"},
    subtrees={"type": "array", "items": {"type": "array", "items": RANK}},
    bound_phases=RANK,
    phases={"type": "array", "items": {"type": "array", "items": PAIR}},
    syncs={
        "type": "array",
        "items": {
            "type": "object",
            "required": ["first", "then", "token"],
            "properties": {
                "first": PAIR,
                "then": PAIR,
                "token": {"anyOf": [PAIR, {"type": "null"}]},
            },
            "additionalProperties": False,
        },
    },
)
ALLGATHER = contract("allgather", ring={"type": "array", "items": RANK}, max_hops=RANK)
BCAST = contract(
    "bcast",
    tree={"enum": ["linear"]},
    root=RANK,
    edges={"type": "array", "items": PAIR},
    height=RANK,
    contention_free={"type": "boolean"},
)
SHOW = {
    "type": "object",
    "required": ["name", "hash", "hosts", "ranks", "switches", "edges", "bottleneck", "root"],
    "properties": {
        "edges": {"type": "array", "items": {"required": ["edge", "load", "capacity"]}},
        "bounds": {
            "type": "object",
            "required": list(COLLECTIVES),
            "additionalProperties": {"required": ["seconds", "formula", "reference", "edges"]},
        },
    },
}


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line in this process; returns exit status, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["stagegen", *arguments])
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code or 0
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize("sync", SCHEME_NAMES)
def test_alltoall_json_keeps_to_the_contract(run, sync):
    options = ["--topology", FIGURE, "--sync", sync, "--format", "json"]
    status, out, err = run("schedule", "alltoall", *options)
    form = json.loads(out)
    jsonschema.validate(form, ALLTOALL)
    assert (status, err, form["root"], form["bound_phases"]) == (0, "", "s1", 9)
    assert form["ranks"] == ["n0", "n1", "n2", "n3", "n4", "n5"]
    assert form["subtrees"] == [[0, 1, 2], [3, 4], [5]]
    assert form["phases"][0] == [[0, 4], [3, 5], [5, 1], [1, 0]]
    # Blocks of one phase, the default, have no tokens within.
    scheme = SCHEMES[sync]
    assert (form["syncs"] == []) == (scheme.giver is None or scheme.barriers)


def test_allgather_and_bcast_json_keep_to_the_contract(run):
    status, out, _ = run("schedule", "allgather", "--topology", BENCHMARK, "--format", "json")
    form = json.loads(out)
    jsonschema.validate(form, ALLGATHER)
    assert (status, form["max_hops"]) == (0, 4)
    assert form["ring"] == [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]
    options = ["--topology", BENCHMARK, "--root", "5", "--tree", "linear", "--format", "json"]
    status, out, _ = run("schedule", "bcast", *options)
    form = json.loads(out)
    jsonschema.validate(form, BCAST)
    assert (status, form["root"], form["height"], form["contention_free"]) == (0, 5, 15, True)


def test_a_root_switch_is_taken_or_refused(run):
    arguments = ["schedule", "alltoall", "--topology", FIGURE, "--format", "json", "--root-switch"]
    status, out, _ = run(*arguments, "s0")
    assert (status, json.loads(out)["root"]) == (0, "s0")
    status, out, err = run(*arguments, "s3")
    assert (status, out) == (2, "")
    assert "choose from s0, s1" in err


def test_show_json_keeps_to_the_contract(run):
    options = ["--topology", BENCHMARK, "--format", "json", "--size", "32KiB"]
    status, out, _ = run("topology", "show", *options)
    form = json.loads(out)
    jsonschema.validate(form, SHOW)
    assert (status, form["root"], form["bound_phases"]) == (0, "s1", 64)
    assert form["bottleneck"] == [["s1", "s2"], ["s2", "s1"]]
    assert form["bounds"]["alltoall"]["seconds"] == pytest.approx(0.8388608)
    loads = {tuple(edge["edge"]): edge["load"] for edge in form["edges"]}
    assert (loads["s0", "s1"], loads["s1", "s2"], loads["n0", "s0"]) == (48, 64, 15)
    status, out, _ = run("topology", "show", "--topology", BENCHMARK, "--format", "json")
    assert "bounds" not in json.loads(out)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["topology", "show", "--size", "64KiB"], "1.68 s"),
        (["schedule", "alltoall"], "after 0→1 (token from 1)"),
        (["schedule", "allgather"], "ring lr1"),
        (["schedule", "bcast", "--root", "3"], "tree linear from rank 3"),
    ],
)
def test_text_shows_what_was_made(run, arguments, part):
    status, out, err = run(*arguments, "--topology", BENCHMARK)
    assert (status, err) == (0, "")
    assert part in out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["schedule", "allgather", "--topology", FIGURE, "--ring", "lr9"], "--ring"),
        (["schedule", "bcast", "--topology", FIGURE, "--tree", "bush"], "--tree"),
        (["schedule", "bcast", "--topology", FIGURE, "--root", "6"], "ranks are 0 to 5"),
        (["schedule", "bcast", "--topology", FIGURE, "--root", "-1"], "ranks are 0 to 5"),
        (["schedule", "bcast", "--topology", FIGURE, "--root", "x"], "--root"),
        (["schedule", "alltoall", "--topology", FIGURE, "--sync", "hope"], "--sync"),
        (["schedule", "alltoall"], "--topology"),
        (["topology", "show", "--topology", FIGURE, "--size", "big"], "no size"),
        (["topology", "show", "--topology", FIGURE, "--format", "xml"], "--format"),
        (["topology", "show", "--topology", "nowhere.yaml"], "nowhere.yaml: cannot read it"),
        (["topology", "hide"], "hide"),
    ],
)
def test_wrong_usage_is_status_2(run, arguments, part):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert part in err
    assert "Traceback" not in err


def test_a_wrong_file_is_reported_with_its_line(run, tmp_path):
    (tmp_path / "t.yaml").write_text("name: t\nswitches:\n  s0: {hots: [a]}\n")
    status, out, err = run("topology", "show", "--topology", str(tmp_path / "t.yaml"))
    assert (status, out) == (2, "")
    assert (
        err == f"{tmp_path / 't.yaml'}:3: unknown key 'hots' in switch s0; did you mean 'hosts'?\n"
    )


@pytest.mark.parametrize("arguments", [["topology"], ["topology", "show"], ["schedule", "bcast"]])
def test_help_shows_the_usage(run, arguments):
    status, out, _ = run(*arguments, "--help")
    assert status == 0
    assert "Usage: stagegen" in out


def test_broken_pipe_gives_no_traceback(tmp_path):
    (tmp_path / "t.yaml").write_text('name: t\nswitches: {s0: {hosts: "n[0-95]"}}\n')
    command = (
        f"{sys.executable} -m stagegen schedule alltoall --sync none --topology t.yaml | head -c 1"
    )
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("a", "")
