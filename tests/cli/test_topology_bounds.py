"""`stagegen topology show`: capacities, groups, and the bounds of every collective."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from stagegen.cli.topology import command
from stagegen.schedule.bounds.lower import COLLECTIVES

FASTER_CORE = """
name: faster-core
defaults: {bandwidth: 1Gbit, latency: 50us}
switches: {s0: {hosts: "n[0-3]"}, s1: {hosts: "n[4-7]"}, core: {}}
links:
  - {ends: [s0, core], bandwidth: 2500Mbit}
  - {ends: [core, s1], bandwidth: 500Mbit, count: 2}
hosts: {n7: {bandwidth: 10Gbit, slots: 2}}
"""


@pytest.fixture
def show(tmp_path):
    (tmp_path / "t.yaml").write_text(FASTER_CORE)

    def call(*arguments: str) -> str:
        line = ["show", "--topology", str(tmp_path / "t.yaml"), *arguments]
        result = CliRunner().invoke(command, line, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    return call


def test_capacities_decide_the_bottleneck(show):
    form = json.loads(show("--format", "json"))
    edges = {tuple(edge["edge"]): (edge["load"], edge["capacity"]) for edge in form["edges"]}
    assert edges["s0", "core"] == (20, 2)
    assert edges["core", "s1"] == (20, 1)
    assert edges["n7", "s1"] == (14, 10)
    assert form["bottleneck"] == [["core", "s1"], ["s1", "core"]]
    assert form["bound_phases"] == 20


def test_a_group_of_hosts_has_its_own_ranks_and_bound(show):
    form = json.loads(show("--format", "json", "--hosts", "n[4-7]"))
    assert form["ranks"] == ["n4", "n5", "n6", "n7", "n7"]
    assert form["bound_phases"] == 4
    assert {next(iter(edge["edge"])) for edge in form["edges"]} == {"s1", "n4", "n5", "n6", "n7"}


def test_every_collective_has_its_bound(show):
    form = json.loads(show("--format", "json", "--size", "1000000", "--root", "8"))
    assert list(form["bounds"]) == list(COLLECTIVES)
    seconds = {name: bound["seconds"] for name, bound in form["bounds"].items()}
    assert seconds["alltoall"] == pytest.approx(20 * 8e6 / 1e9)
    assert seconds["gather"] == pytest.approx(4 * 8e6 / 1e9)  # core→s1, not the root's 10 Gbit/s
    assert seconds["bcast"] == pytest.approx(8e6 / 1e9)
    assert seconds["barrier"] == 0
    assert form["bounds"]["barrier"]["latency_seconds"] == pytest.approx(200e-6)
    assert all(bound["formula"] and bound["reference"] for bound in form["bounds"].values())


def test_text_has_every_collective(show):
    out = show("--size", "64KiB")
    assert all(name in out for name in COLLECTIVES)
    assert "Patarasuk and Yuan 2009" in out
    assert "at least 20 phases" in out
    assert "lower" not in show()


def test_a_root_that_is_no_rank_is_refused(show, tmp_path):
    line = ["show", "--topology", str(tmp_path / "t.yaml"), "--size", "1", "--root", "9"]
    assert "ranks are 0 to 8" in str(CliRunner().invoke(command, line).exception)
