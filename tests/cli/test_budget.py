"""`--budget`: seconds for each size, or a duration for the whole tuning."""

from __future__ import annotations

import json
import signal

import click
import pytest

from stagegen.cli._budget import Budget, parse_budget
from tests.faults.tuning import Tuning
from tests.library.schemas import validate

OPTIONS = ("--launcher", "model", "--collectives", "bcast", "--sizes", "1,4096", "--budget", "6s")


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("2", Budget(2.0)),
        ("0", Budget(0.0)),
        ("0.5", Budget(0.5)),
        ("90s", Budget(total=90.0)),
        ("10m", Budget(total=600.0)),
        ("10min", Budget(total=600.0)),
        ("1.5h", Budget(total=5400.0)),
        ("1h30m", Budget(total=5400.0)),
    ],
)
def test_a_number_is_for_a_size_and_a_duration_is_for_all(text, budget):
    context = click.Context(click.Command("tune"))
    assert parse_budget(context, click.Option(["--budget"]), text) == budget


def test_a_run_within_a_budget_is_killed_and_goes_on_with_what_is_left(tmp_path):
    tuning = Tuning(tmp_path, OPTIONS)
    tuning.interrupt(signal.SIGKILL, 3)
    result = tuning.run("--resume")
    assert result.returncode == 0, result.stderr
    assert "s of the budget of 6 s were spent; other choices may save" in result.stderr
    records = tuning.records("measurement") + tuning.records("check")
    assert all(record["took"] > 0 for record in records)
    validate("measurements", json.loads(tuning.log.read_text().splitlines()[0]))
    decision = json.loads((tuning.output / "decision.json").read_text())
    validate("decision", decision)
    assert decision["budget"]["spent"] == pytest.approx(sum(r["took"] for r in records), abs=1e-3)
    assert decision["budget"]["spent"] < 6 + max(record["took"] for record in records)
    report = (tuning.output / "report.html").read_text()
    assert "of the budget of 6 s were spent" in report
    assert "What other choices may save" in report
    tuning.require_same_from_log()


def test_auto_is_taken_from_the_log_whatever_else_is_left_out(tmp_path):
    tuning = Tuning(tmp_path, (*OPTIONS[:-1], "auto"))
    tuning.interrupt(signal.SIGKILL, 3)
    limit = json.loads(tuning.log.read_text().splitlines()[0])["total_budget"]
    tuning.options = ("--launcher", "model", "--budget", "auto")
    result = tuning.run("--resume")
    assert result.returncode == 0, result.stderr
    decision = json.loads((tuning.output / "decision.json").read_text())
    assert decision["budget"]["seconds"] == limit
