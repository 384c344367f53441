"""The numbers of docs/figures/fig_3_29.json are those that its script makes."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
TOOLS = FIGURES.parent / "tools" / "figures"


def test_the_script_gives_the_first_points_of_the_figure_again():
    pytest.importorskip("matplotlib")
    script = runpy.run_path(str(TOOLS / "fig_3_29.py"))
    numbers = json.loads((FIGURES / "fig_3_29.json").read_text())
    assert list(numbers) == [str(count) for count in script["HOSTS_PER_SWITCH"]]
    for per_switch, rows in numbers.items():
        assert list(rows) == [str(hosts) for hosts in script["HOSTS"]]
        for hosts in script["HOSTS"][1:3]:
            assert script["measure"](hosts, int(per_switch)) == rows[str(hosts)]
        for row in rows.values():
            assert row["complete"] <= row["best order"]["least"] <= row["best order"]["mean"]
            assert row["best order"]["mean"] <= row["one order"]["mean"]
