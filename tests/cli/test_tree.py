"""``stagegen tree``: files that are made, checked and shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from stagegen.cli import tree as tree_command
from stagegen.cli.tree import command
from stagegen.errors import InputError
from stagegen.report.plots import can_plot
from stagegen.topology import load_topology
from stagegen.topology.write import topology_yaml
from stagegen.trees import SHAPES, read_tree
from tests.strategies import make_topology

TOPOLOGY = ("--topology", "topologies/slots-4x2x2.yaml")


def run(*arguments):
    done = CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def made(tmp_path):
    file = tmp_path / "split.tree.yaml"
    run("make", *TOPOLOGY, "--shape", "split", "--output", file)
    return file


def test_make_writes_what_check_reads(made):
    assert run("make", *TOPOLOGY, "--shape", "split") == made.read_text()
    form = json.loads(run("check", made, *TOPOLOGY, "--format", "json"))
    jsonschema.validate(form, json.loads(Path("docs/schemas/tree.json").read_text()))
    assert (form["height"], form["up_between"], form["down_between"]) == (4, 7, 7)
    assert form["nodes"][0]["name"] == "root"
    assert "15 nodes in 4 levels; the root is rank 0 on n0" in run("check", made, *TOPOLOGY)


def test_options_set_the_arity_the_split_and_the_root_of_a_shape():
    wide = run("make", *TOPOLOGY, "--shape", "nary", "--root-arity", 3, "--split", 1)
    assert "root.1.1: {rank: 6, contributors: [n3, n4, n5]}  # on n3" in wide
    there = run("make", *TOPOLOGY, "--shape", "flat", "--root", "n2", "--name", "mine")
    assert (
        there == "name: mine\nranks: 16\nnodes:\n  root: {rank: 4, contributors: [0-15]}  # on n2\n"
    )


def test_show_draws_the_tree_as_text_and_as_a_picture(made, tmp_path):
    text = run("show", made, *TOPOLOGY)
    assert "├─ = root.2.0: rank 0 on n0" in text
    assert text.count("»") == 7
    if can_plot():
        for suffix in ("svg", "png"):
            picture = tmp_path / f"tree.{suffix}"
            run("show", made, *TOPOLOGY, "--format", suffix, "--output", picture)
            assert picture.stat().st_size > 1000
        assert "root.1.3: 12" in (tmp_path / "tree.svg").read_text()


def test_mistakes_say_what_to_do(made):
    with pytest.raises(InputError, match="unknown shape 'round'; choose from flat"):
        run("make", *TOPOLOGY, "--shape", "round")
    with pytest.raises(InputError, match="no rank is on a host 'x'"):
        run("make", *TOPOLOGY, "--shape", "flat", "--root", "x")
    with pytest.raises(InputError, match="the tree is for 16 ranks, and quickstart has 8"):
        run("check", made, "--topology", "topologies/quickstart.yaml")


@pytest.mark.parametrize("shape", SHAPES)
def test_hosts_with_long_names_have_nodes_that_can_be_read(tmp_path, shape):
    """Their first 100 letters are alike, or they are not longer than a node's name may be."""
    short = topology_yaml(make_topology([4, 2], [0], slots={f"n{i}": 3 for i in range(6)}))
    for letters in (70, 79, 80, 100):
        cluster, file = tmp_path / "cluster.yaml", tmp_path / "t.tree.yaml"
        cluster.write_text(re.sub(r"\bn(\d)\b", rf"{'h' * (letters - 1)}\1", short))
        words = ("make", "--topology", cluster, "--shape", shape)
        run(*words, "--output", file)
        assert run(*words) == file.read_text()
        tree = read_tree(file, load_topology(cluster))
        assert tree.ranks == 18


