"""`stagegen schedule bcast` and `reduce`: every tree in JSON and text, wrong options."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from stagegen.cli.schedule import command
from stagegen.data import TOPOLOGIES
from stagegen.errors import InputError
from stagegen.schedule import TREE_CONSTRUCTIONS, Tree, broadcast_tree, reduce_tree
from stagegen.topology import load_topology, restricted_to

BENCHMARK = str(TOPOLOGIES / "chain-4x4-cyclic.yaml")
MAKERS = {"bcast": broadcast_tree, "reduce": reduce_tree}

collectives = pytest.mark.parametrize("collective", MAKERS)


def run(*arguments: str):
    return CliRunner().invoke(command, [*arguments, "--topology", BENCHMARK])


@collectives
@pytest.mark.parametrize("construction", TREE_CONSTRUCTIONS)
def test_json_is_the_library_call(collective, construction):
    result = run(collective, "--tree", construction, "--root", "6", "--format", "json")
    assert result.exit_code == 0
    form = json.loads(result.stdout)
    assert (form["collective"], form["tree"], form["root"]) == (collective, construction, 6)
    assert len(form["edges"]) == 15
    assert Tree.from_json(form) == MAKERS[collective](load_topology(BENCHMARK), 6, construction)


@collectives
def test_json_has_the_arity_and_the_ranks_of_a_group(collective):
    options = ("--tree", "kary", "--arity", "4", "--hosts", "n[0-5,9]", "--format", "json")
    form = json.loads(run(collective, *options).stdout)
    group = restricted_to(load_topology(BENCHMARK), [f"n{i}" for i in (0, 1, 2, 3, 4, 5, 9)])
    assert Tree.from_json(form) == MAKERS[collective](group, 0, "kary", 4)
    assert form["arity"] == 4


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (
            ("bcast", "--tree", "binary"),
            ("bcast: tree binary from rank 0, height 4 (none is lower than 4)", "share no network"),
        ),
        (("reduce", "--tree", "flat"), ("reduce: tree flat to rank 0, height 1\n",)),
        (
            ("bcast", "--tree", "binomial"),
            ("edges have several senders, at most ", "in one step at most ", "0→8"),
        ),
        (("reduce", "--tree", "binomial"), ("edges have several receivers, at most ", "8→0")),
    ],
)
def test_text_shows_height_and_contention(options, lines):
    result = run(*options)
    assert result.exit_code == 0
    for line in lines:
        assert line in result.stdout


@collectives
def test_wrong_options_are_refused(collective):
    for options, problem in (
        (("--arity", "2"), "a linear tree cannot have arity 2"),
        (("--tree", "kary", "--arity", "0"), "at least 1 child"),
        (("--root", "16"), "ranks are 0 to 15"),
    ):
        error = run(collective, *options).exception
        assert isinstance(error, InputError)
        assert problem in str(error)
    assert run(collective, "--tree", "bush").exit_code == 2
    assert run(collective, "--arity", "two").exit_code == 2
