"""`stagegen schedule alltoall`: schemes and their parameters, groups, what is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stagegen.cli import main
from stagegen.data import TOPOLOGIES
from stagegen.schedule import SCHEME_NAMES, SCHEMES, PhaseSchedule


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; returns exit status and output."""

    def call(*options: str, topology: str = "fig-3-2", form: str = "json") -> tuple[int, str]:
        file = str(TOPOLOGIES / f"{topology}.yaml")
        arguments = ["schedule", "alltoall", "--topology", file, "--format", form, *options]
        monkeypatch.setattr(sys, "argv", ["stagegen", *arguments])
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code or 0
        return status, "".join(capsys.readouterr())

    return call


@pytest.mark.parametrize("scheme_name", SCHEME_NAMES)
def test_json_holds_what_the_scheme_has(run, scheme_name):
    scheme = SCHEMES[scheme_name]
    options = [*(["--block-size", "4"] if scheme.blocks else [])]
    options += ["--window", "2"] if scheme.giver else []
    status, output = run("--sync", scheme_name, *options)
    form = json.loads(output)
    assert (status, form["sync"], form["bound_phases"], form["gap"]) == (0, scheme_name, 9, 0)
    assert form["block_size"] == (4 if scheme.blocks else 1)
    assert form["window"] == (2 if scheme.giver else 1)
    assert bool(form["dummies"]) == scheme.dummies
    assert len(PhaseSchedule.from_json(form).phases) == 9


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--sync", "barrier-partial-none", "--block-size", "4"), {"barrier": 2}),
        (("--sync", "receiver-partial", "--block-size", "2"), {"end of block": 4}),
        (("--sync", "barrier"), {"barrier": 8}),
        (("--sync", "receiver"), {"barrier": 0, "end of block": 0}),
    ],
)
def test_text_shows_barriers_and_blocks(run, options, expected):
    status, output = run(*options, form="text")
    assert status == 0
    assert {line: output.splitlines().count(line) for line in expected} == expected


def test_text_shows_dummies_bound_and_gap(run):
    status, output = run("--sync", "dummy", form="text")
    assert status == 0
    assert "at least 9 phases are needed: no schedule has fewer" in output
    # In phase 0 rank 2 alone is idle; 0 is on its switch and receives, 1 sends to it.
    assert output.count("  dummy") > 0


@pytest.mark.parametrize(
    ("topology", "phases"),
    [("two-level-32-uplink4", 48), ("slots-4x2x2", 28), ("slow-uplink-16", 150)],
)
def test_clusters_with_other_links_reach_their_bound(run, topology, phases):
    status, output = run("--sync", "none", topology=topology)
    form = json.loads(output)
    assert (status, form["bound_phases"], len(form["phases"])) == (0, phases, phases)


def test_a_group_has_the_ranks_of_its_hosts(run):
    status, output = run("--hosts", "n[0-3]")
    assert (status, json.loads(output)["ranks"]) == (0, ["n0", "n1", "n2", "n3"])


@pytest.mark.parametrize(
    "options",
    [
        ("--sync", "receiver", "--block-size", "2"),
        ("--sync", "barrier", "--window", "2"),
        ("--sync", "receiver", "--window", "0"),
        ("--sync", "sometimes"),
        ("--root-switch", "s3"),
        ("--hosts", "n[7-9]"),
        ("--hosts", "n[0-"),
    ],
)
def test_wrong_options_are_usage_errors(run, options):
    status, output = run(*options)
    assert status == 2
    assert output


@pytest.mark.parametrize("form", ["json", "text", "svg"])
def test_a_single_rank_has_nothing_to_send(run, form):
    status, output = run("--hosts", "n0", form=form)
    assert status == 0
    if form == "json":
        assert json.loads(output)["phases"] == []


@pytest.mark.parametrize("option", [("--window",), ("--sync", "receiver-partial", "--block-size")])
@pytest.mark.parametrize("value", ["0", "2147483648", "99999999999999999999"])
def test_absurd_sizes_are_refused(run, option, value):
    status, output = run(*option, value)
    assert status == 2
    assert "Traceback" not in output


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_standard_output_is_one_line(unbuffered):
    """The device takes nothing; it is there on Linux."""
    command = "from stagegen.cli import main; main()"
    file = str(TOPOLOGIES / "fig-3-2.yaml")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        result = subprocess.run(
            [sys.executable, "-c", command, "schedule", "alltoall", "--topology", file],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert result.returncode == 1
    assert result.stderr == "standard output: No space left on device\n"
