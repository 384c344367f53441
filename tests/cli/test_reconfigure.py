"""``stagegen reconfigure`` on a model of the times: its log, its result, and how it goes on."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from stagegen.cli import reconfigure
from stagegen.errors import InputError
from stagegen.topology import load_topology
from stagegen.trees import make_tree, read_tree, shape_of, tree_yaml
from stagegen.trees.cost import seconds_up

FILE = "topologies/slots-4x2x2.yaml"
TOPOLOGY = load_topology(FILE)


def cost(tree):
    """A model in which a node's time grows with the square of its contributors."""
    return seconds_up(tree, {n.name: len(n.contributors) ** 2 * 1e-6 for n in tree.nodes})


@pytest.fixture
def calls(monkeypatch):
    """How often trees were timed; a tree takes what the model says of it."""
    made = []

    class Model:
        def __init__(self, *_):
            pass

        def __call__(self, old, new):
            made.append(new)
            return tuple(dict.fromkeys(range(5), (cost(tree),) * 9) for tree in (old, new))

    monkeypatch.setattr(reconfigure, "_Live", Model)
    return made


def run(folder, *options):
    start = folder / "start.tree.yaml"
    start.write_text(tree_yaml(make_tree(TOPOLOGY, shape_of("nary"), "start")))
    words = ["--topology", FILE, "--launcher", "local", "--tree", start, "--output", folder]
    done = CliRunner().invoke(reconfigure.command, [*map(str, words), *options])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    header, *steps = map(json.loads, (folder / "steps.jsonl").read_text().splitlines())
    return header, steps


def test_a_search_ends_with_a_faster_tree_and_resumes(tmp_path, calls):
    header, steps = run(tmp_path, "--steps", "24")
    assert (header["collective"], header["size"]) == ("allreduce", 4)
    assert [one["step"] for one in steps] == list(range(1, 25))
    best = [one["after"] for one in steps if one["accepted"]][-1]
    result = read_tree(tmp_path / "result.tree.yaml", TOPOLOGY)
    assert tree_yaml(result) == best
    assert all(one["ratio"] < 0.97 for one in steps if one["accepted"])
    whole = (tmp_path / "steps.jsonl").read_text()
    cut = whole.splitlines(keepends=True)
    (tmp_path / "steps.jsonl").write_text("".join(cut[:6]) + cut[6][:20])
    made = len(calls)
    run(tmp_path, "--steps", "24", "--resume")
    assert (tmp_path / "steps.jsonl").read_text() == whole
    assert len(calls) - made == 24 - 5


def test_a_log_of_another_search_is_refused(tmp_path, calls):
    run(tmp_path, "--steps", "1")
    with pytest.raises(InputError, match=r"steps\.jsonl:1: it is of another size"):
        run(tmp_path, "--steps", "1", "--size", "8", "--resume")
    assert len(calls) == 1