@pytest.mark.parametrize(("limit", "what"), [("NODES_MOST", "nodes"), ("LEVELS_MOST", "levels")])
def test_a_tree_that_no_file_may_have_is_not_written(made, tmp_path, monkeypatch, limit, what):
    monkeypatch.setattr(tree_command, limit, 2)
    file = tmp_path / "mine.tree.yaml"
    for words in (("make", "--shape", "split"), ("changes", made, "--take", 1)):
        with pytest.raises(InputError, match=rf"the tree would have \d+ {what}, and a file may"):
            run(words[0], *TOPOLOGY, *words[1:], "--name", "mine", "--output", file)
        assert not file.exists()


NO_NAMES = ("", "a b", "a/b", "../a", 'a"b', "a\nb", "a: b", "9a", "é", "a" * 81, "a\n")


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_no_file_may_have_is_refused(made, tmp_path, name):
    file = tmp_path / "mine.tree.yaml"
    for words in (("make", "--shape", "flat"), ("changes", made, "--take", 1)):
        with pytest.raises(InputError, match=r"--name .* has to begin with a letter"):
            run(*words, *TOPOLOGY, "--name", name, "--output", file)
        assert not file.exists()


def test_a_name_that_an_algorithm_has_is_refused(made, tmp_path):
    """The algorithm is one of the user's own, beside the topology file."""
    topology = tmp_path / "topology.yaml"
    topology.write_text(Path(TOPOLOGY[1]).read_text())
    own = tmp_path / "own" / "bcast" / "configured_tree_my_own.c.j2"
    own.parent.mkdir(parents=True)
    own.write_text("{#---\nsummary: s\nscratch: 0\ncost: α\nreference: Faraj 2006, §1\n---#}\n")
    (tmp_path / "stagegen.yaml").write_text("templates: [own]\n")
    there = ("--topology", topology, "--name", "my-own")
    for words in (("make", "--shape", "flat"), ("changes", made, "--take", 1)):
        with pytest.raises(InputError, match="'my-own' becomes bcast/configured_tree_my_own, whi"):
            run(*words, *there)
        assert run(*words, *there[:-1], "my-other").startswith("name: my-other\n")


def test_a_name_without_a_tree_to_write_is_refused(made):
    with pytest.raises(InputError, match="add --take"):
        run("changes", made, *TOPOLOGY, "--name", "other")


@pytest.mark.parametrize("text", ["[" * 10**5, '{"root": 1e999}', '{"root": 1' + "0" * 400 + "}"])
def test_times_that_are_no_seconds_are_refused(made, tmp_path, text):
    times = tmp_path / "times.json"
    times.write_text(text)
    with pytest.raises(InputError, match=r"times\.json: "):
        run("changes", made, *TOPOLOGY, "--times", times)


def test_changes_are_listed_and_taken(made, tmp_path):
    rows = run("changes", made, *TOPOLOGY).splitlines()
    assert rows[1].split()[0] == "1"
    assert "4 nodes of a level" in rows[1]  # by the model, together they take the most time
    times = tmp_path / "times.json"
    form = json.loads(run("check", made, *TOPOLOGY, "--format", "json"))
    times.write_text(json.dumps({n["name"]: float(n["name"] == "n4") for n in form["nodes"]}))
    rows = run("changes", made, *TOPOLOGY, "--times", times).splitlines()
    assert rows[1].split()[:2] == ["1", "n4"]
    number = next(row.split()[0] for row in rows if "move n4 from rank 8 to rank 9" in row)
    other = tmp_path / "other.tree.yaml"
    take = ("--take", number, "--name", "other", "--output", other)
    run("changes", made, *TOPOLOGY, "--times", times, *take)
    assert "  n4:       {rank: 9, contributors: [8-9]}  # on n4" in other.read_text().splitlines()
    assert run("check", other, *TOPOLOGY).startswith("other: 16 ranks, 15 nodes")
    with pytest.raises(InputError, match=r"there are \d+ changes; take one of them, not 9999"):
        run("changes", made, *TOPOLOGY, "--take", 9999)
    times.write_text('{"root": 1}')
    with pytest.raises(InputError, match=r"times\.json: node \S+ has no seconds of 0 or more"):
        run("changes", made, *TOPOLOGY, "--times", times)
