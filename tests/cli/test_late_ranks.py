"""``--timing replay:RANK=TIME,…``: which ranks come late, and by how much."""

from __future__ import annotations

import click
import pytest

from stagegen.cli._arrivals import read_plan
from stagegen.data import TOPOLOGIES
from stagegen.errors import InputError
from stagegen.measure.arrivals import Replay

EIGHT = str(TOPOLOGIES / "quickstart.yaml")


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ("7=2ms", {7: 2000}),
        ("0=1s", {0: 1_000_000}),
        ("1=500us,7=2ms", {1: 500, 7: 2000}),
        (",".join(f"{rank}={rank}ms" for rank in range(1, 8)), {r: 1000 * r for r in range(8)}),
    ],
)
def test_the_named_ranks_are_late_and_no_others(text, late):
    plan = read_plan(f"replay:{text}", EIGHT)
    assert isinstance(plan, Replay)
    assert plan.delays == (tuple(late.get(rank, 0) for rank in range(8)),)
    assert text in plan.text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("8=2ms", "the last one is 7"),
        ("3=2", "has no unit"),
        ("3=fast", "is no latency"),
        ("3=2ms,", "no such file"),
        ("-1=2ms", "no such file"),
        (",".join(f"{rank}=1ms" for rank in range(8)), "all ranks are late"),
    ],
)
def test_what_is_no_plan_is_refused(text, complaint):
    with pytest.raises((click.BadParameter, InputError), match=complaint):
        read_plan(f"replay:{text}", EIGHT)


def test_plans_of_other_delays_are_other_plans():
    plans = {read_plan(f"replay:{text}", EIGHT) for text in ("1=1ms", "2=1ms", "1=2ms")}
    assert len(plans) == 3
